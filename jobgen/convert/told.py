"""What jobgen has options for beside sizes: read from directives as the options have it, and written by them.

The spelling of each scheduler is that of jobgen/directives.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from jobgen import directives
from jobgen.check.directives import Option
from jobgen.options import BY_KEY
from jobgen.schedulers import SCHEDULERS

_DATE = r"(?:(?:(\d\d)?(\d\d))?(\d\d)(\d\d))?(\d\d)(\d\d)(?:\.(\d\d))?"
_UNITS = {"second": "s", "minute": "m", "hour": "h", "day": "d", "": "s"}


class Told(NamedTuple):
    """A directive, its text, and its value as the option takes it."""

    option: Option
    text: str
    value: str


class Written(NamedTuple):
    """Directives, what stands behind the request of each node, and what is lost: with the reason."""

    lines: list[str]
    chunk: str
    lost: list[tuple[Told, str]]


def _beginnings(row: str) -> dict[str, str]:
    """The option that a directive begins as: ``--nice``, ``-l advres``."""
    forms = {key: form for key, form in directives.FORMS[row].items() if key != "exclusive"}
    return {form.partition("{}")[0].rstrip('= "'): key for key, form in forms.items() if form[:2] != "-q"}


_KEYS = {row: _beginnings(row) for row in ("slurm", "pbspro", "torque")}


def key_of(beginning: str, row: str) -> str | None:
    """The option that this directive is, if there is one."""
    return _KEYS[row].get(beginning)


def value_of(key: str, value: str, row: str) -> str:
    """A directive's value as the option takes it; as it stands where that is not known."""
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
    """PBS's [[CC]YY]MMDDhhmm[.SS] as a date and time, or as a time alone; not without a year."""
    match = re.fullmatch(_DATE, text, re.ASCII)
    if not match or (match[3] and not match[2]):
        return text
    century, year, month, day, hour, minute, second = match.groups()
    clock = f"{hour}:{minute}" + (f":{second}" if second else "")
    return f"{century or 20}{year}-{month}-{day}T{clock}" if month else clock


def write(told: Mapping[str, Told], source: str, target: str, queue: str | None) -> Written:
    """All of them for another scheduler, as far as it has them."""
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
    """The directives, and what stands in the request of each node.

    Raises:
        ValueError: the reason why there are none.
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
        return [], directives.chunk(value, target)
    return directives.lines(key, int(value) if key == "priority" else BY_KEY[key].parse(value), target), ""


def _constraint(value: str, source: str, target: str) -> str:
    """Several features are joined by & on Slurm, by colons on Torque."""
    if source == "pbspro":
        raise ValueError("a resource of PBS Pro is no feature of a node elsewhere")
    return value.replace(":", "&") if target == "slurm" else value.replace("&", ":")
