"""The life of a job: submit, watch, read, cancel and compare. Only calls.py starts processes."""
