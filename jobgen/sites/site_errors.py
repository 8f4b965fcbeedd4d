"""Errors in a site file as one sentence, from the messages of msgspec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from jobgen.errors import nearest, one_of, shown
from jobgen.jobfile.errors import Path
from jobgen.jobfile.schema import TABLES, fits
from jobgen.sites.site_file import Detect, Node, Queue, Rules, SiteFile

_UNKNOWN = re.compile(r"(?s)Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?")
_WRONG = re.compile(r"(?s)(.*?) - at `\$\.?(.*)`")
_ALLOWED = (
    ("Invalid RFC3339", "must be a date, such as 2026-11-21"),
    ("Expected `date", "must be a date, such as 2026-11-21"),
    ("Expected `object", "must be a table"),
    ("Expected `array` of length 2", "must be a pair, such as [1, 10]"),
    ("Expected `array", 'must be a list, such as ["..."]'),
    ("Expected `bool", "must be true or false"),
    ("Expected `int", "must be a whole number of at least 0"),
    ("Expected `str", "must be a text in quotes"),
    ("Invalid enum", 'must be "pbs" or "slurm"'),
)


def site_sentence(message: str, data: Mapping[str, Any], origin: Callable[[Path], str]) -> str:
    """Return msgspec's message as a sentence of jobgen: the place, the value, and what is allowed."""
    if unknown := _UNKNOWN.fullmatch(message):
        above = _place(unknown[2] or "", data)
        known = _keys(above)
        where = f"[{'.'.join(above)}]" if above else "a site file"
        key = unknown[1]
        return (
            f"{shown(key)} ({origin((*above, key))}): {where} has no such key: "
            f"use {one_of(known)}{nearest(key, known)}"
        )
    wrong = _WRONG.fullmatch(message)
    assert wrong, message
    place = _place(wrong[2], data)
    value: Any = data
    for part in place:
        value = value[part]
    allowed = next((words for start, words in _ALLOWED if wrong[1].startswith(start)), wrong[1])
    return f"{place[-1]} = {shown(str(value))} ({origin(place)}): {allowed}"


def _place(path: str, data: Mapping[str, Any]) -> Path:
    """Return msgspec's path, with the wrong keys that it leaves out in tables with any keys."""
    place: Path = ()
    here: Any = data
    for part in re.findall(r"\[[^\]]*\]|[^.\[\]]+", path):
        if not isinstance(here, dict):
            break  # the items of a list have no line of their own
        if part == "[...]":
            kind = Queue if place == ("queues",) else str
            part = next(key for key, value in here.items() if not fits(value, kind))
        place, here = (*place, part), here[part]
    return place


def _keys(above: Path) -> list[str]:
    """Return the keys that a table of a site file may hold."""
    tables: dict[Path, Any] = {("detect",): Detect, ("node",): Node, ("rules",): Rules}
    kind = Queue if above[:1] == ("queues",) else tables.get(above, SiteFile)
    return [*kind.__struct_fields__, *(() if above else TABLES)]
