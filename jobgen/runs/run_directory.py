"""Reader of run directories: their attempts, failures and metrics. It never writes.

README.md, "The run directory", describes a run directory. Jobs are killed while they write: a file
that is missing, truncated or invalid counts as absent and is not an error.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from jobgen.runs import node_files, regular_file
from jobgen.runs.exit_statuses import RESUMABLE as RESUMABLE
from jobgen.runs.exit_statuses import meaning as meaning
from jobgen.runs.node_files import Log, Rank
from jobgen.values.parsers import count

SCRIPT, PLAN = "job.sh", "plan.json"
START = "submitted-from"  # it names the directory that the job starts in
METRICS = "metrics.jsonl"
PARTS = ("", "task-*/", "step-*/", "task-*/step-*/")  # a run directory, and those in it
_SIGNS = (SCRIPT, PLAN, METRICS, "status.json", "attempt-1")


class Event(NamedTuple):
    """An entry of the script: began JOBID, output FILE, deadline SECONDS, signal NAME, ended STATUS."""

    time: float
    what: str
    value: str


class Attempt(NamedTuple):
    """An attempt of a job. ``status`` is None if no end is recorded: it runs, or was killed with its script;
    ``ended`` is then the last time that it was known to run."""

    number: int
    directory: Path
    began: float | None
    ended: float | None
    status: int | None
    events: tuple[Event, ...]
    ranks: tuple[Rank, ...]


class RunRecord(NamedTuple):
    """A run directory. ``status`` is status.json of the training; ``bad_hosts`` have a reason each."""

    directory: Path
    name: str
    status: dict[str, Any]
    attempts: tuple[Attempt, ...]
    hosts: tuple[str, ...]
    bad_hosts: tuple[tuple[str, str], ...]


class Metrics(NamedTuple):
    """The objects of metrics.jsonl, in order, and the number of its lines that are not objects."""

    rows: list[dict[str, Any]]
    skipped: int


def is_run(path: Path) -> bool:
    """Return whether a job, or the training module by itself, has written files there."""
    return any(os.path.exists(path / sign) for sign in _SIGNS)


def tasks(path: Path) -> list[Path]:
    """Return the run directories of an array's tasks, in the order of their indices."""
    return inside(path, "task-*")


def inside(path: Path, pattern: str = "*") -> list[Path]:
    """Return the run directories in a directory, sorted by name; numbers in names are sorted by value."""

    def order(path: Path) -> list[tuple[int, str]]:
        words = re.split(r"([0-9]+)", path.name)
        return [(int(word), "") if word.isdecimal() else (-1, word) for word in words]

    return sorted((child for child in path.glob(pattern) if is_run(child)), key=order)


def read(directory: Path) -> RunRecord:
    """Return a run without its metrics, which may be large."""
    path = directory.absolute()
    return RunRecord(
        directory=path,
        name=name_of(path),
        status=as_object(regular_file.text(path / "status.json")),
        attempts=tuple(attempts(path)),
        hosts=tuple(regular_file.text(path / "hosts").split()),
        bad_hosts=tuple(_bad_hosts(regular_file.text(path / "bad-hosts"))),
    )


def name_of(path: Path) -> str:
    """Return the name of a run; that of an array's task begins with the array's name."""
    return f"{path.parent.name}/{path.name}" if path.name.startswith("task-") else path.name


def attempts(directory: Path) -> Iterator[Attempt]:
    """Yield the attempts of a run, the first one first."""
    numbers = (child.name.removeprefix("attempt-") for child in directory.glob("attempt-*"))
    for number in sorted(int(word) for word in numbers if word.isascii() and word.isdecimal()):
        yield _attempt(directory / f"attempt-{number}", number)


def _attempt(directory: Path, number: int) -> Attempt:
    events = tuple(_events(regular_file.text(directory / "events")))
    began = _began(events)
    ended = _end(events)
    status = count(ended.value) if ended else None
    ranks = node_files.ranks(directory, complete=status in (0, RESUMABLE))
    signs = [time for rank in ranks for time in (rank.began, rank.ended) if time is not None]
    return Attempt(
        number,
        directory,
        began if began is not None else min(signs, default=None),
        ended.time if ended else _last_sign(directory, events, signs),
        status,
        events,
        ranks,
    )


def _began(events: tuple[Event, ...]) -> float | None:
    return next((event.time for event in events if event.what == "began"), None)


def _end(events: tuple[Event, ...]) -> Event | None:
    return next((event for event in reversed(events) if event.what == "ended"), None)


def _last_sign(directory: Path, events: tuple[Event, ...], signs: list[float]) -> float | None:
    """Return when an attempt without a recorded end was last known to run."""
    noted = (event.time for event in events)
    return max((*signs, *noted, *node_files.times(directory)), default=None)


def _events(lines: str) -> Iterator[Event]:
    for line in lines.splitlines():
        time, _, rest = line.partition(" ")
        what, _, value = rest.partition(" ")
        if (seconds := number(time)) is not None and what:
            yield Event(seconds, what, value)


def failed_ranks(attempt: Attempt) -> list[Rank]:
    """Return the ranks that failed, in the order of time, then ranks of a failed attempt without a status."""
    bad = [rank for rank in attempt.ranks if rank.status not in (None, 0, RESUMABLE)]
    over = attempt.status not in (None, 0, RESUMABLE)
    silent = [rank for rank in attempt.ranks if over and rank.status is None]
    return sorted(bad, key=lambda rank: rank.ended or math.inf) + silent


def read_metrics(directory: Path) -> Metrics:
    """Return every line of metrics.jsonl that is a JSON object; NaN and Infinity are numbers there."""
    rows: list[dict[str, Any]] = []
    skipped = 0
    with suppress(OSError), regular_file.open_file(directory / METRICS) as file:
        for line in file:
            if row := as_object(line.decode(errors="replace")):
                rows.append(row)
            elif line.strip():
                skipped += 1
    return Metrics(rows, skipped)


def plan(directory: Path) -> dict[str, Any]:
    """Return plan.json of a run, or of its array; empty if the job was not submitted by jobgen."""
    return next(filter(None, map(as_object, _texts(directory, "plan.json"))), {})


def script(directory: Path) -> str:
    """Return job.sh of a run, or of its array; empty if it does not exist."""
    return next(filter(None, _texts(directory, "job.sh")), "")


def _texts(directory: Path, name: str) -> Iterator[str]:
    """Yield a file of a run, and that of its array."""
    yield regular_file.text(directory / name)
    if directory.name.startswith("task-"):
        yield regular_file.text(directory.parent / name)


def tail(path: Path, lines: int = 20) -> str:
    """Return the last lines of a file of any size."""
    return node_files.tail(Log(path), lines)


def as_object(line: str) -> dict[str, Any]:
    """Return a JSON object; empty if the line is not one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return as_dict(value)


def as_dict(value: Any) -> dict[str, Any]:
    """Return the value if it is an object of JSON; else an empty one."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float | None:
    """Return a finite number, also from text; None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return result if abs(result) < 1e300 else None  # so that differences are finite, too


def _bad_hosts(lines: str) -> Iterator[tuple[str, str]]:
    for line in dict.fromkeys(lines.splitlines()):
        host, _, reason = line.partition("\t")
        if host:
            yield host, reason


def last_number(directory: Path) -> int:
    """Return the number of the last attempt; 0 if there is none."""
    try:
        names = [
            name.removeprefix("attempt-") for name in os.listdir(directory) if name.startswith("attempt-")
        ]
    except OSError:
        return 0
    return max((int(name) for name in names if name.isascii() and name.isdecimal()), default=0)


def last_attempt(directory: Path) -> tuple[int, tuple[Event, ...]]:
    """Return the number of the last attempt (0: none) and its events, without reading its ranks."""
    number = last_number(directory)
    return number, events(directory / f"attempt-{number}") if number else ()


def events(attempt: Path) -> tuple[Event, ...]:
    """Return the entries of the script in an attempt."""
    return tuple(_events(regular_file.text(attempt / "events")))


def times(attempt: Path, events: tuple[Event, ...]) -> tuple[float, float] | None:
    """Return when an attempt began, and when it ended or was last known to run."""
    began, end = _began(events), _end(events)
    if began is None:
        return None
    return began, end.time if end else max(began, _last_sign(attempt, events, []) or began)
