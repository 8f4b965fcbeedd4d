"""Application of all rules to a script, except those that comments of the script disable."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from jobgen.check.rule import NOTE
from jobgen.check.rules.table import RULES
from jobgen.errors import JobgenError, shown
from jobgen.rendering.runtime import MARK
from jobgen.script import directives
from jobgen.script.script import Script
from jobgen.script.submitted import scripts

_LARGEST = 1_000_000  # bytes; no batch script is this long


class Finding(NamedTuple):
    """A problem in a script."""

    file: str
    line: int
    rule: str
    severity: str
    reason: str
    fix: str


def check_file(
    path: str,
    scheduler: str | None = None,
    version: str | None = None,
    say: Callable[[str], object] | None = None,
) -> list[Finding]:
    """Return the findings of a script; ``-`` is standard input.

    ``version`` is that of the scheduler. ``say`` prints a guess between schedulers with the same prefix.

    Raises:
        JobgenError: the file cannot be read, or is too long for a script.
    """
    source = read_source(path)
    folder = None if path == "-" else os.path.dirname(os.path.abspath(path))
    name = "<stdin>" if path == "-" else path
    if scheduler is None and say is not None:
        lines = source.decode("utf-8", "replace").splitlines()
        if reason := directives.recognized(lines).reason:
            say(f"{name}: {reason}")
    return check(source, name, scheduler, folder, version)


def read_source(path: str) -> bytes:
    """Return the bytes of a script; ``-`` is standard input."""
    try:
        if path == "-":
            source = sys.stdin.buffer.read(_LARGEST + 1)
        else:
            with open(path, "rb") as file:
                source = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise JobgenError(f"{shown(path)} (command line): cannot be read: {reason}") from None
    if len(source) > _LARGEST:
        raise JobgenError(
            f"{shown(path)} (command line): is longer than a megabyte, the limit of a batch script"
        )
    return source


def check(
    source: bytes,
    file: str = "",
    scheduler: str | None = None,
    folder: str | None = None,
    version: str | None = None,
) -> list[Finding]:
    """Return the findings of a script's text; the files that it names are searched in ``folder``.

    The scripts that it hands to sbatch or qsub are read, too.
    """
    script = _script(source, scheduler, folder, version)
    whole, _ = _silenced(script)
    found = _findings(script, file)
    for above, text, has_options in scripts(script):
        for one in _findings(_script(text, scheduler, folder, version), file):
            if one.rule not in whole and not (has_options and one.rule == "no-walltime"):
                found.add(one._replace(line=one.line + above))
    return sorted(found, key=lambda finding: (finding.line, finding.rule, finding.reason))


def _script(source: bytes, scheduler: str | None, folder: str | None, version: str | None) -> Script:
    lines = source.decode("utf-8", "replace").split("\n")
    return Script(
        source, scheduler or directives.guess([line.rstrip("\r") for line in lines]), folder, version
    )


def _findings(script: Script, file: str) -> set[Finding]:
    whole, by_line = _silenced(script)
    # In a script of jobgen only the job part, which users edit, is checked.
    marked = (number for number, line in enumerate(script.lines, 1) if line.startswith(MARK))
    runtime = next(marked, sys.maxsize)
    return {
        Finding(
            file,
            hit.line,
            rule.id,
            NOTE if hit.line in script.gaps else hit.level or rule.severity,
            hit.message or rule.message,
            hit.fix or rule.fix,
        )
        for rule in RULES.values()
        if rule.id not in whole and rule.concerns(script)
        for hit in rule.find(script)
        if hit.line < runtime and rule.id not in by_line.get(hit.line, ())
    }


def _silenced(script: Script) -> tuple[set[str], dict[int, set[str]]]:
    """Return the rules disabled for the whole file, and those disabled by line.

    A comment above the first command is for the file, below for the next line.
    """
    whole: set[str] = set()
    by_line: dict[int, set[str]] = {}
    first = script.directives.first_command or sys.maxsize
    for number, names in script.disabling:
        if number < first:
            whole |= names
    waiting: set[str] = set()  # disabled in the next line that is neither empty nor a comment
    comments = dict(script.disabling)
    for number, line in enumerate(script.lines, 1) if comments else ():
        if line.strip() and not line.lstrip().startswith("#"):
            by_line[number], waiting = waiting, set()
        waiting |= comments.get(number, set())
    return whole, by_line
