"""The scheduler's command for submission, and the outcome for the job."""

from __future__ import annotations

import re
import time
from pathlib import Path

from jobgen.errors import JobgenError
from jobgen.hosts.calls import Done, SchedulerError, call_into, complaint
from jobgen.runs import intent
from jobgen.schedulers.base import Scheduler

SCRIPT = "job.sh"
_SLOW = 5.0  # s; after that an error may be one of the connection, and the scheduler may still take the job
# Errors after which the scheduler may still take the job, of Slurm and of PBS. "Failed to recv data": qsub of
# OpenPBS submits by an earlier qsub that waits in the background, and this one ended before it answered
# (daemon_submit of qsub_sup.c).
_UNSURE = re.compile(
    r"timed out|timeout|zero bytes|end of file|reset by peer|broken pipe|protocol|failed to recv data", re.I
)
_KILLED = {128 + number for number in (1, 2, 9, 15)}  # by a wrapper of the command; qsub has other statuses
_LATE = 20.0  # s without an answer until a message says so


class RefusedError(SchedulerError):
    """The scheduler has refused the job, and lists none that was submitted from the directory."""


class InterruptedSubmissionError(JobgenError):
    """The user has interrupted the command; it may have submitted the job."""

    status = 130


def run(directory: Path, scheduler: Scheduler, handle: int) -> tuple[str, str]:
    """Submit the script of a run directory, whose record is ``handle``; return the id of the job, and a
    remark if the command did not report it well.

    Raises:
        RefusedError: there is no job; the message is the scheduler's own.
        SchedulerError: the job may be queued.
        InterruptedSubmissionError: the same.
    """
    begun = time.monotonic()
    jobs, name, later = scheduler.jobs(), scheduler.command, f"jobgen status {directory.name} asks again"
    late = f"jobgen: {name} has not answered for {_LATE:.0f} s; after Ctrl-C, {later}"
    try:
        status = call_into((*jobs.command, SCRIPT), directory, handle, _LATE, late)
    except KeyboardInterrupt:
        intent.record_end(handle, None)
        raise InterruptedSubmissionError(f"interrupted, but {name} may have made a job: {later}") from None
    intent.record_end(handle, status)
    slow = time.monotonic() - begun > _SLOW
    record = intent.read(directory)
    printed = jobs.submitted(record.answer)
    if status == 0 and len(printed) == 1:
        return printed[0], ""
    words = complaint(Done(status, "", record.answer))
    result = f"{name} refuses the job: {words}" if status else f"{name} printed no id of a job: {words}"
    try:
        found = dict(jobs.find(record.paths, time.time()))
    except SchedulerError as error:
        raise SchedulerError(
            f"{result}; it is unknown whether there is a job, because {error}: {later}"
        ) from None
    if found:
        return next(iter(found.values())), f"{name} printed: {words}; the job is queued all the same"
    unsure = slow or status <= 0 or status in _KILLED or _UNSURE.search(record.answer)
    if not printed and not unsure:
        raise RefusedError(result)
    raise SchedulerError(f"{result}; the scheduler lists no job, but there may be one: {later}")
