"""The command ``jobgen report``."""

from __future__ import annotations

import click

from jobgen.errors import JobgenError


@click.command(
    "report",
    help="Write one HTML page about runs: curves, attempts on a time line, the plan, what failed where. RUN "
    "is a run directory, an array's, or one that holds run directories; several are compared.",
    epilog="Example: jobgen report runs/digits-4711 -o digits.html",
)
@click.argument("names", metavar="RUN...", nargs=-1)
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True, help="The page.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.pass_obj
def report(more: tuple[str, ...], names: tuple[str, ...], output: str, force: bool) -> None:
    import time

    from jobgen import runs
    from jobgen.output import write_script
    from jobgen.report.page import page

    names += more  # what follows --
    if not names:
        raise JobgenError("report: name one run directory at least")
    directories = runs.find(names)
    write_script(output, page(directories, time.time()), force=force, executable=False)
    count = "1 run" if len(directories) == 1 else f"{len(directories)} runs"
    click.echo(f"{output}: {count}", err=True)
