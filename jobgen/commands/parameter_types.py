"""Types of click for the options of commands, with the parsers of values.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from jobgen.errors import JobgenError, shown
from jobgen.schedulers.table import COMMANDS, SCHEDULERS, named
from jobgen.values.parsers import choice, path


class OptionType(click.ParamType):  # type: ignore[type-arg]  # generic from Click 8.4 on
    """The value that ``parse`` returns for a text; its ValueError becomes a JobgenError."""

    name = "text"

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        assert param is not None
        name = f"{param.opts[-1]} " if isinstance(param, click.Option) else ""
        try:
            return self._parse(value)
        except ValueError as error:
            raise JobgenError(f"{name}{shown(value)} (command line): {error}") from None


def scheduler_word(text: str) -> str:
    """Return the name of a scheduler in the table from its name or its command."""
    return choice(*SCHEDULERS)(named(text, None).name if text in COMMANDS else text)


FILE = OptionType(path)
