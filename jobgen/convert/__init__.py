"""``jobgen convert``: translates a script for another scheduler, or to a job file."""
