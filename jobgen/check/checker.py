"""Application of all rules to a script, except those that comments of the script disable."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from jobgen.check.own_runtime import shortened
from jobgen.check.places import Change, changes, columns, columns_of
from jobgen.check.rule import ERROR, NOTE, WARNING, Rule
from jobgen.check.rules.placeholders import BY_COMMAND_LINE, EXPANDS_NOTHING, literal_variable, placeholder
from jobgen.check.rules.table import RULES
from jobgen.check.trials import is_trial
from jobgen.rendering.runtime import MARK
from jobgen.schedulers.request import DirectiveOption
from jobgen.script import directives
from jobgen.script.beside import started
from jobgen.script.request import settings
from jobgen.script.script import Edit, Hit, Policy, Script
from jobgen.script.submitted import scripts

# The options of the command may be what is missing.
_OF_OPTIONS = ("no-walltime", "missing-directive", "bad-select")
# The scheduler accepts these values, and those of the command replace them.
_OF_VALUES = ("array-output", "literal-variable", "output-directory", "output-variable", "repeated-directive")

# They warn of the loss of a run, which is a small one in a trial.
_OF_RUNS = (
    *("bare-wait", "home-directory", "lost-status", "no-errexit"),
    *("nodes-mismatch", "output-directory", "ranks-mismatch", "shared-hostfile", "sleep-as-sync"),
)

# Marks of msub of Moab, and of the sbatch of JARVICE.
_OTHER_COMMAND = re.compile(r"\bMOAB_JOB|/JARVICE\b")


class Finding(NamedTuple):
    """A problem in a script, from a column of its line to another one, which is not included.

    ``edits`` fix it; ``changes`` are the same by lines and columns.
    """

    file: str
    line: int
    rule: str
    severity: str
    reason: str
    fix: str
    source: str = ""  # the text of the line
    edits: tuple[Edit, ...] = ()
    column: int = 0
    end_column: int = 0
    changes: tuple[Change, ...] = ()

    def moved(self, line: int, source: str) -> Finding:
        """Return the finding at the line of another file, which has no edits."""
        at, end = columns(source, self.reason)
        return self._replace(line=line, source=source, edits=(), changes=(), column=at, end_column=end)


def check(
    source: bytes,
    file: str = "",
    scheduler: str | None = None,
    folder: str | None = None,
    version: str | None = None,
    policies: tuple[Policy, ...] = (),
) -> list[Finding]:
    """Return the findings of a script's text; the files that it names are searched in ``folder``.

    The scripts that it hands to sbatch or qsub are read, too, and those beside it that it starts.
    """
    read = partial(_script, scheduler, folder, version, policies, os.path.basename(file))
    script = read(shortened(source))
    whole, _ = _silenced(script)
    found = _findings(script, file)
    for above, text, has_options, dollar in scripts(script):
        for one in _findings(read(text), file):
            if one.rule not in whole and not (has_options and one.rule in _OF_OPTIONS):
                line, reason, fix = one.line + above, _moved(one.reason, above), _moved(one.fix, above)
                fix = fix.replace("$", dollar)
                found.add(one.moved(line, script.line(line))._replace(reason=reason, fix=fix))
    return sorted(found, key=in_order) + sorted(_of_started(script, file, whole), key=in_order)


def _moved(text: str, above: int) -> str:
    """Return a text whose numbers of lines are those of a script around, with ``above`` more lines."""
    return re.sub(r"\bline (\d+)\b", lambda number: f"line {int(number[1]) + above}", text)


def _of_started(script: Script, file: str, silenced: set[str]) -> set[Finding]:
    """Return the findings of the scripts that a script starts, by their own files and lines."""
    folder = os.path.dirname(file)
    return {
        one._replace(edits=(), changes=())
        for name, inner in started(script)
        for one in _findings(inner, os.path.join(folder, name))
        if one.rule not in silenced
    }


def in_order(finding: Finding) -> tuple[str, int, str, str, int]:
    """Return the place of a finding among those of its file."""
    return finding.file, finding.line, finding.rule, finding.reason, finding.column


def _script(
    scheduler: str | None,
    folder: str | None,
    version: str | None,
    policies: tuple[Policy, ...],
    name: str,
    source: bytes,
) -> Script:
    dialect = scheduler or directives.guess(source.decode("utf-8", "replace").removesuffix("\n").split("\n"))
    return Script(
        *(source, dialect, folder, version, policies, name),
        named_scheduler=scheduler is not None,
        runs_as_it_stands=True,
    )


def _findings(script: Script, file: str) -> set[Finding]:
    whole, by_line = _silenced(script)
    # Nobody edits what a program has written: only errors are reported. In a script of jobgen only the job
    # part, which users edit, is checked.
    marked = (number for number, line in enumerate(script.lines, 1) if line.startswith(MARK))
    end = min(next(marked, sys.maxsize), script.last_line + 1)
    found = {
        _finding(rule, hit, script, file)
        for rule in RULES.values()
        if rule.id not in whole and rule.concerns(script)
        for hit in rule.find(script)
        if hit.line < end and rule.id not in by_line.get(hit.line, ())
        if hit.line not in script.placeholders
        or rule in (placeholder, literal_variable)  # others are about values that are not there yet
    }
    if script.given and not script.with_given and any(one.severity != NOTE for one in found):
        # What the options of a command that submits the script prevent holds only without them.
        kept = {_place(one) for one in _findings(dataclasses.replace(script, with_given=True), file)}
        found = {one if _place(one) in kept else one._replace(severity=NOTE) for one in found}
    return {one for one in found if one.severity == ERROR} if script.is_written else found


def _place(finding: Finding) -> tuple[str, int]:
    return finding.rule, finding.line


def _finding(rule: Rule, hit: Hit, script: Script, file: str) -> Finding:
    level, reason = hit.level or rule.severity, hit.message or rule.message
    job = script.dialect.job_number or script.dialect.variable("job_id") or "RANDOM"  # in arithmetic
    fix = re.sub(r"\bJOBID(?= %)", lambda _: job, hit.fix or rule.fix)  # in the port of a fix
    if hit.line in script.unexpanded and level == ERROR and EXPANDS_NOTHING not in reason:
        reason, fix = f"{reason}; {script.dialect.command} {EXPANDS_NOTHING}", BY_COMMAND_LINE
        if script.values.keys().isdisjoint(re.findall(r"\$\{?(\w+)", script.line(hit.line))):
            fix += ", unless a program fills it in"
    small = level == WARNING and rule.id in _OF_RUNS and is_trial(script)
    severity = NOTE if level != NOTE and (small or _is_unsure(hit, rule, script)) else level
    column, end = columns_of(script, hit, reason)
    parts = changes(script, hit) if hit.edits else ()
    source = script.line(hit.line)
    return Finding(file, hit.line, rule.id, severity, reason, fix, source, hit.edits, column, end, parts)


def _is_unsure(hit: Hit, rule: Rule, script: Script) -> bool:
    """Return whether the line is not submitted as it stands, or not by qsub or sbatch."""
    if hit.line not in script.head:
        return False
    by_others = script.callers.by_moab or _OTHER_COMMAND.search(script.tree.text) is not None
    return hit.line in script.gaps or by_others or _is_replaced(hit, rule, script)


def _is_replaced(hit: Hit, rule: Rule, script: Script) -> bool:
    """Return whether a command that submits the script gives the option that a hit is about, too."""
    if rule.id not in _OF_VALUES or not isinstance(hit.place, DirectiveOption):
        return False
    scheduler = script.dialect.scheduler
    keys = {key for key, _ in settings([hit.place], scheduler)}
    return keys <= {key for key, _ in settings(script.given, scheduler)}


def _silenced(script: Script) -> tuple[set[str], dict[int, set[str]]]:
    """Return the rules that the comments of a script disable for all of it, and by line."""
    first = script.directives.first_command or sys.maxsize
    return disabled(script.lines, script.disabling, first) if script.disabling else (set(), {})


def disabled(
    lines: Sequence[str], comments: Iterable[tuple[int, set[str]]], first: int
) -> tuple[set[str], dict[int, set[str]]]:
    """Return the rules disabled for the whole file, and those disabled by line.

    A comment above the first command is for the file, below for the next line, at the end of a line for this
    line. A line that a backslash continues is one with the next.
    """
    whole: set[str] = set()
    by_line: dict[int, set[str]] = {}
    names_of = dict(comments)
    waiting: set[str] = set()  # disabled in the next line that is neither empty nor a comment
    joined: list[int] = []
    for number, line in enumerate(lines, 1):
        names = names_of.get(number, set())
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
