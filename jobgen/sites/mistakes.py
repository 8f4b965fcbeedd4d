"""What is wrong in a site file, in one sentence: msgspec finds it, and this says it as we do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from jobgen.errors import nearest, one_of, shown
from jobgen.jobmistakes import Path
from jobgen.jobtables import TABLES
from jobgen.sites.site import Detect, Node, Queue, Rules, SiteFile

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
    """msgspec's message as ours: where it is, what is there, what is allowed."""
    if unknown := _UNKNOWN.fullmatch(message):
        above = _place(unknown[2] or "", data, unknown[1])
        known = _keys(above)
        where = f"[{'.'.join(above)}]" if above else "a site file"
        key = unknown[1]
        return (
            f"{shown(key)} ({origin((*above, key))}): {where} has no such key: "
            f"use {one_of(known)}{nearest(key, known)}"
        )
    wrong = _WRONG.fullmatch(message)
    assert wrong, message
    place = _place(wrong[2], data, None)
    value: Any = data
    for part in place:
        value = value[part]
    allowed = next((words for start, words in _ALLOWED if wrong[1].startswith(start)), wrong[1])
    return f"{place[-1]} = {shown(str(value))} ({origin(place)}): {allowed}"


def _place(path: str, data: Mapping[str, Any], unknown: str | None) -> Path:
    """msgspec's path with the names of the queues, which it leaves out: the one where the fault is."""
    parts = [part for part in re.findall(r"\[[^\]]*\]|[^.\[\]]+", path) if not re.fullmatch(r"\[\d+\]", part)]
    if "[...]" not in parts:
        return tuple(parts)
    at = parts.index("[...]")
    for key, value in data[parts[0]].items():
        kind: Any = Queue if parts[0] == "queues" else str
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            return (*parts[:at], key, *parts[at + 1 :])
    return tuple(parts[:at])


def _keys(above: Path) -> list[str]:
    """The keys that a table of a site file may hold."""
    tables: dict[Path, Any] = {("detect",): Detect, ("node",): Node, ("rules",): Rules}
    kind = Queue if above[:1] == ("queues",) else tables.get(above, SiteFile)
    return [*kind.__struct_fields__, *(() if above else TABLES)]
