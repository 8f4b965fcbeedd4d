"""The command ``jobgen report``."""

from __future__ import annotations

import click

from jobgen.commands.parameter_types import FILE
from jobgen.errors import visible


@click.command(
    "report",
    short_help="Write an HTML page about runs: curves, times, failures.",
    help="Write one HTML page about runs: curves, attempts on a time line, the plan, failures. RUN "
    "is a run directory, the directory of an array, one that holds run directories, a job file, or the name "
    "or job id of a run; the newest run by default. Several runs are compared on one page.",
    epilog="Example: jobgen report runs/digits-4711 -o digits.html",
)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o", "--output", metavar="FILE", type=FILE, default="report.html", show_default=True, help="The page."
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.pass_obj
def report(more: tuple[str, ...], names: tuple[str, ...], output: str, force: bool) -> None:
    import time
    from pathlib import Path

    from jobgen.commands.terminal import progress
    from jobgen.rendering.script_file import write_script
    from jobgen.report.page import page
    from jobgen.report.selection import select_runs
    from jobgen.runs.remote import mirror

    directories = select_runs(names + more)  # the arguments after --
    for run, why in mirror.complete(directories).items():
        click.echo(visible(f"jobgen: {run.name}: {why}; the page shows what was fetched before"), err=True)
    with progress("reading runs") as work:
        text = page(work.of(directories), time.time(), Path(output).parent)
    write_script(output, text, force=force, executable=False)
    count = "1 run" if len(directories) == 1 else f"{len(directories)} runs"
    click.echo(f"{output}: {count}", err=True)
