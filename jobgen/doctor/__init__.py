"""``jobgen doctor``: checks the environment that a job's script will have, and suggests remedies."""
