"""The type of a rule: a row of the table, with the function that yields its hits in a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from jobgen.check.script import Hit, Script

ERROR, WARNING, NOTE = "error", "warning", "note"  # the levels of SARIF


class Rule(NamedTuple):
    """A rule. ``error``: the job goes wrong. ``warning``: it may go wrong. ``note``: have a look."""

    id: str
    severity: str
    title: str
    find: Callable[[Script], Iterator[Hit]]
