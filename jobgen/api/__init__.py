"""``from jobgen import JobSpec, render, submit, Run``."""
