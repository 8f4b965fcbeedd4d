"""``jobgen doctor``: the environment as a job's script will find it, and remedies."""
