"""Parsers of values that users type, and the types of these values."""
