"""The files that are checked: scripts, job files and folders, each with the job file beside it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from jobgen.check.checker import Finding, check, disabled, in_order
from jobgen.check.rule import ERROR, NOTE, WARNING
from jobgen.check.rules.credentials import secret_in_script
from jobgen.check.rules.policy import REQUIRED
from jobgen.check.rules.table import RULES
from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.jobfile.tables import JOB_FILE
from jobgen.launch.command_line import begins_launch
from jobgen.rendering.hooks import complaint
from jobgen.rendering.runtime import MADE_BY
from jobgen.script import directives
from jobgen.script.command_kinds import STATE, TOOLS
from jobgen.script.dialects.table import of_script
from jobgen.script.script import Policy, disabling
from jobgen.script.syntax import LOOPS, has_errors, parse
from jobgen.spec import COMMAND_LINE, SiteName
from jobgen.values.text_files import is_job_file_name, is_script_name

if TYPE_CHECKING:
    from jobgen.jobfile.errors import Path
    from jobgen.jobfile.schema import CheckTable
    from jobgen.sites.site_file import Site

_LEVELS = (ERROR, WARNING, NOTE)
_NAMED = 8  # lines in a summary
_MOST = 50_000  # files in and below a folder
_LARGEST = 1_000_000  # bytes; no batch script is this long
_HEAD, _DIRECTIVE = 65536, rb"(?m)^#\s?(SBATCH|PBS)\s"  # bytes that are read of each file of a folder
# The name of the output of a job, which may begin with its script.
_LOG = re.compile(r"\.(?:out|log|err|[oe]\d+)$")
_DOCUMENTS = (".md", ".rst", ".html", ".tex", ".ipynb")  # which show scripts


# The ends of the names of texts that are no scripts unless they have a directive, besides logs.
_OTHER_TEXT = re.compile(
    r"\.(?:md|rst|txt|py|ipynb|jl|lua|r|rb|def|cfg|json|ya?ml|[ct]sv|html?|xml|cc?|cpp|cu|h)$", re.I
)
# With a name behind it the shell runs the file of that name, not this one: #!/bin/bash nextflow
_SHELL = re.compile(rb"#!.*?(?:\b|_)(?:ba|da|k|z|c|tc|a)?sh\b(?![ \t]+[A-Za-z])")
_BLOCKS = ("if_statement", "case_statement", "declaration_command", *LOOPS)


class NoScript(JobgenError):
    """A file that can be read, but is no batch script."""


class FileChecks(NamedTuple):
    """How files are read: as those of a scheduler and its version, or of the one that a file names itself.

    ``site`` is the path of a site file. ``policies`` are added to that of the job file beside a script,
    ``silence`` to the rules that it silences.
    ``style``: each finding of a rule that has a summary is returned, not the summary. ``say`` prints a guess
    between schedulers, and warnings on a job.
    """

    scheduler: str | None = None
    version: str | None = None
    policies: tuple[Policy, ...] = ()
    style: bool = False
    say: Callable[[str], object] = lambda text: None
    silence: tuple[str, ...] = ()
    site: str | None = None

    def at(self, site: Site) -> FileChecks:
        """Return how the scripts of a site are read.

        Raises:
            JobgenError: the site has another scheduler, or its table [check] is wrong.
        """
        if self.scheduler and of_script(self.scheduler).scheduler.command_name != site.file.scheduler:
            has = f"{site.title} has {site.scheduler.title}"
            raise JobgenError(f"--scheduler {self.scheduler} (command line): {has}; leave one of the two out")
        required = (name for name in site.file.mandatory if name.startswith("-") or name in REQUIRED)
        checks = self._replace(
            scheduler=self.scheduler or site.scheduler.name,
            version=self.version or site.file.scheduler_version or None,
            site=site.path,
        )
        return checks._with(f"the site {site.name}", site.file.check, site.place, required)

    def _with(
        self, source: str, table: CheckTable, place: Callable[[Path], str], required: Iterable[str] = ()
    ) -> FileChecks:
        """Return the checks with those of a table [check]; ``place`` returns the place of its keys."""
        for name in table.silence:
            if name not in RULES:
                where = f"silence = {shown(name)} ({place(('check', 'silence'))})"
                raise JobgenError(f"{where}: there is no such rule{nearest(name, RULES)}")
        for name in table.require:
            if name not in REQUIRED and not name.startswith("-"):
                where = f"require = {shown(name)} ({place(('check', 'require'))})"
                allowed = one_of((*REQUIRED, "the beginning of a directive"))
                raise JobgenError(f"{where}: must be {allowed}{nearest(name, REQUIRED)}")
        policy = Policy(source, (*table.require, *required), table.forbidden_modules)
        return self._replace(policies=(*self.policies, policy), silence=(*self.silence, *table.silence))

    def findings(self, path: str, source: bytes | None = None) -> list[Finding]:
        """Return the findings of a script, or of the script of a job file by the lines of the file. The worst
        come first, of these the ones about the style of the shell last.

        ``path`` may be ``-`` for standard input. ``source`` replaces the content of a script.

        Raises:
            JobgenError: the file cannot be read, or is too long for a script.
            NoScript: it is empty, no text, or a text of another kind.
        """
        checks = self._with_table(path)
        if is_job_file_name(path):
            return checks._of_job(path)
        if source is None:
            source = read_script(path)
            self._say_guess(path, source)
        folder = None if path == "-" else os.path.dirname(os.path.abspath(path))
        found = check(source, _name(path), self.scheduler, folder, self.version, checks.policies)
        return checks._report(found)

    def _with_table(self, path: str) -> FileChecks:
        """Return the checks with those of the nearest table [check] for a file."""
        for file in _tables_for(path):
            from jobgen.jobfile.reader import check_table  # late: few scripts have a job file beside them

            if (table := check_table(file)) is not None:
                return self._with(os.path.basename(file), *table)
        return self

    def _report(self, found: Iterable[Finding]) -> list[Finding]:
        """Return the findings that are no longer silenced, the worst first."""
        kept = [one for one in found if one.rule not in self.silence]
        kept = kept if self.style else list(_summarized(kept))
        return sorted(kept, key=lambda one: (_LEVELS.index(one.severity), RULES[one.rule].style))

    def _say_guess(self, path: str, source: bytes) -> None:
        """Say which scheduler a script is for, or that it has directives of another one than was chosen."""
        lines = source.decode("utf-8", "replace").removesuffix("\n").split("\n")
        guess = directives.recognized(lines)
        if self.scheduler is None:
            made = any(re.match(MADE_BY, line) for line in lines[:5])  # the reader knows whose it is
            if not made and guess.reason:
                self.say(f"{_name(path)}: {guess.reason}")
            return
        own, other = of_script(self.scheduler).scheduler, of_script(guess.scheduler).scheduler
        if own.prefix != other.prefix and not any(line.startswith(own.prefix or "\n") for line in lines):
            whose = f"which ignores its directives: they are for {other.title}"
            self.say(f"{_name(path)}: read as {own.title}, {whose}")

    def _of_job(self, path: str) -> list[Finding]:
        """Return the findings of a job file; none of one that has no job."""
        from jobgen.check.job_file import line_of, rendered  # late: scripts need no job file
        from jobgen.jobfile.reader import has_job

        if not has_job(path):
            self.say(f"{path}: has no job: its table [check] is for the scripts beside it and below")
            return []
        site = None if self.site is None else SiteName(self.site, COMMAND_LINE)
        job = rendered(path, self.say, self.scheduler, site)
        checks = self if job.site is None or site is not None else self.at(job.site)
        folder = os.path.dirname(os.path.abspath(path))
        lines = job.text.splitlines()
        found = set()
        for one in check(job.script.encode(), path, job.scheduler, folder, checks.version, checks.policies):
            if one.file != path:
                found.add(one)
                continue
            line = job.line(one.source)
            if one.rule != secret_in_script.id:  # those of the job file follow, with their options
                found.add(one.moved(line, lines[line - 1]))
        for secret in job.secrets:
            line = line_of(secret.origin)
            row = secret_in_script
            one = Finding(path, line, row.id, row.severity, secret.fault, secret.remedy)
            found.add(one.moved(line, lines[line - 1]))
        return checks._report(sorted(_without_disabled(found, path, lines), key=in_order))


def _without_disabled(found: Iterable[Finding], path: str, lines: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings of a job file that its comments do not disable."""
    first = next((number for number, line in enumerate(lines, 1) if re.match(r"\s*[^\s#]", line)), 1)
    whole, by_line = disabled(lines, disabling(lines), first)
    for one in found:
        if one.rule not in whole and (one.file != path or one.rule not in by_line.get(one.line, ())):
            yield one


def _name(path: str) -> str:
    return "<stdin>" if path == "-" else path


def _summarized(findings: list[Finding]) -> Iterator[Finding]:
    """Yield the findings; of a rule with a summary one note, and the warnings with a reason of their own."""
    by_rule: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        rule = RULES[one.rule]
        if not rule.summary or (one.severity == WARNING and rule.message and one.reason != rule.message):
            yield one
        else:
            by_rule.setdefault((one.rule, one.file), []).append(one)
    for (name, _), found in by_rule.items():
        summary = RULES[name].summary
        if len(found) == 1:
            yield found[0]._replace(severity=NOTE)
        else:
            lines = list(dict.fromkeys(str(one.line) for one in found))
            more = f" and {len(lines) - _NAMED} more" if len(lines) > _NAMED else ""
            reason = f"{summary}, in {len(found)} places (lines {', '.join(lines[:_NAMED])}{more})"
            edits = tuple(edit for one in found for edit in one.edits)
            fix = f"{RULES[name].fix}; jobgen check --style reports each"
            parts = tuple(change for one in found for change in one.changes)
            yield found[0]._replace(severity=NOTE, reason=reason, fix=fix, edits=edits, changes=parts)


def _tables_for(path: str) -> Iterator[str]:
    """Yield the files that may have the table [check] for a file, the nearest first: a job file itself, those
    beside it and above, up to the folder of the repository, else to the current one."""
    if is_job_file_name(path):
        yield path
    folder = os.path.dirname(os.path.abspath(path))
    above = [folder, *map(str, PurePath(folder).parents)]
    top = next((one for one in above if os.path.exists(os.path.join(one, ".git"))), os.getcwd())
    for one in above[: above.index(top) + 1 if top in above else 1]:
        if os.path.isfile(file := os.path.join(os.path.relpath(one), JOB_FILE)):
            yield os.path.normpath(file)


def scripts_in(paths: Sequence[str]) -> list[str]:
    """Return these files, and of each folder the files with a job and those with directives in it and below.

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
    """Yield the job files and scripts in a folder and below, on its file system."""
    device, count = os.stat(folder).st_dev, 0
    for place, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if one[0] != "." and _device(os.path.join(place, one)) == device]
        count += len(names)
        if count > _MOST:
            raise JobgenError(
                f"{shown(folder)} (command line): has more than {_MOST:,} files: name the folders of scripts"
            )
        for name in names:
            path = os.path.join(place, name)
            if not os.path.isfile(path):
                continue
            other = (
                name[0] == "." or name.endswith((".toml", "~", *_DOCUMENTS)) or _LOG.search(name) is not None
            )
            if (name == JOB_FILE and _has_job(path)) or (not other and _has_directives(path)):
                yield path


def _has_job(path: str) -> bool:
    """Return whether a job file has a job, or cannot be read, which its check reports."""
    from jobgen.jobfile.reader import has_job

    try:
        return has_job(path)
    except JobgenError:
        return True


def _device(path: str) -> int | None:
    try:
        return os.lstat(path).st_dev
    except OSError:
        return None


def _has_directives(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            start = file.read(_HEAD)
    except OSError:
        return False
    return b"\0" not in start and start.startswith(b"#") and re.search(_DIRECTIVE, start) is not None


def read_script(path: str) -> bytes:
    """Return the bytes of a file that may be a batch script."""
    source = read_source(path)
    if what := _other_kind(path, source):
        raise NoScript(f"{shown(path)} (command line): {what}")
    return source


def _other_kind(path: str, source: bytes) -> str:
    """Return what a file is that is no script; empty for a script."""
    if not source.strip():
        return "is empty"
    if source.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is in UTF-16, which no shell reads: save it in UTF-8"
    if b"\0" in source:
        return "is no text, so no batch script"
    if path.endswith("~") or os.path.basename(path).startswith((".goutputstream-", ".#")):
        return "is the backup copy that an editor keeps of a file"
    if _LOG.search(path) and has_errors(source):
        return "is no batch script: it has the name of the output of a job, and no shell can read it"
    if re.search(_DIRECTIVE, source) or _SHELL.match(source):
        return ""
    if source.startswith(b"#!"):
        return "is a program of another language, and has no directive of PBS or Slurm"
    if _OTHER_TEXT.search(path) or _LOG.search(path) or not (is_script_name(path) or _is_like_script(source)):
        return "is no batch script: it has no #! line and no directive of PBS or Slurm"
    return ""


def _is_like_script(source: bytes) -> bool:
    """Return whether bash can read a text, and its first command is one that scripts begin with."""
    tree = parse(source)
    first = next(tree.all("command", *_BLOCKS), None)
    name = first.get("name") if first is not None and first.type == "command" else None
    word = os.path.basename(name.text) if name is not None else ""
    known = (first is not None and first.type in _BLOCKS) or word in TOOLS | STATE or begins_launch(word)
    return known and not tree.damaged and not complaint(source.decode("utf-8", "replace"))


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
