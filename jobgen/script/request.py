"""The options of a script that are in effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.pbspro import PBSPRO
from jobgen.schedulers.request import Option


def resources(options: tuple[Option, ...]) -> Iterator[tuple[Option, str, str]]:
    """Yield each ``NAME=VALUE`` of PBS's -l options; a select with its chunks is one value."""
    for option in options:
        if option.flag == "-l":
            for key, part in PBSPRO.settings(option):
                yield option, key[len("-l ") :], part.value


def settings(options: Sequence[Option], scheduler: Scheduler) -> Iterator[tuple[str, Option]]:
    """Yield each option with the key that identifies its repetitions: see Grammar in schedulers/base.py."""
    return (setting for option in options for setting in scheduler.settings(option))


def heeded(options: Sequence[Option], scheduler: Scheduler) -> dict[str, Option]:
    """Return the options in effect by key; the values of options that add up are joined with commas."""
    found: dict[str, Option] = {}
    for key, option in settings(options, scheduler):
        before, which = found.get(key), scheduler.grammar.precedence(key)
        if before is None or which == "last":
            found[key] = option
        elif which == "all":
            found[key] = option._replace(value=f"{before.value},{option.value}")
    return found
