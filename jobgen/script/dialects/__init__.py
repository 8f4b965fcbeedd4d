"""How the scripts of each scheduler are read."""
