"""Turns what was typed into a JobSpec: defaults, then the command line, each value with its origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.errors import JobgenError, shown
from jobgen.options import OPTIONS, Option
from jobgen.spec import JobSpec

COMMAND_LINE = "command line"


def read_spec(
    scheduler: str,
    given: Mapping[str, str | Sequence[str] | None],
    program: Sequence[str] = (),
    origin: str = COMMAND_LINE,
) -> JobSpec:
    """Parse the values of the options in ``given`` (text, or a list of it for repeatable ones).

    Raises:
        JobgenError: a value cannot be read; the sentence says which, from where, and what is allowed.
    """
    fields: dict[str, Any] = {}
    origins: dict[str, str] = {}
    texts: dict[str, str] = {}
    for option in OPTIONS:
        value = given.get(option.key)
        if value is None or (option.multiple and not value):
            fields[option.key] = option.default
            continue
        origins[option.key] = origin
        if option.multiple:
            fields[option.key] = tuple(_parse(option, item, origin) for item in value)
            texts[option.key] = shown(" ".join(value))
        else:
            assert isinstance(value, str)
            fields[option.key] = _parse(option, value, origin)
            texts[option.key] = shown(value)
    return JobSpec(scheduler=scheduler, program=tuple(program), origins=origins, given=texts, **fields)


def _parse(option: Option, value: str, origin: str) -> Any:
    try:
        return option.parse(value)
    except ValueError as error:
        raise JobgenError(f"{option.flag} {shown(value)} ({origin}): {error}") from None
