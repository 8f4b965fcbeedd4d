"""The reference of the commands, made from click's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from jobgen.commands.cli import cli
from jobgen.commands.job_options import JobCommand
from jobgen.commands.man import ENVIRONMENT
from jobgen.options import OPTIONS
from jobgen.runs.exit_statuses import COMMANDS
from tools.docsite.tables import cell, code, table

_GROUPS = {option.group for option in OPTIONS}
_HEAD = """\
# Commands

Made from the commands themselves; `jobgen help COMMAND` and `man jobgen-COMMAND` say the same.
[Exit statuses](../exit-statuses.md) has the statuses of all commands.
"""
_JOB_OPTIONS = "It has all [options of a job](options.md), and these:\n"


def page() -> str:
    """Return the page of all commands."""
    return "\n".join([_HEAD, *_command(cli, None)])


def environment() -> str:
    """Return the page of the environment variables."""
    rows = [[code(name), cell(meaning)] for name, meaning in ENVIRONMENT]
    return (
        "# Environment variables\n\n## Of the program\n\n"
        "The script sets them for every rank: [the list](../../README.md#environment-variables-of-the-program), and "
        "[those of a run that resumes](../survival.md#the-end-of-the-wall-time).\n\n"
        f"## Of the commands\n\n{table(['variable', 'meaning'], rows)}"
    )


def _command(command: click.Command, parent: click.Context | None) -> Iterator[str]:
    name = command.name if parent else "jobgen"
    ctx = click.Context(command, parent=parent, info_name=name, **command.context_settings)
    yield f"## {ctx.command_path}\n"
    yield f"`{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}`\n"
    yield from (f"{cell(text)}\n" for text in (command.help or "").split("\n\n"))
    groups = _options(command, ctx)
    if groups.keys() & _GROUPS:
        yield _JOB_OPTIONS
    rows = [record for title, records in groups.items() if title not in _GROUPS for record in records]
    yield table(["option", "meaning"], [[code(flags), cell(meaning)] for flags, meaning in rows])
    if status := COMMANDS.get(ctx.command_path.removeprefix("jobgen ")):
        yield f"Status 1: {status}.\n"
    if example := getattr(command, "example", "") or (command.epilog or "").removeprefix("Example: "):
        yield f"```sh\n{example}\n```\n"
    if isinstance(command, click.Group):
        for sub in command.list_commands(ctx):
            if (found := command.get_command(ctx, sub)) and not found.hidden:
                yield from _command(found, ctx)


def _options(command: click.Command, ctx: click.Context) -> Mapping[str, list[tuple[str, str]]]:
    if isinstance(command, JobCommand):
        return command.option_groups(ctx)
    options = (one for one in command.get_params(ctx) if isinstance(one, click.Option))
    return {"": [record for one in options if (record := one.get_help_record(ctx))]}
