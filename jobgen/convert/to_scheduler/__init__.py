"""Translation of a script for another scheduler."""
