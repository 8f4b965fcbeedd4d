"""What jobgen exists for, measured beside the alternative in one run: ``python -m benchmarks [NAME...]``."""
