"""What a conversion has to say about a line of the script."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Remark(NamedTuple):
    """``lost``: it was not translated; otherwise it was, in a way that somebody should look at."""

    line: int
    what: str
    why: str
    lost: bool = True


class Edit(NamedTuple):
    """Bytes of the source, and what stands there instead."""

    start: int
    end: int
    text: str


class Definition(NamedTuple):
    """A variable that the script sets at its top, since the other scheduler does not."""

    name: str
    value: str


def apply(source: bytes, edits: Iterable[Edit]) -> bytes:
    """The source with all edits; of two that overlap the first in the text wins."""
    out, at = [], 0
    for edit in sorted(edits):
        if edit.start >= at:
            out += [source[at : edit.start], edit.text.encode()]
            at = edit.end
    return b"".join([*out, source[at:]])
