"""The command ``jobgen check``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from jobgen.commands.parameter_types import OptionType
from jobgen.errors import JobgenError, nearest, shown
from jobgen.schedulers.table import SCHEDULERS
from jobgen.schedulers.versions import version
from jobgen.script.dialects.table import SCRIPT_SCHEDULERS
from jobgen.values.parsers import choice

if TYPE_CHECKING:
    from jobgen.check.checker import Finding

_TITLES = ", ".join(SCHEDULERS[name].title for name in SCRIPT_SCHEDULERS if name in SCHEDULERS)
_FORMATS = ("text", "json", "sarif", "github")
_SEVERITIES = ("error", "warning", "note")  # the worst first


def _names(text: str) -> tuple[str, ...]:
    """Return the names of rules in a list with commas."""
    from jobgen.check.rules.table import RULES

    words = tuple(text.split(","))
    for word in words:
        if word not in RULES:
            raise ValueError(f"there is no rule {shown(word)}: jobgen check --list{nearest(word, RULES)}")
    return words


def _rules_option(name: str, about: str) -> click.Option:
    return click.Option([name], type=OptionType(_names), metavar="RULE,...", multiple=True, help=about)


_OPTIONS: list[click.Parameter] = [
    click.Argument(["files"], metavar="FILE...", nargs=-1),
    click.Option(
        ["--format", "form"],
        type=OptionType(choice(*_FORMATS)),
        metavar="|".join(_FORMATS),
        default="text",
        help="Form of the findings; sarif is SARIF 2.1.0, github the workflow commands.  [default: text]",
    ),
    click.Option(
        ["--severity"],
        type=OptionType(choice(*_SEVERITIES)),
        metavar="|".join(_SEVERITIES),
        default="note",
        help="Report this severity and worse.  [default: note]",
    ),
    click.Option(["--strict"], is_flag=True, help="End with status 1 after warnings, too."),
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
        help="Take the scheduler, its version and the rules that do not apply from a site.",
    ),
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
    files: tuple[str, ...],
    form: str,
    severity: str,
    strict: bool,
    select: tuple[tuple[str, ...], ...],
    ignore: tuple[tuple[str, ...], ...],
    scheduler: str | None,
    scheduler_version: str | None,
    site: str | None,
    listing: bool,
    explain: tuple[str, ...] | None,
) -> int:
    from jobgen.check import checker, formats  # late: the many rules are slow to import
    from jobgen.check.rules.table import RULES
    from jobgen.commands.terminal import progress

    if listing or explain:
        texts = [formats.text_of(RULES[name]) + "\n" for name in explain or ()]
        click.echo(formats.as_list() if listing else "\n".join(texts), nl=False)
        return 0
    if not files + more:  # the arguments after --
        raise JobgenError("check: name one script at least, or - for standard input")
    scripts = checker.scripts_in(files + more)
    say = partial(click.echo, err=True)
    if site is not None:
        from jobgen.sites.loader import load

        known = load(site, f"--site {shown(site)} (command line)")
        scheduler = scheduler or known.name
        scheduler_version = scheduler_version or known.file.scheduler_version or None
        ignore += (known.file.silence,)
    chosen, ignored = (
        {name for names in select for name in names},
        {name for names in ignore for name in names},
    )
    reported = _SEVERITIES[: _SEVERITIES.index(severity) + 1]
    with progress("checking scripts", "-" not in scripts) as work:  # a script may be typed
        findings = [
            found
            for file in work.of(scripts)
            for found in checker.check_file(file, scheduler, scheduler_version, say)
            if found.severity in reported
            and found.rule not in ignored
            and (not chosen or found.rule in chosen)
        ]
    _print(findings, form, len(scripts))
    return int(any(found.severity in ("error", *(["warning"] if strict else [])) for found in findings))


def _print(findings: Sequence[Finding], form: str, files: int) -> None:
    from jobgen.check import formats
    from jobgen.commands.terminal import is_terminal

    if form == "text" and is_terminal(sys.stdout):
        text = formats.for_terminal(findings, colours=not os.environ.get("NO_COLOR"))
    else:
        text = formats.FORMATS[form](findings)
    click.echo(text, nl=False, color=True)
    if form == "text":
        click.echo(formats.summary(findings, files), err=True)


check = click.Command(
    "check",
    callback=_check,
    params=_OPTIONS,
    help=f"Report errors in batch scripts for {_TITLES} or a plain shell, and in job files. A FILE may be a "
    "folder, whose job files and scripts with directives are read, or - for standard input. The status is 1 "
    "if there are errors.",
    epilog="Example: jobgen check job.sh",
)
