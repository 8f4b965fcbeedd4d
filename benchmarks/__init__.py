"""Benchmarks of jobgen and of an alternative in the same run: ``python -m benchmarks [NAME...]``."""
