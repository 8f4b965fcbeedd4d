"""The result of a conversion: a text with remarks on lines of the script, from edits and definitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobgen.script.commands import Command
from jobgen.script.syntax import Node


class Remark(NamedTuple):
    """A remark on a line. ``lost``: it is not translated; otherwise the user should check the result.
    ``of_program``: it is a command, a container or another part of the command line of the program."""

    line: int
    what: str
    why: str
    lost: bool = True
    of_program: bool = False


def hint(line: int, what: str, why: str) -> Remark:
    """Return a remark on what is translated: the user should check the result."""
    return Remark(line, what, why, lost=False)


def remark_on(place: Node | Command, why: str, lost: bool = False) -> Remark:
    """Return a remark on a statement or a command."""
    return Remark(place.line, shown(place if isinstance(place, Node) else place.node), why, lost)


def shown(node: Node) -> str:
    """Return the first line of a statement for a remark."""
    return shortened(node.text)


def shortened(text: str) -> str:
    """Return the first line of a text for a remark, with 60 characters at most."""
    line = text.split("\n")[0]
    return line if len(line) <= 60 else f"{line[:57]}..."


class Edit(NamedTuple):
    """A range of bytes of the source, and its new text."""

    start: int
    end: int
    text: str


class Definition(NamedTuple):
    """A variable that the script sets at its top, because the other scheduler does not set it."""

    name: str
    value: str


class Converted(NamedTuple):
    """The new script and the remarks on it."""

    text: str
    remarks: tuple[Remark, ...]


def apply(source: bytes, edits: Iterable[Edit]) -> bytes:
    """Return the source with all edits; of two edits that overlap, the first in the text applies."""
    out, at = [], 0
    for edit in sorted(edits):
        if edit.start >= at:
            out += [source[at : edit.start], edit.text.encode()]
            at = edit.end
    return b"".join([*out, source[at:]])
