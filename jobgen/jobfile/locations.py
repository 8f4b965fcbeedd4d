"""The line of a key in the text of a TOML file, for messages."""

from __future__ import annotations

import re
from collections import Counter

from jobgen.options import RENAMED

_PART = r"""(?:"[^"\n]*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """Return the line of a key, or of the innermost table around it that has a line of its own.

    The tables of an array, such as ``[[source]]``, have a number after the name: ``("source", "0", "page")``.
    """
    earlier = {option.name: old for old, option in RENAMED.items()}
    paths = (path, (*path[:-1], earlier.get(path[-1], path[-1])))
    table: tuple[str, ...] = ()
    around: int | None = None
    counts: Counter[tuple[str, ...]] = Counter()
    inside = False  # of a multi-line text, which has no keys
    for number, line in enumerate(text.split("\n"), 1):
        if not inside:
            if header := _HEADER.match(line):
                table = found = _parts(header[2])
                if header[1] == "[[":
                    counts[found] += 1
                    table = (*found, str(counts[found] - 1))
                    found = found if path == found else table
            else:
                key = _KEY.match(line)
                found = (*table, *_parts(key[1])) if key else ()
            if found in paths:
                return number
            if found and path[: len(found)] == found:
                around = number
        inside ^= (line.count('"""') + line.count("'''")) % 2 == 1
    return around


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))
