"""Errors in a site file as one sentence, from the messages of msgspec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from jobgen.errors import nearest, one_of, shown
from jobgen.jobfile.errors import Path
from jobgen.jobfile.schema import CheckTable, fits
from jobgen.jobfile.tables import TABLES
from jobgen.sites.site_file import Detect, LauncherTable, Network, NodeTable, Queue, Rules, SiteFile, Source

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
)


# The tables with any keys: the type of each value in them.
_ARRAYS: dict[str, Any] = {
    "queues": Queue,
    "launcher": LauncherTable,
    "networks": Network,
    "source": Source,
}
_TEXTS: dict[str, Any] = {"prepend": tuple[str, ...]}


def site_sentence(message: str, data: Mapping[str, Any], origin: Callable[[Path], str]) -> str:
    """Return msgspec's message as a sentence of jobgen: the place, the value, and what is allowed."""
    if unknown := _UNKNOWN.fullmatch(message):
        above = _place(unknown[2] or "", data)
        known = _keys(above)
        table = "[source]" if above[:1] == ("source",) else ".".join(above)
        where = f"[{table}]" if above else "a site file"
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
        value = value[int(part)] if isinstance(value, list) else value[part]
    allowed = next((words for start, words in _ALLOWED if wrong[1].startswith(start)), wrong[1])
    key = place[0] if place[:-1] == ("source",) else place[-1]
    return f"{key} = {shown(str(value))} ({origin(place)}): {allowed}"


def _place(path: str, data: Mapping[str, Any]) -> Path:
    """Return msgspec's path, with the wrong keys that it leaves out in tables with any keys."""
    place: Path = ()
    here: Any = data
    for part in re.findall(r"\[[^\]]*\]|[^.\[\]]+", path):
        if place == ("source",) and isinstance(here, list):
            number = next(number for number, one in enumerate(here) if not fits(one, Source))
            place, here = (*place, str(number)), here[number]
            continue
        if not isinstance(here, dict):
            break  # the items of other lists have no line of their own
        if part == "[...]":
            kind = _ARRAYS.get(place[-1]) or _TEXTS.get(place[-1], str)
            part = next(key for key, value in here.items() if not fits(value, kind))
        place, here = (*place, part), here[part]
    return place


def _keys(above: Path) -> list[str]:
    """Return the keys that a table of a site file may hold."""
    tables: dict[Path, Any] = {
        ("detect",): Detect,
        ("node",): NodeTable,
        ("rules",): Rules,
        ("check",): CheckTable,
    }
    kind = _ARRAYS.get(above[0] if above else "") or tables.get(above, SiteFile)
    return [*kind.__struct_fields__, *(() if above else TABLES)]
