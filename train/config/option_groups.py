"""The parser of a command line, and the kinds of its options. Does not import torch."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..errors import CommonMistake
from .converters import one_of, whole


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises CommonMistake, with one sentence, for an error."""

    def error(self, message: str) -> NoReturn:
        raise CommonMistake(message)


class Group:
    """A group of options in the help of a parser, or the parser itself."""

    def __init__(self, arguments: Any) -> None:
        self.option: Callable[..., Any] = arguments.add_argument

    def value(self, form: str, convert: Callable[[str], Any], text: str, **more: Any) -> None:
        """Add an option with a value: its form is that in the help, such as ``--lr X``."""
        name, _, metavar = form.partition(" ")
        self.option(name, type=convert, metavar=metavar, help=text, **more)

    def choice(self, name: str, allowed: Sequence[str], text: str, default: str | None = None) -> None:
        """Add an option with one of the allowed words."""
        self.value(f"{name} {'|'.join(allowed)}", one_of(allowed), text, default=default)

    def count(self, name: str, text: str, least: int = 1, default: int | None = None) -> None:
        """Add an option for a whole number of at least `least`."""
        self.value(f"{name} N", whole(least), text, default=default)

    def flag(self, name: str, text: str) -> None:
        """Add a flag that a config file may also state: None means not given."""
        self.option(name, action="store_true", default=None, help=text)

    def switch(self, name: str, text: str) -> None:
        """Add a flag that is False unless it is given."""
        self.option(name, action="store_true", help=text)
