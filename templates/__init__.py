"""The Jinja templates of the scripts; a package so that they are in the wheel."""
