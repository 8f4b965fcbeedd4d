"""The command ``jobgen check``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import click

from jobgen.commands.parameter_types import OptionType
from jobgen.errors import JobgenError, nearest, shown, visible
from jobgen.schedulers.table import SCHEDULERS
from jobgen.schedulers.versions import version
from jobgen.script.dialects.table import SCRIPT_SCHEDULERS
from jobgen.values.parsers import choice
from jobgen.values.text_files import is_job_file_name

if TYPE_CHECKING:
    from jobgen.check.checker import Finding
    from jobgen.check.files import FileChecks

_TITLES = ", ".join(SCHEDULERS[name].title for name in SCRIPT_SCHEDULERS if name in SCHEDULERS)
_FORMATS = ("text", "json", "sarif", "github")
_SEVERITIES = ("error", "warning", "note")  # the worst first


def _names(text: str) -> tuple[str, ...]:
    """Return the names of rules in a list with commas."""
    from jobgen.check.rules.table import RULES

    words = tuple(word.strip() for word in text.split(","))
    for word in words:
        if word not in RULES:
            raise ValueError(f"there is no rule {shown(word)}: jobgen check --list{nearest(word, RULES)}")
    return words


def _rules_option(name: str, about: str) -> click.Option:
    return click.Option([name], type=OptionType(_names), metavar="RULE,...", multiple=True, help=about)


_OPTIONS: list[click.Parameter] = [
    click.Argument(["names"], metavar="FILE...", nargs=-1),
    click.Option(
        ["--format", "form"],
        type=OptionType(choice(*_FORMATS)),
        metavar="|".join(_FORMATS),
        default="text",
        help="Format of the output: sarif is SARIF 2.1.0, github annotates a workflow.  [default: text]",
    ),
    click.Option(
        ["--severity"],
        type=OptionType(choice(*_SEVERITIES)),
        metavar="|".join(_SEVERITIES),
        default="note",
        help="Report this severity and worse.  [default: note]",
    ),
    click.Option(["--strict"], is_flag=True, help="End with status 1 after warnings, too."),
    click.Option(["--style"], is_flag=True, help="List each finding on shell style, not a summary."),
    _rules_option("--select", "Apply these rules only. Repeatable."),
    _rules_option("--ignore", "Leave these rules out. Repeatable."),
    click.Option(
        ["--scheduler"],
        type=OptionType(choice(*SCRIPT_SCHEDULERS)),
        metavar="|".join(SCRIPT_SCHEDULERS),
        help="Dialect of the scripts.  [default: by its directives]",
    ),
    click.Option(
        ["--scheduler-version"],
        type=OptionType(version),
        metavar="VERSION",
        help="Version of the scheduler, such as 23.02.  [default: rules of all versions]",
    ),
    click.Option(
        ["--site"],
        metavar="NAME",
        help="Apply the rules of a site: its scheduler, version and required directives.",
    ),
    click.Option(["--fix"], is_flag=True, help="Print the safe corrections as a diff."),
    click.Option(["--write"], is_flag=True, help="With --fix: write the corrections into the files."),
    click.Option(["--list", "listing"], is_flag=True, help="Print all rules."),
    click.Option(
        ["--explain"],
        type=OptionType(_names),
        metavar="RULE",
        help="Print the text of a rule, as jobgen help RULE does.",
    ),
]


@click.pass_obj
def _check(
    more: tuple[str, ...],
    names: tuple[str, ...],
    form: str,
    severity: str,
    strict: bool,
    style: bool,
    select: tuple[tuple[str, ...], ...],
    ignore: tuple[tuple[str, ...], ...],
    scheduler: str | None,
    scheduler_version: str | None,
    site: str | None,
    fix: bool,
    write: bool,
    listing: bool,
    explain: tuple[str, ...] | None,
) -> int:
    from jobgen.check import files, formats  # late: the many rules are slow to import
    from jobgen.check.rules.table import RULES
    from jobgen.commands.terminal import is_terminal, progress

    if listing or explain:
        _print_rules(() if listing else explain or ())
        return 0
    _refuse(names + more, form, fix, write)  # more: the arguments after --
    scripts = files.scripts_in(names + more)
    say = partial(click.echo, err=True)
    checks = _at(files.FileChecks(scheduler, scheduler_version, (), style, say), site)
    chosen = ({*chain(*select)} or {*RULES}) - {*chain(*ignore)}
    others, unread, messages = 0, False, set[str]()

    def findings(path: str, source: bytes | None = None) -> list[Finding]:
        reported = _SEVERITIES[: _SEVERITIES.index(severity) + 1]
        every = checks.findings(path, source)
        return [one for one in every if one.rule in chosen and one.severity in reported]

    def checked(path: str) -> list[Finding]:
        """Return the findings of a file; what is no script, or cannot be read, has a message."""
        nonlocal others, unread
        try:
            return _fix(path, findings, write) if fix else findings(path)
        except JobgenError as error:
            others += 1
            if len(scripts) == others and not messages:  # nothing was checked
                raise
            unread |= not isinstance(error, files.NoScript)
            text = f"jobgen: {visible(str(error))}"
            if text not in messages:  # a fault of a table [check] is that of many scripts
                say(text)
            messages.add(text)
            return []

    with progress("checking scripts", "-" not in scripts) as work:  # a script may be typed
        report = [*dict.fromkeys(one for path in work.of(scripts) for one in checked(path))]  # each once
    if not fix:
        _print(report, form)
    if form == "text" and others < len(scripts):
        advice = "; jobgen help RULE explains a rule" if report and is_terminal(sys.stdout) else ""
        say(formats.summary(report, len(scripts) - others) + " after these fixes" * fix + advice)
    return 2 if unread else int(any(one.severity in ("error", *["warning"] * strict) for one in report))


def _at(checks: FileChecks, site: str | None) -> FileChecks:
    """Return the checks with those of a site, if one is named."""
    if site is None:
        return checks
    from jobgen.sites.loader import load

    return checks.at(load(site, f"--site {shown(site)} (command line)"))


def _print_rules(names: Sequence[str]) -> None:
    """Print the texts of these rules, or the list of all."""
    from jobgen.check import formats
    from jobgen.check.rules.table import RULES

    texts = [formats.text_of(RULES[name]) + "\n" for name in names]
    click.echo("\n".join(texts) if names else formats.as_list(), nl=False)


def _refuse(names: Sequence[str], form: str, fix: bool, write: bool) -> None:
    """Raise JobgenError for options that do not go together."""
    if not names:
        raise JobgenError("check: name one script at least, or - for standard input")
    if fix and form != "text":
        raise JobgenError(f"--fix (command line): prints a diff; leave out --format {form}")
    if write and not fix:
        raise JobgenError("--write (command line): is only for --fix")


def _fix(path: str, findings: Callable[..., list[Finding]], write: bool) -> list[Finding]:
    """Print the diff of the fixes of a script, and write them; return the findings that remain."""
    from jobgen.check import files, fix
    from jobgen.rendering.script_file import rewrite

    if path == "-" and write:
        raise JobgenError("--write (command line): standard input cannot be written; name a file")
    if is_job_file_name(path):
        click.echo(f"jobgen: note: {visible(path)}: --fix mends scripts, not job files", err=True)
        return findings(path)
    old = files.read_script(path)
    new = fix.fixed(old, partial(findings, path))
    click.echo(fix.difference(path, old, new), nl=False)
    if write and new != old:
        rewrite(path, new)
    return findings(path, new)


def _print(findings: Sequence[Finding], form: str) -> None:
    from jobgen.check import formats
    from jobgen.commands.terminal import is_terminal

    if form == "text" and is_terminal(sys.stdout):
        text = formats.for_terminal(findings, colours=not os.environ.get("NO_COLOR"))
    else:
        text = formats.FORMATS[form](findings)
    click.echo(text, nl=False, color=True)


check = click.Command(
    "check",
    callback=_check,
    params=_OPTIONS,
    short_help="Report errors in batch scripts and job files.",
    help=f"Report errors in batch scripts for {_TITLES} or a plain shell, and in job files. A FILE may be a "
    "folder, whose job files and scripts with directives are read, or - for standard input. The status is 1 "
    "if there are errors, and 2 if nothing that is named is a script.",
    epilog="Example: jobgen check job.sh",
)
