"""The life of a job: submitted, watched, read, cancelled and compared. Only calls.py starts processes."""
