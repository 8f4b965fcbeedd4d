"""The attempts of each run on one time line: geometry only, drawn by templates/report/timeline.svg.j2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobgen.report import axes
from jobgen.report.axes import Axis, duration
from jobgen.runs import run_directory
from jobgen.runs.run_directory import Attempt, RunRecord

WIDTH, ROW = 720, 26
LEFT, RIGHT, TOP, BOTTOM = 58, 26, 8, 34
_LEAST = 3.0  # pixels: very short attempts are visible, too


class Bar(NamedTuple):
    """An attempt; ``kind`` is the kind of its end (good, missed, on, bad, open)."""

    run: int
    attempt: int
    kind: str
    x: float
    y: float
    width: float
    description: str


class EventMark(NamedTuple):
    """An event in an attempt: a signal, or the deadline."""

    what: str
    x: float
    y: float
    description: str


class Timeline(NamedTuple):
    height: int
    x: Axis
    bars: tuple[Bar, ...]
    marks: tuple[EventMark, ...]


def kind(status: int | None) -> str:
    """Return the kind of an attempt's end."""
    return {None: "open", 0: "good", 3: "missed", run_directory.RESUMABLE: "on"}.get(status, "bad")


def ending(run: RunRecord, attempt: Attempt, training: bool) -> str:
    """Return the end of an attempt in words; an attempt before the last one does not run any more."""
    if attempt.status is None and attempt is not run.attempts[-1]:
        return "no end is recorded: it was killed together with the script"
    return run_directory.meaning(attempt.status, training)


def timeline(all_runs: Sequence[RunRecord], trained: Sequence[bool]) -> Timeline | None:
    """Return the time line: each run begins at the left, with its first attempt; None without times."""
    starts = [first_sign(run) for run in all_runs]
    ends = [
        attempt.ended - start
        for run, start in zip(all_runs, starts, strict=True)
        for attempt in run.attempts
        if start is not None and attempt.ended is not None
    ]
    if not ends:
        return None
    x = axes.times(ends, LEFT, WIDTH - RIGHT)
    bars, marks = [], []
    for i, (run, start) in enumerate(zip(all_runs, starts, strict=True)):
        for attempt in run.attempts if start is not None else ():
            if start is not None and attempt.began is not None and attempt.ended is not None:
                bars.append(_bar(i, attempt, start, x, ending(run, attempt, trained[i])))
                marks.extend(_marks(i, attempt, start, x))
    return Timeline(TOP + ROW * len(all_runs) + BOTTOM, x, tuple(bars), tuple(marks))


def first_sign(run: RunRecord) -> float | None:
    """Return when the first attempt began, in seconds since 1970."""
    return min((attempt.began for attempt in run.attempts if attempt.began is not None), default=None)


def run_time(attempt: Attempt) -> float | None:
    """Return how long an attempt ran, in seconds."""
    return None if attempt.began is None or attempt.ended is None else attempt.ended - attempt.began


def _bar(run: int, attempt: Attempt, start: float, x: Axis, meaning: str) -> Bar:
    assert attempt.began is not None
    assert attempt.ended is not None
    left, right = x.place(attempt.began - start), x.place(attempt.ended - start)
    status = "" if attempt.status is None else f"{attempt.status}, "
    description = f"run {run + 1}, attempt {attempt.number}: {duration(run_time(attempt))}; {status}{meaning}"
    width = max(_LEAST, round(right - left, 1))
    return Bar(run, attempt.number, kind(attempt.status), left, TOP + ROW * run, width, description)


def _marks(run: int, attempt: Attempt, start: float, x: Axis) -> list[EventMark]:
    found = []
    for event in attempt.events:
        at = run_directory.number(event.value) if event.what == "deadline" else event.time
        if event.what in ("deadline", "signal") and at is not None and 0 <= at - start <= x.high:
            description = (
                "the deadline: saving had to begin" if event.what == "deadline" else f"signal {event.value}"
            )
            found.append(EventMark(event.what, x.place(at - start), TOP + ROW * run, description))
    return found
