"""The command ``jobgen fetch``."""

from __future__ import annotations

import sys

import click

from jobgen.errors import JobgenError, counted, visible

_WHAT = "Without PATTERN: metrics, status, logs and reports."


@click.command(
    "fetch",
    short_help="Fetch files of a run from its host.",
    help="Fetch files of a run from its host into the run directory here. PATTERN is a file or a folder of "
    f"the run directory there, and may have * and ?. {_WHAT} What is here is not fetched again, and "
    "each file is verified by SHA-256. Code and checkpoints are fetched only if PATTERN begins with their "
    "folder.",
    epilog="Example: jobgen fetch exp-20261121-1 'checkpoints/step-200/*'",
)
@click.argument("name", metavar="RUN")
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option("--runs-dir", metavar="DIR", help="Directory of the runs.  [default: the job file's, or runs]")
@click.pass_obj
def fetch(more: tuple[str, ...], name: str, patterns: tuple[str, ...], runs_dir: str | None) -> None:
    from jobgen.commands.terminal import is_terminal
    from jobgen.runs import lookup
    from jobgen.runs.remote import mirror, place
    from jobgen.runs.remote.fetch import RemoteFile
    from jobgen.runs.remote.fetch import fetch as fetch_files

    run = lookup.one_run(name, lookup.root_of(runs_dir))
    where = place.of(run)
    if where is None:
        raise JobgenError(f"{run.name} is a run of this machine: its files are in {run}")
    drawn = is_terminal(sys.stderr)

    def progress(file: RemoteFile, size: int) -> None:
        if drawn:
            click.echo(f"\r\x1b[K{visible(file.name)}: {size:,} of {file.size:,} bytes", nl=False, err=True)

    mirror.refresh({run: where})
    try:
        found = fetch_files(where, patterns + more, progress)
    finally:
        if drawn:
            click.echo("\r\x1b[K", nl=False, err=True)
    for file in found:
        click.echo(visible(str(where.mirror / file.name)))
    total = sum(file.size for file in found)
    click.echo(f"jobgen: {counted(len(found), 'file')}, {total:,} bytes, as at {where.host_name}", err=True)
