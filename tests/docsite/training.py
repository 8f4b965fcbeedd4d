"""The reference of the training module's options, made from its parser, which does not import torch."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from jobgen.train.config.options import parser

from docsite.tables import cell, code, table

_HEAD = """\
# Options of the training module

The options of `python -m jobgen.train`, made from its parser. In a job file they are keys of `[train]`, with underscores.
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_groups()])


def _groups() -> Iterator[str]:
    for group in parser()._action_groups:
        rows = [[code(_flags(one)), cell((one.help or "") % _values(one))] for one in group._group_actions]
        if rows := [row for row in rows if row[1] != "==SUPPRESS=="]:
            yield f"## {(group.title or '').capitalize()}\n\n{table(['option', 'meaning'], rows)}"


def _flags(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return ", ".join(action.option_strings) + (f" [{value[1:]}]" if action.nargs == "?" else value)


def _values(action: argparse.Action) -> dict[str, object]:
    return {**vars(action), "prog": "python -m jobgen.train"}
