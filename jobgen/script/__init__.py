"""Reader of batch scripts: their syntax tree, directives, launches and constants."""
