"""The code of a job on its way to a host: what travels, and how it gets there."""
