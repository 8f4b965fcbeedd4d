"""Runs on other machines, which have a mirror of their run directory here."""
