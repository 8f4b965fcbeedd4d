"""The command ``jobgen web``."""

from __future__ import annotations

import click

from jobgen.commands.parameter_types import FILE


@click.command(
    "web",
    short_help="Write a web page that makes scripts in a browser.",
    help="Write a web page on which a browser makes scripts: a form for the options of a job, and the script "
    "beside it. Any web server can offer the files; nothing runs on the server, and the page loads "
    "nothing from other servers. Python for browsers (6 MB) is downloaded once, into the cache.",
    epilog="Example: jobgen web --site mysite.toml -o public/jobgen",
)
@click.option(
    "--site",
    "sites",
    metavar="FILE",
    type=FILE,
    multiple=True,
    help="Site file that comes first in the form. Repeatable.",
)
@click.option("-o", "--output", metavar="DIR", type=FILE, required=True, help="Directory of the page.")
@click.option("--force", is_flag=True, help="Write into a directory that has files already.")
@click.option(
    "--parts",
    metavar="DIR",
    type=FILE,
    help="Directory with the files to download, for a machine without the internet.",
)
def web(sites: tuple[str, ...], output: str, force: bool, parts: str | None) -> None:
    import os
    from pathlib import Path

    from jobgen.commands.web.bundle import write
    from jobgen.errors import JobgenError, shown

    folder = Path(output)
    option = f"-o {shown(output)} (command line)"
    try:
        if folder.is_dir() and os.listdir(folder) and not force:
            raise JobgenError(f"{option}: the directory has files already; --force writes into it")
        size = write(folder, sites, parts)
    except OSError as error:
        raise JobgenError(f"{option}: cannot be written: {error.strerror}") from None
    server = f"python3 -m http.server --bind 127.0.0.1 -d {shown(output)}"
    click.echo(f"{output}: {size / 1e6:.1f} MB; try it: {server}", err=True)
