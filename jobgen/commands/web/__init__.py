"""The web page that makes scripts in a browser: its form, its answers, and its files."""
