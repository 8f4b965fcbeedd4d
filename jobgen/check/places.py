"""The columns of findings in their lines, and the regions of their edits."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node

# Options, variables, values and paths in the reason of a finding.
_NAMED = re.compile(r"[-$\w./:=]*[-$=:/.\d][-$\w./:=]*")


class Change(NamedTuple):
    """A replacement of a region of a file, from a line and column to others, the end not included.

    Lines and columns count from 1, columns in characters.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


def columns(source: str, reason: str, start: int = 0, end: int | None = None) -> tuple[int, int]:
    """Return the columns of what a finding is about in its line: the word that the reason names, else all
    from one character to another. The end is not included; both are 0 in a line of blanks."""
    end = len(source) if end is None else end
    part = source[start:end]
    words = [word.strip(".:") for word in _NAMED.findall(reason)]
    named = [word for word in words if len(word) > 1 and word in part]
    if named:
        word = max(named, key=len)
        return start + part.index(word) + 1, start + part.index(word) + len(word) + 1
    text = part.strip()
    first = start + len(part) - len(part.lstrip()) + 1
    return (first, first + len(text)) if text else (0, 0)


def columns_of(script: Script, hit: Hit, reason: str) -> tuple[int, int]:
    """Return the columns of a hit in its line."""
    source, place = script.line(hit.line), hit.place
    if isinstance(place, Node):
        here = place.line == hit.line and place.source is script.tree.source
        found = _columns_of_node(place) if here else None
        if found is not None and found[0] < found[1] <= len(source):
            return columns(source, reason, *found)
    elif place is not None and place.given in source:
        start = source.index(place.given)
        value = source.find(place.value, start) if place.value else -1
        end = max(start + len(place.given), value + len(place.value) if value >= 0 else 0)
        return columns(source, reason, start, end)
    return columns(source, reason)


def _columns_of_node(node: Node) -> tuple[int, int]:
    """Return the first character of a node in its line, and the end of its part there."""
    begun = node.source.rfind(b"\n", 0, node.start) + 1
    ends = node.source.find(b"\n", node.start, node.end)
    before, part = node.source[begun : node.start], node.source[node.start : node.end if ends < 0 else ends]
    start = len(before.decode("utf-8", "replace"))
    text = part.decode("utf-8", "replace")
    return start, start + len(text.rstrip("\\ ") if ends >= 0 else text)


def changes(script: Script, hit: Hit) -> tuple[Change, ...]:
    """Return the edits of a hit as regions of the file."""
    whole = len(script.source)
    edits = [one for one in hit.edits if b"\r\n" not in script.source or one.end - one.start == whole]
    return tuple(
        Change(
            *_position(script, one.start), *_position(script, one.end), one.text.decode("utf-8", "replace")
        )
        for one in edits
    )


def _position(script: Script, offset: int) -> tuple[int, int]:
    """Return the line and the column of a byte."""
    before = script.source[:offset]
    text = before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")
    return before.count(b"\n") + 1, len(text) + 1
