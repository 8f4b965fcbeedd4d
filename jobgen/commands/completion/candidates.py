"""The candidates for an option or an argument: words of the tables, sites, hosts, queues, runs or file
names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import click

from jobgen.commands.accepted import accepts
from jobgen.options import BY_KEY, OPTIONS
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import COMMANDS, SCHEDULERS, queued
from jobgen.values.parsers import Choice

FILES, DIRECTORIES = ":files", ":directories"
_PATIENCE = 2  # s; the user is typing


class Candidate(NamedTuple):
    """A candidate and its description."""

    value: str
    about: str = ""


def values(
    parameter: click.Parameter,
    command: click.Command,
    given: Mapping[str, str],
    arguments: Sequence[str],
    current: str,
) -> Iterator[Candidate]:
    """Yield all candidates for a parameter's value, also those that do not match ``current``. The name or the
    metavar of the parameter determines the kind of value: FILE, DIR, RUN, or the words themselves."""
    metavar = (parameter.metavar or (parameter.name or "").upper()).strip("[].")
    schedulers = schedulers_of(command, arguments)
    if parameter.name == "queue":
        yield from _queues(schedulers, given)
    elif parameter.name == "host":
        from jobgen.sites.host_file import names as hosts

        yield from map(Candidate, hosts())
    elif parameter.name == "site" or (command.name in ("show", "refresh") and metavar == "NAME"):
        from jobgen.sites.search import names

        yield from map(Candidate, names())
    elif parameter.name == "settings":
        yield from _settings(schedulers, current)
    elif re.fullmatch(r"[a-z]+(\|[a-z]+)+", metavar):
        key = parameter.name if parameter.name in BY_KEY else ""
        yield from (Candidate(word) for word in metavar.split("|") if _fits(schedulers, key, word))
    elif metavar == "RUN":
        yield from _runs(given)
    elif metavar in ("FILE", "DIR"):
        yield Candidate(FILES if metavar == "FILE" else DIRECTORIES)


def schedulers_of(command: click.Command, arguments: Sequence[str]) -> list[Scheduler]:
    """Return the schedulers that a command line may be for: of one command, or of all that it accepts."""
    names = [word for word in (command.name or "", *arguments) if word in COMMANDS][:1]
    if not names:
        accepted = (one.metavar or "" for one in command.params if one.name == "scheduler")
        names = "|".join(accepted).split("|")
    return [row for row in SCHEDULERS.values() if row.command_name in names]


def _fits(schedulers: Sequence[Scheduler], key: str, word: str = "") -> bool:
    """Return whether one of the schedulers accepts an option, or a word of it; other words fit."""
    return not key or not schedulers or any(accepts(row, key, word) for row in schedulers)


def flag_fits(command: click.Command, arguments: Sequence[str], parameter: click.Parameter) -> bool:
    """Return whether one of the schedulers of a command line accepts an option."""
    key = parameter.name if parameter.name in BY_KEY else ""
    return _fits(schedulers_of(command, arguments), key)


def _queues(schedulers: Sequence[Scheduler], given: Mapping[str, str]) -> Iterator[Candidate]:
    """Yield the queues of the given site or host; without them, those that the scheduler lists."""
    host = given.get("host")
    if site := given.get("site") or (_site_of(host) if host else None):
        from jobgen.sites.loader import load

        yield from (Candidate(name) for name, one in load(site).queues.items() if one.enabled)
        return
    from jobgen.hosts.calls import SchedulerError

    for one in queued().values():
        with suppress(SchedulerError):  # it is not installed, or does not answer
            for queue in one.cluster().queues(_PATIENCE) if one in schedulers else ():
                yield Candidate(queue)


def _site_of(host: str) -> str | None:
    from jobgen.sites.host_file import read

    return read(host).site


def _settings(schedulers: Sequence[Scheduler], current: str) -> Iterator[Candidate]:
    """Yield the keys of a job file; after the ``=``, the words that the key accepts."""
    from jobgen.jobfile.tables import meaning, table_of

    key, equals, _ = current.partition("=")
    for option in (one for one in OPTIONS if _fits(schedulers, one.key)):
        place = f"{table_of(option)}.{option.name}"
        if not equals:
            yield Candidate(place + "=", meaning(option))
        elif place == key and isinstance(option.parse, Choice):
            yield from (
                Candidate(f"{key}={word}")
                for word in option.parse.allowed
                if _fits(schedulers, option.key, word)
            )
        elif place == key and option.switch:
            yield from (Candidate(f"{key}=true"), Candidate(f"{key}=false"))
    if not equals:
        yield Candidate("train.")


def _runs(given: Mapping[str, str]) -> Iterator[Candidate]:
    """Yield the run directories, newest first."""
    root = given.get("runs_dir") or str(BY_KEY["runs_dir"].default)
    found = [entry for entry in os.scandir(root) if os.path.isfile(os.path.join(entry.path, "job.sh"))]
    for entry in sorted(found, key=lambda one: one.stat().st_mtime, reverse=True):
        yield Candidate(entry.name)
