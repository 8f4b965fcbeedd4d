"""The version of jobgen."""

__version__ = "0.2.0"
