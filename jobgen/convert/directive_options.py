"""Directives for which jobgen has options, except sizes: read as values of the options, and written from
them.

The spelling of each scheduler is that of schedulers/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from jobgen.options import BY_KEY
from jobgen.schedulers.request import Option
from jobgen.schedulers.table import SCHEDULERS

_DATE = r"(?:(?:(\d\d)?(\d\d))?(\d\d)(\d\d))?(\d\d)(\d\d)(?:\.(\d\d))?"
_UNITS = {"second": "s", "minute": "m", "hour": "h", "day": "d", "": "s"}


class Told(NamedTuple):
    """A directive, its text, and its value as the option takes it."""

    option: Option
    text: str
    value: str


class Written(NamedTuple):
    """Directives, the text that follows the request of each node, and lost directives with the reason."""

    lines: list[str]
    chunk: str
    lost: list[tuple[Told, str]]


def _beginnings(row: str) -> dict[str, str]:
    """Return the keys of the options by the beginning of their directives: ``--nice``, ``-l advres``."""
    forms = {key: form for key, form in SCHEDULERS[row].forms.items() if key != "exclusive"}
    return {form.partition("{}")[0].rstrip('= "'): key for key, form in forms.items() if form[:2] != "-q"}


_KEYS = {row: _beginnings(row) for row in ("slurm", "pbspro", "torque")}


def key_of(beginning: str, row: str) -> str | None:
    """Return the key of the option that this directive sets; None if there is none."""
    return _KEYS[row].get(beginning)


def value_of(key: str, value: str, row: str) -> str:
    """Return the value of a directive as the option takes it; unchanged if it cannot be converted."""
    if key == "begin":
        return _since(value) if row == "slurm" else _date(value)
    if key == "priority" and row == "slurm":
        nice = value or "100"
        return str(-int(nice)) if re.fullmatch(r"[+-]?\d{1,9}", nice, re.ASCII) else nice
    return value


def _since(text: str) -> str:
    if match := re.fullmatch(r"now\+(\d{1,8})(?:(second|minute|hour|day)s?)?", text, re.ASCII):
        return f"+{match[1]}{_UNITS[match[2] or '']}"
    return f"{text}T00:00" if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else text


def _date(text: str) -> str:
    """Return PBS's [[CC]YY]MMDDhhmm[.SS] as a date and time, or a time; unchanged without a year."""
    match = re.fullmatch(_DATE, text, re.ASCII)
    if not match or (match[3] and not match[2]):
        return text
    century, year, month, day, hour, minute, second = match.groups()
    clock = f"{hour}:{minute}" + (f":{second}" if second else "")
    return f"{century or 20}{year}-{month}-{day}T{clock}" if month else clock


def write(told: Mapping[str, Told], source: str, target: str, queue: str | None) -> Written:
    """Return the directives for another scheduler; those that it does not support are lost."""
    out = Written([], "", [])
    for key, one in told.items():
        try:
            lines, chunk = _write(key, one.value, source, target, queue)
        except ValueError as error:
            out.lost.append((one, str(error)))
        else:
            out = out._replace(lines=out.lines + lines, chunk=out.chunk + chunk)
    return out


def _write(key: str, value: str, source: str, target: str, queue: str | None) -> tuple[list[str], str]:
    """Return the directives, and the text in the request of each node.

    Raises:
        ValueError: the scheduler cannot express it; the message is the reason.
    """
    if why := SCHEDULERS[target].lacks.get(key):
        raise ValueError(why)
    if key == "begin" and source != "slurm" and re.fullmatch(r"\d+", value, re.ASCII):
        if target == "slurm":
            raise ValueError("a date without its year: write the year, too")
        return [f"-a {value}"], ""  # PBS takes the next such day
    if key == "reservation" and target == "pbspro" and queue:
        raise ValueError("PBS Pro's reservations are queues, and the script names a queue")
    if key == "constraint" and source != target:
        value = _constraint(value, source, target)
    BY_KEY[key].parse(value)
    if key == "constraint" and target != "slurm":
        return [], SCHEDULERS[target].constraint(value)
    return SCHEDULERS[target].lines(key, int(value) if key == "priority" else BY_KEY[key].parse(value)), ""


def _constraint(value: str, source: str, target: str) -> str:
    """Return a constraint for the target: features are joined by & on Slurm, by colons on Torque."""
    if source == "pbspro":
        raise ValueError("a resource of PBS Pro is no feature of a node elsewhere")
    return value.replace(":", "&") if target == "slurm" else value.replace("&", ":")
