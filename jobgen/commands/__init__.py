"""The command line, one module for each command. No other package imports it."""
