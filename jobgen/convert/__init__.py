"""``jobgen convert``: a script for one scheduler becomes one for another, or a job file."""
