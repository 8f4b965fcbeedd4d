"""The line of a key in the text of a TOML file, for messages."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

_PART = r"""(?:"[^"\n]*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_Lines = dict[tuple[str, ...], int]


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """Return the line of a key, or of the innermost table around it that has a line of its own.

    The tables of an array, such as ``[[source]]``, have a number after the name: ``("source", "0", "page")``.
    """
    first, last = _lines(text)
    if path in first:
        return first[path]
    around = [last[path[:size]] for size in range(1, len(path)) if path[:size] in last]
    return max(around, default=None)


@lru_cache(maxsize=4)  # a site asks for each of its keys
def _lines(text: str) -> tuple[_Lines, _Lines]:
    """Return the first and the last line of each table and key. An array has the line of its first table."""
    first: _Lines = {}
    last: _Lines = {}
    table: tuple[str, ...] = ()
    counts: Counter[tuple[str, ...]] = Counter()
    inside = False  # of a multi-line text, which has no keys
    for number, line in enumerate(text.split("\n"), 1):
        found: tuple[str, ...] = ()
        if not inside:
            if header := _HEADER.match(line):
                table = found = _parts(header[2])
                if header[1] == "[[":
                    first.setdefault(found, number)
                    counts[found] += 1
                    table = found = (*found, str(counts[found] - 1))
            elif key := _KEY.match(line):
                found = (*table, *_parts(key[1]))
        if found:
            first.setdefault(found, number)
            last[found] = number
        inside ^= (line.count('"""') + line.count("'''")) % 2 == 1
    return first, last


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))
