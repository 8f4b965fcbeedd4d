"""Rendering of a plan: the script, its runtime, and the explanation of its values."""
