"""The reference of the Python API: mkdocstrings reads the docstrings."""

from __future__ import annotations

import jobgen

_HEAD = """\
# Python

Made from the docstrings. [Python API](../api.md) and [Runs from Python](../notebook.md) have examples. The settings of a `JobSpec` are the
[options of a job](options.md), with underscores.
"""


def page() -> str:
    """Return the page: what ``from jobgen import`` offers."""
    names = [f"{jobgen._HOMES[name]}.{name}" for name in jobgen.__all__ if name in jobgen._HOMES]
    return "\n".join([_HEAD, *(f"::: {name}\n" for name in names)])
