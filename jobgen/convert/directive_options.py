"""Directives for which jobgen has options, except sizes: written from the values of the options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from jobgen.options import BY_KEY
from jobgen.schedulers.base import matches
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import Directive


class Written(NamedTuple):
    """Directives, the text that follows the request of each node, and lost directives with the reason."""

    lines: list[str]
    chunk: str
    lost: list[tuple[Directive, str]]


def write(
    directives: Mapping[str, Directive], source: Dialect, target: Dialect, queue: str | None
) -> Written:
    """Return the directives for another scheduler; those that it does not support are lost."""
    out = Written([], "", [])
    for key, one in directives.items():
        try:
            lines, chunk = _write(key, one.value, source, target, queue)
        except ValueError as error:
            out.lost.append((one, str(error)))
        else:
            out = out._replace(lines=out.lines + lines, chunk=out.chunk + chunk)
    return out


def _write(
    key: str, value: str, source: Dialect, target: Dialect, queue: str | None
) -> tuple[list[str], str]:
    """Return the directives, and the text in the request of each node.

    Raises:
        ValueError: the scheduler cannot express it; the message is the reason.
    """
    if key == "begin" and value == "now":
        return [], ""
    if why := target.scheduler.lacks.get(key):
        raise ValueError(why)
    if key == "begin" and source.yearless_dates and matches(r"\d+", value):
        if not target.yearless_dates:
            raise ValueError("the date has no year: add it")
        return [target.scheduler.forms[key].format(value)], ""
    if key == "reservation" and target.scheduler.reservation_queue and queue:
        raise ValueError(f"reservations of {target.title} are queues, and the script already has a queue")
    if key == "constraint" and source is not target:
        if source.features_are_resources and re.search(r"(^|:)v?(host|node)=", value):
            raise ValueError("names a host, which is no feature of a node")
        if source.features_are_resources:
            raise ValueError(f"a resource of {source.title} is not a feature of a node in {target.title}")
        value = value.replace(source.feature_separator, target.feature_separator)
    parsed = BY_KEY[key].parse(value)
    if key == "constraint" and "constraint" in target.scheduler.in_request:
        return [], target.scheduler.constraint(value)
    return target.scheduler.lines(key, int(value) if key == "priority" else parsed), ""
