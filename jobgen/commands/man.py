"""``jobgen man``: manual pages, made from the commands. setup.py puts them into the wheel.

The macros are those of man(7): https://man7.org/linux/man-pages/man7/man.7.html
"""

from __future__ import annotations

import os
import re
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping

import click

from jobgen.commands.job_options import JobCommand
from jobgen.commands.parameter_types import FILE
from jobgen.errors import JobgenError, nearest, shown
from jobgen.runs.exit_statuses import of_command
from jobgen.values.version import __version__

_ESCAPES = str.maketrans({"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"})
ENVIRONMENT = (
    (
        "JOBGEN_TEMPLATE_PATH",
        "Directories of templates that come before the packaged ones, separated by colons.",
    ),
    (
        "XDG_CONFIG_HOME",
        "Your own site files are in its folder jobgen/sites. If it is not set, ~/.config is used.",
    ),
    (
        "XDG_CACHE_HOME",
        "Compiled templates are in its folder jobgen. If it is not set, ~/.cache is used.",
    ),
    (
        "SBATCH_CLUSTERS",
        "Clusters of sbatch, which jobgen queries for jobs whose submission was interrupted.",
    ),
    ("NO_COLOR", "If it is not empty, no state has a colour."),
)


def pages(command: click.Command, ctx: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Yield the pages of a command and of all its subcommands: the name of a file and its text."""
    info_name = command.name if ctx else "jobgen"
    ctx = click.Context(command, parent=ctx, info_name=info_name, **command.context_settings)
    name = ctx.command_path.replace(" ", "-")
    yield f"{name}.1", "\n".join(_page(name, command, ctx)) + "\n"
    if isinstance(command, click.Group):
        for sub in command.list_commands(ctx):
            if (found := command.get_command(ctx, sub)) and not found.hidden:
                yield from pages(found, ctx)


def _page(name: str, command: click.Command, ctx: click.Context) -> Iterator[str]:
    summary, *more = (command.help or "").split("\n\n")
    yield f'.TH {name.upper()} 1 "{_date()}" "jobgen {__version__}"'
    yield from (".SH NAME", *_text(f"{name} - {_brief(summary)}"), ".SH SYNOPSIS")
    yield from _text(f"{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}")
    yield from (".SH DESCRIPTION", *_text(summary))
    for paragraph in more:
        yield from (".PP", *_text(paragraph))
    for title, records in _options(command, ctx).items():
        yield from (f'.SH "{title.upper()}"', *_listed(records))
    if isinstance(command, click.Group):
        yield from (".SH COMMANDS", *_listed(_subcommands(name, command, ctx)))
    if example := getattr(command, "example", "") or (command.epilog or "").removeprefix("Example: "):
        yield from (".SH EXAMPLE", ".nf", _escaped(example), ".fi")
    if ctx.parent is None:
        yield from (".SH ENVIRONMENT", *_listed(ENVIRONMENT))
    statuses = of_command((command.name or "") if ctx.parent else "")
    yield from (".SH EXIT STATUS", *_listed((str(status), text) for status, text in statuses.items()))
    if ctx.parent is not None:
        yield from (".SH SEE ALSO", f".BR {_escaped(ctx.parent.command_path.replace(' ', '-'))} (1)")


def _date() -> str:
    """Return the day of the build: https://reproducible-builds.org/docs/source-date-epoch/"""
    return time.strftime("%Y-%m-%d", time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())))


def _options(command: click.Command, ctx: click.Context) -> Mapping[str, list[tuple[str, str]]]:
    if isinstance(command, JobCommand):
        return command.option_groups(ctx)
    options = (one for one in command.get_params(ctx) if isinstance(one, click.Option))
    return {"Options": [record for one in options if (record := one.get_help_record(ctx))]}


def _subcommands(name: str, group: click.Group, ctx: click.Context) -> Iterator[tuple[str, str]]:
    for sub in group.list_commands(ctx):
        if (found := group.get_command(ctx, sub)) and not found.hidden:
            yield f"{name}-{sub}(1)", found.help or ""


def _listed(records: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in records:
        yield from (".TP", f"\\fB{_escaped(term)}\\fR", *_text(text))


def _text(text: str) -> Iterator[str]:
    """Yield the lines of a paragraph."""
    yield from map(_escaped, textwrap.wrap(text, 70, break_long_words=False, break_on_hyphens=False))


def _escaped(line: str) -> str:
    """Return text as it is written in a line; a full stop or a quote at the beginning is no request."""
    escaped = " ".join(line.split()).translate(_ESCAPES)
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def _brief(text: str) -> str:
    """Return the first sentence, without its full stop."""
    return re.split(r"[.;](?:\s|$)", text, maxsplit=1)[0]


@click.command(
    "man",
    short_help="Print the manual page of a command.",
    help="Print the manual page of COMMAND, or of jobgen itself. The installed package has them, too.",
    epilog="Example: jobgen man submit | man -l -",
)
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.option("-o", "--output", metavar="DIR", type=FILE, help="Write the pages of all commands into DIR.")
@click.pass_context
def man(ctx: click.Context, words: tuple[str, ...], output: str | None) -> None:
    found = dict(pages(ctx.find_root().command))
    if output is not None:
        write(found, output)
        return
    name = "-".join(("jobgen", *words))
    if f"{name}.1" not in found:
        known = [file.removesuffix(".1").removeprefix("jobgen-") for file in found]
        raise JobgenError(f"man: there is no page {shown(name)}{nearest('-'.join(words), known)}")
    click.echo(found[f"{name}.1"], nl=False)


def write(found: Mapping[str, str], folder: str) -> list[str]:
    """Write pages into a folder and return their paths.

    Raises:
        JobgenError: they cannot be written.
    """
    paths = [os.path.join(folder, name) for name in found]
    try:
        os.makedirs(folder, exist_ok=True)
        for path, text in zip(paths, found.values(), strict=True):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise JobgenError(f"{shown(folder)} cannot be written: {error.strerror}") from None
    return paths
