"""The type of a rule, and the decorator that turns a function into a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple, ParamSpec

from jobgen.script.script import Hit, Script

ERROR, WARNING, NOTE = "error", "warning", "note"  # the levels of SARIF
_Texts = ParamSpec("_Texts")
_Find = Callable[[Script], Iterator[Hit]]


class Rule(NamedTuple):
    """A rule. ``error``: the job fails. ``warning``: it may fail. ``note``: worth a look.

    ``message`` and ``fix`` are the defaults of its hits. The page of the rule shows the reason, ``bad``, a
    script that breaks only this rule, ``good``, a script that breaks none, and the files beside them. These
    texts are indented. The findings of a rule of ``style`` follow those about the job. With a ``summary``
    several findings in a file become one note.
    """

    id: str
    severity: str
    title: str
    reason: str
    message: str
    fix: str
    bad: str
    good: str
    find: _Find
    files: Mapping[str, str] = {}
    schedulers: tuple[str, ...] = ()  # or jobgen's commands for them; without them all scripts
    style: bool = False
    summary: str = ""

    def concerns(self, script: Script) -> bool:
        """Return whether the rule is about scripts of this scheduler."""
        own = (script.dialect.name, script.dialect.scheduler.command_name)
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
    good: str | Mapping[str, str],
    files: Mapping[str, str] = {},
    schedulers: tuple[str, ...] = (),
    style: bool = False,
    summary: str = "",
) -> Callable[[_Find], Rule]:
    """Turn a function that yields hits in a script into a rule.

    ``good`` may name the lines of ``bad`` that differ, each with the line in its place, or with nothing.
    """
    whole = good if isinstance(good, str) else _with(bad, good)
    texts = (id, severity, title, reason, message, fix, bad, whole)
    return lambda find: Rule(*texts, find, files, schedulers, style, summary)


def _with(script: str, others: Mapping[str, str]) -> str:
    """Return a script with other lines in the place of some; an empty one removes a line."""
    lines = ((line, line.strip()) for line in script.split("\n"))
    return "\n".join(
        line.replace(text, others.get(text, text)) for line, text in lines if others.get(text) != ""
    )


def _once(rule: Callable[_Texts, Callable[[_Find], Rule]]) -> Callable[_Texts, Callable[[_Find], Rule]]:
    return lambda *texts, **more: lambda find: rule(*texts, **more)(lambda script: islice(find(script), 1))


rule_once = _once(rule)  # of which a script has the first hit only
