"""The training module that the generated scripts launch: python -m jobgen.train."""
