"""Prints what a job, or one of its ranks, has written, and goes on with it until the job is over."""

from __future__ import annotations

import glob
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jobgen import runs
from jobgen.errors import JobgenError, shown
from jobgen.life import states
from jobgen.life.finding import job_id

_PAUSE = 0.5  # s between two looks at a file
_ASK = 5.0  # s between two questions to the scheduler
_CHUNK = 1 << 20  # bytes


class Which(NamedTuple):
    """Which log: of a rank (None: the job's output), of an attempt (None: the last one)."""

    rank: int | None
    attempt: int | None


def find(run: Path, which: Which) -> tuple[int, Path | None]:
    """The attempt, 0 before the first one, and its log as things are now; None where there is none yet.

    While a job runs, PBS keeps its output on the node: rank 0's log stands in for it. It is looked for before
    the events are read, which tell where the output is before any rank begins: it must not win a race.
    """
    ranked = [path for path in run.glob("attempt-*/rank-0.log") if path.is_file()]
    attempt, events = runs.last_attempt(run)
    if which.attempt is not None:
        attempt, events = which.attempt, runs.events(run / f"attempt-{which.attempt}")
    if not attempt:  # a job may end before its first attempt begins
        return 0, _output(run, job_id(run) or "") if which == (None, None) else None
    logs = run / f"attempt-{attempt}"
    if which.rank is not None:
        path = logs / f"rank-{which.rank}.log"
        return attempt, path if path.exists() else None
    said = next((Path(event.value) for event in events if event.what == "output"), None)
    began = next((event.value for event in events if event.what == "began"), "")
    outputs = [path for path in (said, _output(run, began)) if path and path.is_file()]
    found = [*outputs, *(path for path in ranked if path.parent == logs)]
    return attempt, found[0] if found else None


def _output(run: Path, job: str) -> Path | None:
    """The file that PBS or Slurm made in the run directory for a job, where no script has told its name."""
    number = glob.escape(job.partition(".")[0])
    return next((path for end in (f".o{number}", f"-{number}.log") for path in run.glob(f"*{end}")), None)


def check_task(run: Path) -> None:
    """Refuse an array, whose tasks have logs of their own.

    Raises:
        JobgenError: it is one.
    """
    if tasks := runs.tasks(run):
        raise JobgenError(f"{run.name} is an array: say which task, such as {run.name}/{tasks[0].name}")


def _check(run: Path, which: Which) -> None:
    last, _ = runs.last_attempt(run)
    if which.attempt is not None and which.attempt > last:
        raise JobgenError(f"--attempt {which.attempt} (command line): {run.name} has had {last}")
    if which.rank is not None and last:
        logs = run / f"attempt-{which.attempt or last}"
        known = sorted(int(path.stem[5:]) for path in logs.glob("rank-*.log") if path.stem[5:].isdecimal())
        if known and which.rank > known[-1]:
            raise JobgenError(
                f"--rank {which.rank} (command line): {logs.name} has the ranks 0 to {known[-1]}"
            )


def show(run: Path, which: Which) -> None:
    """All that is there now.

    Raises:
        JobgenError: nothing is, or the run has no such attempt, or the attempt no such rank.
    """
    _check(run, which)
    _, path = find(run, which)
    if path is None:
        raise JobgenError(f"{shown(run.name)} has no log yet: {_word(run)}; -f waits for it")
    for chunk in _new(path, 0):
        _write(chunk)


def follow(run: Path, which: Which) -> None:
    """All that is there, and all that comes, until the job is over.

    Raises:
        JobgenError: there was nothing in the end.
    """
    path: Path | None = None
    at = followed = 0
    asked = 0.0
    over = False
    while not over:
        if time.monotonic() - asked > (1 if _ended(run) else _ASK):
            over = not _goes_on(run, which)  # before the last look at the file
            if not asked and find(run, which)[1] is None:
                print(f"jobgen: {run.name} is {_word(run)}; waiting for its output", file=sys.stderr)
            asked = time.monotonic()
        attempt, now = find(run, which)
        # Within an attempt it stays at rank 0's log, where PBS brings the output later.
        if now is not None and (path is None or attempt != followed):
            if path is not None and now != path:
                _drain(path, at)
                print(f"jobgen: {now}", file=sys.stderr)
            path, at, followed = now, at if now == path else 0, attempt
        if path is not None:
            at = _drain(path, at)
        if not over:
            time.sleep(_PAUSE)
    if path is None:
        raise JobgenError(f"{run.name} left no such log: it is {_word(run)}")
    if (whole := find(run, which)[1]) not in (None, path):
        print(f"jobgen: the whole output is in {whole}", file=sys.stderr)


def _ended(run: Path) -> bool:
    return any(event.what == "ended" for event in runs.last_attempt(run)[1])


def _goes_on(run: Path, which: Which) -> bool:
    """Whether more may come: the scheduler has the job, or cannot be asked."""
    if which.attempt is not None and which.attempt < runs.last_attempt(run)[0]:
        return False
    [state], _ = states.states([run])
    return state.live or (state.state == "unknown" and not _ended(run))


def _word(run: Path) -> str:
    [state], _ = states.states([run])
    return state.state + (f" ({state.reason})" if state.reason else "")


def _drain(path: Path, at: int) -> int:
    """Print what is new behind ``at``; the answer is where that ends. A file that shrank begins anew."""
    try:
        at = 0 if path.stat().st_size < at else at
        for chunk in _new(path, at):
            _write(chunk)
            at += len(chunk)
    except OSError:
        pass  # it comes again, or the end of the job ends this
    return at


def _new(path: Path, at: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        file.seek(at)
        while chunk := file.read(_CHUNK):
            yield chunk


def _write(chunk: bytes) -> None:
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
