"""The schedulers: their directives, arrays and dependencies."""
