"""Creation, check and refresh of site files from the facts of a cluster."""
