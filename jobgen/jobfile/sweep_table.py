"""The table [sweep] of a job file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.spec import SweepRequest
from jobgen.values.text_files import check_word

MODES = ("product", "zip")


Value = bool | int | float | str | list[Any]


def read_sweep(table: Mapping[str, Any], origin: Callable[[tuple[str, ...]], str]) -> SweepRequest:
    """Read the table [sweep] of a job file: lists are parameters, the text ``mode`` says how to combine them.

    Raises:
        JobgenError: it holds something else.
    """
    table = dict(table)
    mode = table.pop("mode") if isinstance(table.get("mode"), str) else "product"
    if mode not in MODES:
        raise _fault("mode", mode, origin, f"must be {one_of(MODES)}{nearest(mode, MODES)}")
    for key, values in table.items():
        if not isinstance(values, Sequence) or isinstance(values, str) or not values:
            raise _fault(key, values, origin, "must be a list of values, such as [0.1, 0.01]")
        if not re.fullmatch(r"(--)?[A-Za-z][\w-]*", key, re.ASCII):
            raise _fault(key, values, origin, "is no name of an option")
        if len({isinstance(value, bool) for value in values}) > 1:
            raise _fault(key, values, origin, "true and false cannot be mixed with other values in a list")
        try:
            for value in values:
                check_word(value_text(value))
        except ValueError as error:
            raise _fault(key, values, origin, f"a value {error}") from None
    if not table:
        raise JobgenError(f"[sweep] ({origin(('sweep',))}): needs a list of values, such as lr = [0.1, 0.01]")
    frozen = {
        key: tuple(tuple(v) if isinstance(v, list) else v for v in values) for key, values in table.items()
    }
    return SweepRequest(mode, tuple((key.removeprefix("--"), values) for key, values in frozen.items()))


def _fault(key: str, value: Any, origin: Callable[[tuple[str, ...]], str], why: str) -> JobgenError:
    return JobgenError(f"{shown(key)} = {shown(str(value))} ({origin(('sweep', key))}): {why}")


def value_text(value: Value) -> str:
    """Return a value as a word of a command, the same as in [train]."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
