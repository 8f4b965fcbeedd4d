"""Application of all rules to a script, except those that comments of the script disable."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from jobgen.check.rule import ERROR, NOTE, Rule
from jobgen.check.rules.placeholders import BY_COMMAND_LINE, EXPANDS_NOTHING
from jobgen.check.rules.table import RULES
from jobgen.errors import JobgenError, nearest, shown
from jobgen.jobfile.tables import JOB_FILE
from jobgen.rendering.runtime import MARK
from jobgen.script import directives
from jobgen.script.script import Hit, Script
from jobgen.script.submitted import scripts

_LARGEST = 1_000_000  # bytes; no batch script is this long
_HEAD, _DIRECTIVE = 65536, rb"(?m)^#\s?(SBATCH|PBS)\s"  # bytes that are read of each file of a folder


class Finding(NamedTuple):
    """A problem in a script."""

    file: str
    line: int
    rule: str
    severity: str
    reason: str
    fix: str
    source: str = ""  # the text of the line


def scripts_in(paths: Sequence[str]) -> list[str]:
    """Return these files, and of each folder the job files and the files with directives in it and below.

    Raises:
        JobgenError: a folder has none.
    """
    found: list[str] = []
    for path in paths:
        below = sorted(_scripts_below(path)) if os.path.isdir(path) else [path]
        if not below:
            raise JobgenError(
                f"{shown(path)} (command line): neither a job file nor a file with directives is in it"
            )
        found += below
    return list(dict.fromkeys(found))


def _scripts_below(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path) and (name == JOB_FILE or _has_directives(path)):
                yield path


def _has_directives(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            start = file.read(_HEAD)
    except OSError:
        return False
    return b"\0" not in start and start.startswith(b"#") and re.search(_DIRECTIVE, start) is not None


def check_file(
    path: str,
    scheduler: str | None = None,
    version: str | None = None,
    say: Callable[[str], object] | None = None,
) -> list[Finding]:
    """Return the findings of a script, or of the script of a job file, by the lines of the file; ``-`` is
    standard input.

    ``version`` is that of the scheduler. ``say`` prints a guess between schedulers with the same prefix.

    Raises:
        JobgenError: the file cannot be read, or is too long for a script.
    """
    silenced = _silenced_beside(path)
    return [one for one in _check(path, scheduler, version, say) if one.rule not in silenced]


def _silenced_beside(path: str) -> frozenset[str]:
    """Return the rules that the job file, or the one beside a script, silences."""
    file = path if path.endswith(".toml") else os.path.join(os.path.dirname(path), JOB_FILE)
    if not os.path.isfile(file):
        return frozenset()
    from jobgen.jobfile.reader import silenced_rules  # late: few scripts have a job file beside them

    for name in sorted((names := silenced_rules(file)) - RULES.keys()):
        raise JobgenError(f"silence = {shown(name)} ({file}): there is no such rule{nearest(name, RULES)}")
    return names


def _check(
    path: str, scheduler: str | None, version: str | None, say: Callable[[str], object] | None
) -> list[Finding]:
    if path.endswith(".toml"):
        return _check_job(path, version, say)
    source = read_source(path)
    folder = None if path == "-" else os.path.dirname(os.path.abspath(path))
    name = "<stdin>" if path == "-" else path
    if scheduler is None and say is not None:
        lines = source.decode("utf-8", "replace").splitlines()
        if reason := directives.recognized(lines).reason:
            say(f"{name}: {reason}")
    return check(source, name, scheduler, folder, version)


def _check_job(path: str, version: str | None, say: Callable[[str], object] | None) -> list[Finding]:
    from jobgen.check.job_file import rendered  # late: scripts need no job file

    job = rendered(path, say)
    folder = os.path.dirname(os.path.abspath(path))
    lines = job.text.splitlines()
    found = set()
    for one in check(job.script.encode(), path, job.scheduler, folder, version):
        line = job.line(one.source)
        found.add(one._replace(line=line, source=lines[line - 1]))
    return sorted(found, key=_order)


def _order(finding: Finding) -> tuple[int, str, str]:
    return finding.line, finding.rule, finding.reason


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
                line = one.line + above
                found.add(one._replace(line=line, source=script.line(line)))
    return sorted(found, key=_order)


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
        _finding(rule, hit, script, file)
        for rule in RULES.values()
        if rule.id not in whole and rule.concerns(script)
        for hit in rule.find(script)
        if hit.line < runtime and rule.id not in by_line.get(hit.line, ())
        if (hit.level or rule.severity) != ERROR
        or hit.line not in script.placeholders  # which are no values yet
    }


def _finding(rule: Rule, hit: Hit, script: Script, file: str) -> Finding:
    level, reason, fix = hit.level or rule.severity, hit.message or rule.message, hit.fix or rule.fix
    if hit.line in script.unexpanded and level == ERROR and EXPANDS_NOTHING not in reason:
        reason, fix = f"{reason}; {script.dialect.command} {EXPANDS_NOTHING}", BY_COMMAND_LINE
    severity = NOTE if hit.line in script.gaps else level
    return Finding(file, hit.line, rule.id, severity, reason, fix, script.line(hit.line))


def _silenced(script: Script) -> tuple[set[str], dict[int, set[str]]]:
    """Return the rules disabled for the whole file, and those disabled by line.

    A comment above the first command is for the file, below for the next line, at the end of a line for this
    line. A line that a backslash continues is one with the next.
    """
    whole: set[str] = set()
    by_line: dict[int, set[str]] = {}
    if not script.disabling:
        return whole, by_line
    first = script.directives.first_command or sys.maxsize
    comments = dict(script.disabling)
    waiting: set[str] = set()  # disabled in the next line that is neither empty nor a comment
    joined: list[int] = []
    for number, line in enumerate(script.lines, 1):
        names = comments.get(number, set())
        alone = line.lstrip().removeprefix("#").lstrip().startswith("jobgen:")
        if alone and number < first:
            whole |= names
        elif alone:
            waiting |= names
        elif line.strip() and (names or not line.lstrip().startswith("#")):
            joined.append(number)
            waiting |= names
            if not line.rstrip("\r").endswith("\\"):
                by_line |= dict.fromkeys(joined, waiting)
                joined, waiting = [], set()
    return whole, by_line
