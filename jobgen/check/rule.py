"""What a rule is: a row of a table, and a function from a script to what it found there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jobgen.check.script import Hit, Script

ERROR, WARNING, NOTE = "error", "warning", "note"  # SARIF's words


class Rule(NamedTuple):
    """``error``: it goes wrong. ``warning``: it does when something else happens. ``note``: look at it."""

    id: str
    severity: str
    title: str
    find: Callable[[Script], Iterator[Hit]]
