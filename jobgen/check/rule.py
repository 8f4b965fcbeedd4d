"""The type of a rule, and the decorator that makes a rule of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from jobgen.check.script import Hit, Script

ERROR, WARNING, NOTE = "error", "warning", "note"  # the levels of SARIF


class Rule(NamedTuple):
    """A rule. ``error``: the job goes wrong. ``warning``: it may go wrong. ``note``: have a look.

    ``message`` and ``fix`` are those of every hit that has none of its own. The page of the rule shows the
    reason, ``bad``, a script that breaks this rule alone, ``good``, a script that breaks none, and the files
    beside them. These texts are indented.
    """

    id: str
    severity: str
    title: str
    reason: str
    message: str
    fix: str
    bad: str
    good: str
    find: Callable[[Script], Iterator[Hit]]
    files: Mapping[str, str] = {}
    schedulers: tuple[str, ...] = ()  # or jobgen's commands for them; without them all scripts

    def concerns(self, script: Script) -> bool:
        """Return whether the rule is about scripts of this scheduler."""
        own = (script.dialect.name, script.dialect.command_name)
        return not self.schedulers or any(name in self.schedulers for name in own)


def rule(
    id: str,
    severity: str,
    title: str,
    reason: str,
    *,
    message: str = "",
    fix: str = "",
    bad: str,
    good: str,
    files: Mapping[str, str] = {},
    schedulers: tuple[str, ...] = (),
) -> Callable[[Callable[[Script], Iterator[Hit]]], Rule]:
    """Make a rule of the function that yields its hits in a script."""
    return lambda find: Rule(id, severity, title, reason, message, fix, bad, good, find, files, schedulers)
