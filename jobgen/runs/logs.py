"""Prints the output of a job, or of one of its ranks, and follows it until the job ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.hosts.calls import SchedulerError
from jobgen.runs import job_steps, node_files, run_directory, states
from jobgen.runs.lookup import job_id
from jobgen.runs.node_files import Log, last_lines
from jobgen.runs.regular_file import open_file
from jobgen.runs.remote import mirror
from jobgen.runs.remote import place as places
from jobgen.runs.terminal_text import TerminalText
from jobgen.schedulers.jobs import number, task

_PAUSE, _FAR_PAUSE = 0.5, 2.0  # s between two reads of a file: here, and at a host
_ASK = 5.0  # s between two queries to the scheduler
_CHUNK = 1 << 20  # bytes


class Which(NamedTuple):
    """The log to print: of a rank (None: the job's output), of an attempt (None: the last one), and the
    number of its last lines (None: all). With ``step``, a number or a name, it is a log of this step."""

    rank: int | None = None
    attempt: int | None = None
    tail: int | None = None
    step: str | None = None


def find(run: Path, which: Which) -> tuple[int, Log | None]:
    """Return the attempt, 0 before the first one, and its log at this time; None if there is none yet.

    While a job runs, PBS keeps its output on the node: the log of the first node, or that of rank 0 only,
    replaces it. This log is searched before the events are read. The events name the output before any rank
    begins, so a race cannot prefer the log to the output.
    """
    attempt = which.attempt or run_directory.last_number(run)
    if not attempt:  # a job may end before its first attempt begins
        output = output_file(run, job_id(run) or "") if which.rank is None else None
        return 0, Log(output) if output else None
    directory = run / f"attempt-{attempt}"
    if which.step is not None:
        of_step = node_files.log_of(job_steps.folder(directory, which.step), which.rank or 0)
        return attempt, Log(of_step.path) if of_step and which.rank is None else of_step
    ranked = node_files.log_of(directory, which.rank or 0)
    if which.rank is not None:
        return attempt, ranked
    events = run_directory.events(directory)
    log = next((_here(run, event.value) for event in events if event.what == "output"), None)
    began = next((event.value for event in events if event.what == "began"), "")
    outputs = [Log(path) for path in (log, output_file(run, began)) if path and path.is_file()]
    found = [*outputs, *([Log(ranked.path)] if ranked else [])]
    return attempt, found[0] if found else None


def _here(run: Path, path: str) -> Path:
    """Return the path here of a file that the script of a run names."""
    place = places.of(run)
    return place.here(path) if place else Path(path)


def output_file(run: Path, job: str) -> Path | None:
    """Return the output file of PBS or Slurm in the run directory, for a job that has not recorded it."""
    index = task(job) or ""
    ends = [f".o{number(job)}", f"-{number(job)}.log"]
    if index:  # of PBS Pro, Torque and Slurm; jobs are submitted from the parent of the task's directory
        ends = [f".o{number(job)}.{index}", f".o{number(job)}-{index}", f"-{number(job)}_{index}.log"]
    folders = (run, run.parent) if index else (run,)
    return next((path for folder in folders for end in ends for path in folder.glob(f"*{end}")), None)


def check_task(run: Path) -> None:
    """Refuse an array: each of its tasks has a log of its own.

    Raises:
        JobgenError: the run is an array.
    """
    if tasks := run_directory.tasks(run):
        raise JobgenError(f"{run.name} is an array: say which task, such as {run.name}/{tasks[0].name}")


def show(run: Path, which: Which, write: Callable[[bytes], object] | None = None) -> None:
    """Print the log as it is now, or pass it to ``write``.

    Raises:
        JobgenError: there is no log, or the run has no such attempt, or the attempt no such rank.
    """
    _look(run)
    check_task(run)
    last = run_directory.last_number(run)
    if which.attempt is not None and which.attempt > last:
        raise JobgenError(f"--attempt {which.attempt} (command line): {run.name} has had {last}")
    attempt, log = find(run, which)
    if log is None:
        why = _why_none(run, attempt, which.rank)
        yet, wait = (" yet", "; -f waits for it") if _goes_on(run, which) else ("", "")
        raise JobgenError(why or f"{shown(run.name)} has no log{yet}: {_word(run)}{wait}")
    try:
        begin = _fetched_begin(log, which.tail)
    except JobgenError as error:
        begin, hole = _begin(log, which.tail), mirror.hole(log.path)
        if not (log.path.is_file() and log.path.stat().st_size) or (hole and begin <= hole):
            raise
        print(f"jobgen: {error}; this is what was fetched before", file=sys.stderr)
    _print(log, begin, True, write or _printer())


def _fetched_begin(log: Log, tail: int | None) -> int:
    """Fetch what is printed of a log of a run on a host; return the place from which it is printed."""
    if tail is not None:
        mirror.pull_end(log.path)
        if (begin := _begin(log, tail)) > mirror.hole(log.path) or not mirror.hole(log.path):
            return begin
    mirror.pull_all(log.path)
    return _begin(log, tail)


def _begin(log: Log, tail: int | None) -> int:
    """Return the place from which a log is printed."""
    try:
        return 0 if tail is None else last_lines(log, tail)
    except OSError:
        return 0


def _why_none(run: Path, attempt: int, rank: int | None) -> str:
    """Return why an attempt has no log of a rank; empty if the log may still come."""
    known = node_files.ranks(run / f"attempt-{attempt}") if rank is not None else ()
    if any(one.number == rank for one in known):
        kept = "--rank-logs failed keeps only the logs of the ranks that failed, none keeps no log"
        return f"attempt-{attempt} has no log of rank {rank}: {kept}"
    if known and rank is not None and rank > known[-1].number:
        return f"--rank {rank} (command line): attempt-{attempt} has the ranks 0 to {known[-1].number}"
    return ""


def follow(run: Path, which: Which) -> None:
    """Print the log, and follow it until the job ends.

    Raises:
        JobgenError: the job has ended without a log, the run is an array, or its directory was removed.
    """
    _look(run)
    check_task(run)
    place = places.of(run)
    write, beat = _printer(), _FAR_PAUSE if place else _PAUSE
    log: Log | None = None
    at = followed = 0
    queried = 0.0
    over = False
    tail, warn = which.tail, _changes()
    while not over:
        places.check_kept(run, place)
        if time.monotonic() - queried > (1 if _ended(run) else _ASK):
            over = not _goes_on(run, which)  # before the last read of the file
            if not queried and find(run, which)[1] is None:
                print(f"jobgen: {run.name} is {_word(run)}; waiting for its output", file=sys.stderr)
            queried = time.monotonic()
        looked, pause = time.monotonic(), beat
        # Within an attempt, stay with the log of the first node: PBS delivers the output later.
        if log is None or (which.attempt or run_directory.last_number(run)) != followed:
            attempt, now = find(run, which)
            same = now is not None and log is not None and _same(now, log)
            begin = at if same or now is None else _reachable_begin(now, tail, warn)
            if now is not None and log is not None and not same and begin is not None:
                _drain(log, at, write, whole=True)
                print(f"jobgen: {now.path}", file=sys.stderr)
            if now is not None and begin is not None:
                log, at, followed = now, begin, attempt
            if begin is not None:
                tail = None  # what comes after the first look is printed from its beginning
            pause = max(beat, 10 * (time.monotonic() - looked))  # find() is slow with thousands of nodes
        if log is not None:
            over = _fetch(log.path, over, warn)
            at = _drain(log, at, write, whole=over)
        if not over:
            time.sleep(pause)
    attempt, whole = find(run, which)
    if log is None:
        why = _why_none(run, attempt, which.rank)
        raise JobgenError(why or f"{run.name} left no such log: it is {_word(run)}")
    if whole is not None and not _same(whole, log):
        print(f"jobgen: the whole output is in {whole.path}", file=sys.stderr)


def _look(run: Path) -> None:
    """Fetch what is new of a run on a host; an error if that fails, and nothing of its output is here."""
    for error in mirror.refresh(places.of_all([run])).values():
        if find(run, Which())[1] is None:
            raise error


def _fetch(log: Path, over: bool, warn: Callable[[str], None]) -> bool:
    """Fetch what was added to a log at a host, and return whether it is over: while the host does not answer,
    it is not."""
    try:
        over = not mirror.pull(log) and over
    except mirror.GoneError as error:
        warn(str(error))
        return over
    except SchedulerError as error:
        warn(f"{error}; the log goes on when it answers")
        return False
    warn("")
    return over


def _reachable_begin(log: Log, tail: int | None, warn: Callable[[str], None]) -> int | None:
    """Return the place from which a log is printed; None while its host does not answer, or has none."""
    try:
        return _fetched_begin(log, tail)
    except mirror.GoneError as error:
        warn(str(error))
        return None
    except SchedulerError as error:
        warn(f"{error}; the log goes on when it answers")
        return None


def _changes() -> Callable[[str], None]:
    """Return a function that prints a message unless it was the last one; an empty one is never printed."""
    last = ""

    def warn(text: str) -> None:
        nonlocal last
        if text and text != last:
            print(f"jobgen: {text}", file=sys.stderr)
        last = text

    return warn


def _same(one: Log, other: Log) -> bool:
    """Return whether two logs are one: the job records the absolute path of its output."""
    return one.prefix == other.prefix and one.path.resolve() == other.path.resolve()


def _ended(run: Path) -> bool:
    return any(event.what == "ended" for event in run_directory.last_attempt(run)[1])


def _goes_on(run: Path, which: Which) -> bool:
    """Return whether more output may come: the scheduler has the job, or cannot be asked."""
    if which.attempt is not None and which.attempt < run_directory.last_attempt(run)[0]:
        return False
    [state], _ = states.states([run])
    return state.live or (state.state == "unknown" and not _ended(run))


def _word(run: Path) -> str:
    [state], _ = states.states([run])
    return state.state + (f" ({state.reason})" if state.reason else "")


def _drain(log: Log, at: int, write: Callable[[bytes], object], whole: bool) -> int:
    """Print the output after ``at`` and return its end; print all of it if the file has shrunk."""
    try:
        return _print(log, 0 if log.path.stat().st_size < at else at, whole, write)
    except OSError:
        return at  # the file may come back; the end of the job ends this loop


def _print(log: Log, at: int, whole: bool, write: Callable[[bytes], object]) -> int:
    """Print a log from ``at`` on and return its end. In the output of several ranks, an incomplete last line
    is left for later, unless the log is ``whole``."""
    rest = b""
    with open_file(log.path) as file:
        file.seek(at)
        while chunk := file.read(_CHUNK):
            at += len(chunk)
            lines, rest = _lines(rest + chunk) if log.prefix else (chunk, b"")
            write(node_files.only(lines, log.prefix))
    if whole:
        write(node_files.only(rest, log.prefix))
    return at if whole else at - len(rest)


def _lines(data: bytes) -> tuple[bytes, bytes]:
    """Return the complete lines, and the beginning of an incomplete one."""
    lines, end, rest = data.rpartition(b"\n")
    return lines + end, rest


def _printer() -> Callable[[bytes], object]:
    """Return the function that prints a log: as it is, or without control sequences on a terminal."""
    terminal = TerminalText() if sys.stdout.isatty() else None

    def write(chunk: bytes) -> None:
        data = terminal.shown(chunk).encode(errors="replace") if terminal else chunk
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    return write
