"""The result of a command: on standard output, or in the file of ``-o``."""

from __future__ import annotations

import click

from jobgen.errors import JobgenError


def check_force(output: str | None, force: bool) -> None:
    """Refuse ``--force`` without a file."""
    if force and output is None:
        raise JobgenError("--force is only for -o FILE; without -o nothing is overwritten")


def put(text: str, output: str | None, force: bool, executable: bool) -> None:
    """Print a text, or write it to a file."""
    if output is None:
        click.echo(text, nl=False)
        return
    from jobgen.rendering.script_file import write_script

    write_script(output, text, force=force, executable=executable)
