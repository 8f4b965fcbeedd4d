"""The reference of the training module's options, made from its parser, which does not import torch."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from jobgen.train.config.commands import COMMANDS
from jobgen.train.config.options import parser

from tools.docsite.tables import cell, code, table

_HEAD = """\
# Options of the training module

The options of `python -m jobgen.train` and of its commands, made from their parsers. In a job file they are keys of `[train]`, with underscores.
"""


def page() -> str:
    """Return the page."""
    commands = (_command(name, make()) for name, make in COMMANDS.items())
    return "\n".join([_HEAD, *_groups(parser()), *commands])


def _groups(made: argparse.ArgumentParser) -> Iterator[str]:
    for group in made._action_groups:
        if rows := _rows(made, group._group_actions):
            yield f"## {(group.title or '').capitalize()}\n\n{table(['option', 'meaning'], rows)}"


def _command(name: str, made: argparse.ArgumentParser) -> str:
    head = f"## The command {name}\n\n`{made.prog}`: {made.description}"
    return f"{head}\n\n{table(['option', 'meaning'], _rows(made, made._actions))}"


def _rows(made: argparse.ArgumentParser, actions: Iterable[argparse.Action]) -> list[list[str]]:
    rows = [[code(_flags(one)), cell((one.help or "") % {**vars(one), "prog": made.prog})] for one in actions]
    return [row for row in rows if row[1] != "==SUPPRESS=="]


def _flags(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    if not action.option_strings:
        return str(action.metavar)
    return ", ".join(action.option_strings) + (f" [{value[1:]}]" if action.nargs == "?" else value)
