"""Job files: reader, schema, and the locations of errors."""
