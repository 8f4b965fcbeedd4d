"""The scheduler's command for submission, its repetition while the scheduler is busy, and the outcome for the
job."""

from __future__ import annotations

import random
import sys
import time
from functools import partial
from pathlib import Path

from jobgen.errors import JobgenError
from jobgen.hosts.calls import Done, SchedulerError, call_into, complaint
from jobgen.hosts.host import HERE
from jobgen.hosts.ssh import UnreachableError
from jobgen.runs import intent
from jobgen.runs.remote.place import Place
from jobgen.runs.remote.submission import run_once
from jobgen.runs.run_directory import SCRIPT
from jobgen.schedulers.answers import Meaning, meaning
from jobgen.schedulers.base import Scheduler

_SLOW = 5.0  # s; after that an unknown error may be one of the connection
_KILLED = {128 + number for number in (1, 2, 9, 15)}  # by a wrapper of the command; qsub has other statuses
_LATE = 20.0  # s without an answer until a message says so
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0  # s


class RefusedError(SchedulerError):
    """The scheduler has refused the job, and lists none that was submitted from the directory."""


class BusyError(RefusedError):
    """The scheduler has refused the job, but may take it later."""


class EndedPauseError(JobgenError):
    """The user has interrupted a pause between two submissions; there is no job."""

    status = 130


class InterruptedSubmissionError(JobgenError):
    """The user has interrupted the command; it may have submitted the job."""

    status = 130


def run(
    directory: Path, scheduler: Scheduler, handle: int, patience: float, place: Place | None = None
) -> tuple[str, str]:
    """Submit the script of a run directory, whose record is ``handle``; return the id of the job, and a
    remark if the command did not report it well. Submit it again for ``patience`` seconds if the scheduler is
    busy. ``place``: of a run on another host.

    Raises:
        RefusedError: there is no job; the message is the scheduler's own.
        EndedPauseError: the same.
        SchedulerError: the job may be queued.
        InterruptedSubmissionError: the same.
    """
    begun, tries = time.monotonic(), 1
    while True:
        try:
            return _submit(directory, scheduler, handle, place, tries)
        except BusyError as error:
            left = begun + patience - time.monotonic()
            if left <= 0:
                raise BusyError(_with_tries(str(error), tries, patience)) from None
            _pause(handle, tries, min(_length(tries), left), error, patience)
        tries += 1


def _with_tries(text: str, tries: int, patience: float) -> str:
    """Return the scheduler's message, with the number of submissions if there were several."""
    if tries == 1:
        return text
    return f"{text}; it was submitted {tries} times in {patience:.0f} s: --submit-timeout allows more"


def _length(tries: int) -> float:
    """Return the seconds before the next submission, which differ from those of other users."""
    return min(_FIRST_PAUSE * 2.0 ** (tries - 1), _LONGEST_PAUSE) * random.uniform(0.75, 1.25)


def _pause(handle: int, tries: int, seconds: float, error: BusyError, patience: float) -> None:
    """Wait before the next submission; print the reason before the first pause."""
    try:
        if tries == 1:
            again = f"it is submitted again for up to {patience:.0f} s (--submit-timeout)"
            print(f"jobgen: {error}; there is no job yet, and {again}", file=sys.stderr)
        time.sleep(seconds)
        intent.begin_again(handle)
    except KeyboardInterrupt:
        raise _interrupted(error) from None
    except OSError as fault:
        raise RefusedError(f"{error}; {intent.NAME} cannot be written: {fault.strerror}") from None


def _submit(
    directory: Path, scheduler: Scheduler, handle: int, place: Place | None, number: int
) -> tuple[str, str]:
    """Submit the script once."""
    begun = time.monotonic()
    jobs, name, later = scheduler.jobs(), scheduler.command, f"jobgen status {directory.name} asks again"
    try:
        if place:
            status = run_once(place, (*jobs.command, SCRIPT), number, handle)
        else:
            late = partial(_late, directory, name)
            status = call_into((*jobs.command, SCRIPT), directory, handle, _LATE, late)
    except UnreachableError as error:
        raise UnreachableError(f"{error}; there may be a job: {later}") from None
    except KeyboardInterrupt:
        intent.record_end(handle, None)
        raise InterruptedSubmissionError(f"interrupted, but {name} may have made a job: {later}") from None
    intent.record_end(handle, status)
    fast = time.monotonic() - begun < _SLOW
    record = intent.read(directory)
    printed = jobs.submitted(record.answer)
    if status == 0 and len(printed) == 1:
        return printed[0], ""
    words = complaint(Done(status, "", record.answer))
    result = f"{name} refuses the job: {words}" if status else f"{name} printed no id of a job: {words}"
    ended = status > 0 and status not in _KILLED and not printed
    means = meaning(record.answer, fast) if ended else Meaning.UNSURE
    busy = BusyError(f"{name} cannot submit the job now: {words}") if means is Meaning.BUSY else None
    if busy:
        intent.record_pause(handle)
    try:
        found = dict(jobs.find(record.paths, time.time(), place.host if place else HERE))
    except SchedulerError as error:
        why = f"{result}; it is unknown whether there is a job, because {error}: {later}"
        raise busy or SchedulerError(why) from None
    except KeyboardInterrupt:
        raise _interrupted(busy) if busy else InterruptedSubmissionError(f"interrupted: {later}") from None
    if found:
        return next(iter(found.values())), f"{name} printed: {words}; the job is queued all the same"
    if means is Meaning.UNSURE:
        raise SchedulerError(f"{result}; the scheduler lists no job, but there may be one: {later}")
    raise busy or RefusedError(result)


def _late(directory: Path, name: str) -> str:
    """Return the message on a command that has not ended: sbatch itself repeats some requests."""
    printed = intent.read(directory).answer
    words = f" (it printed: {complaint(Done(0, '', printed))})" if printed.strip() else ""
    asks = f"after Ctrl-C, jobgen status {directory.name} asks for the job"
    return f"jobgen: {name} has not ended for {_LATE:.0f} s{words}; {asks}"


def _interrupted(error: BusyError) -> EndedPauseError:
    return EndedPauseError(f"interrupted; there is no job: {error}")
