"""Errors in a job file, as one sentence: msgspec finds them, and this module words them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, time
from typing import Any

from jobgen.errors import nearest, one_of, shown
from jobgen.jobfile.schema import SWEEP_VALUE, VARIABLE, WORD, fits, keys_of
from jobgen.jobfile.tables import AT, table_of
from jobgen.options import OPTIONS

Path = tuple[str, ...]

_UNKNOWN = re.compile(r"(?s)Object contains unknown field `(.*?)`(?: - at `\$\.([\w.]+)`)?")
_EXPECTED = re.compile(r"Expected `([^`]*)`.* - at `\$\.([\w.]+)(.*)`")


def sentence(message: str, data: Mapping[str, Any], origin: Callable[[Path], str]) -> str:
    """Return msgspec's message as a sentence of jobgen: the place, the value, and what is allowed."""
    if unknown := _UNKNOWN.fullmatch(message):
        above = tuple((unknown[2] or "").split(".")) if unknown[2] else ()
        return _unknown(unknown[1], above, origin)
    expected = _EXPECTED.fullmatch(message)
    if expected is None:
        missing = "command" in message
        return f"[program] ({origin(('program',))}): " + ("needs a command" if missing else message)
    place = tuple(expected[2].split("."))
    value: Any = data
    for part in place:
        value = value[part]
    if isinstance(value, dict) and place in (("step",), ("component",)):
        return f"[{place[0]}] ({origin(place)}): must be tables [[{place[0]}]], with two brackets"
    allowed = _allowed(place, expected[1], value)
    if isinstance(value, dict) and expected[3]:
        kind = {"environment": VARIABLE, "sweep": SWEEP_VALUE}.get(place[0], WORD)
        key = next(key for key, one in value.items() if not fits(one, kind))
        place, value = (*place, key), value[key]
    elif isinstance(value, list) and (index := re.search(r"\d+", expected[3])):
        value = value[int(index[0])]
    return f"{place[-1]} = {shown(_written(value))} ({origin(place)}): {allowed}"


def _written(value: Any) -> str:
    """Return a value in the notation of TOML."""
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unknown(key: str, above: Path, origin: Callable[[Path], str]) -> str:
    known = keys_of(above)
    where = f"[{'.'.join(above)}]" if above else "a job file"
    option = next((one for one in OPTIONS if one.name == key), None)
    right = f"; it belongs in [{table_of(option)}]" if option else nearest(key, known)
    return f"{shown(key)} ({origin((*above, key))}): {where} has no such key: use {one_of(known)}{right}"


def _allowed(place: Path, expected: str, value: Any) -> str:
    if place == ("train",):
        return "must be a number, a text in quotes, true, false, or a list of numbers and texts"
    if place == ("sweep",) and isinstance(value, dict):
        return "must be a list of values, such as [0.1, 0.01]"
    if place == ("environment", "env") and isinstance(value, dict):
        return "must be a text in quotes or a whole number"
    if place == ("environment", "env"):
        return 'must be a table, or a list such as ["NAME=VALUE", "NAME"]'
    if expected == "object":
        return "must be a table"
    if expected.startswith("array"):
        return 'must be a list, such as ["..."]'
    if expected == "bool":
        return "must be true or false"
    option = AT.get(place)
    if option and not option.multiple and isinstance(value, (str, int, float, list, dict)):
        try:
            option.parse(str(value))
        except ValueError as error:
            return str(error)
    return "must be a text in quotes"
