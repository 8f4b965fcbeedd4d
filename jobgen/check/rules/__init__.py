"""The rules of ``jobgen check``, one module for each subject."""
