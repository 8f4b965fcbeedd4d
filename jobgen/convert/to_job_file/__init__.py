"""Translation of a script to a job file."""
