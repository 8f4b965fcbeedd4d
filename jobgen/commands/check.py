"""The command ``jobgen check``."""

from __future__ import annotations

from functools import partial

import click

from jobgen.commands.parameter_types import OptionType
from jobgen.errors import JobgenError, shown
from jobgen.schedulers.table import SCHEDULERS
from jobgen.schedulers.versions import version
from jobgen.script.dialects.table import SCRIPT_SCHEDULERS
from jobgen.values.parsers import choice

_TITLES = ", ".join(SCHEDULERS[name].title for name in SCRIPT_SCHEDULERS if name in SCHEDULERS)


@click.command(
    "check",
    help=f"Report errors in batch scripts for {_TITLES} or a plain shell. A FILE of - is "
    "standard input. The status is 1 if there are errors.",
    epilog="Example: jobgen check job.sh",
)
@click.argument("files", metavar="FILE...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0, as code-review tools read it.")
@click.option(
    "--scheduler",
    type=OptionType(choice(*SCRIPT_SCHEDULERS)),
    metavar="|".join(SCRIPT_SCHEDULERS),
    help="Dialect of the scripts.  [default: by its directives]",
)
@click.option(
    "--scheduler-version",
    type=OptionType(version),
    metavar="VERSION",
    help="Version of the scheduler, such as 23.02.  [default: rules of all versions]",
)
@click.option("--site", metavar="NAME", help="Take the scheduler and its version from a site.")
@click.option("--list", "listing", is_flag=True, help="Print all rules.")
@click.pass_obj
def check(
    more: tuple[str, ...],
    files: tuple[str, ...],
    as_json: bool,
    as_sarif: bool,
    scheduler: str | None,
    scheduler_version: str | None,
    site: str | None,
    listing: bool,
) -> int:
    from jobgen.check import checker, formats  # late: the many rules are slow to import
    from jobgen.commands.terminal import progress

    files += more  # the arguments after --
    if listing:
        click.echo(formats.as_list(), nl=False)
        return 0
    if not files:
        raise JobgenError("check: name one script at least, or - for standard input")
    if as_json and as_sarif:
        raise JobgenError("--json and --sarif exclude each other")
    say = partial(click.echo, err=True)
    if site is not None:
        from jobgen.sites.loader import load

        known = load(site, f"--site {shown(site)} (command line)")
        scheduler = scheduler or known.name
        scheduler_version = scheduler_version or known.file.scheduler_version or None
    with progress("checking scripts", "-" not in files) as work:  # a script may be typed
        findings = [
            found
            for file in work.of(files)
            for found in checker.check_file(file, scheduler, scheduler_version, say)
        ]
    if as_json or as_sarif:
        click.echo((formats.as_json if as_json else formats.as_sarif)(findings), nl=False)
    else:
        click.echo(formats.as_text(findings), nl=False)
        click.echo(formats.summary(findings, len(files)), err=True)
    return int(any(found.severity == "error" for found in findings))
