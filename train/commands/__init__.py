"""The commands that do not train: python -m jobgen.train export, evaluate and sample.

config/commands.py has their options.
"""
