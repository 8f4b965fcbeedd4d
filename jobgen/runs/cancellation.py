"""Cancels jobs: a running job is asked to save and end; the second time, or at once, the scheduler ends it.

The request is a line in attempt-N/control, which the script and its helpers on all nodes read. This works
under every scheduler. A signal does not: PBS sends it to every process of the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import JobgenError
from jobgen.hosts.calls import SchedulerError
from jobgen.hosts.ssh import UnreachableError
from jobgen.runs import packs, run_directory
from jobgen.runs.job_query import SCHEDULERS, HostScheduler, QueryResult
from jobgen.runs.remote import place as places
from jobgen.runs.states import State, states
from jobgen.schedulers.jobs import Job

MARK = "cancelled"  # in the run directory: the script does not submit itself again
CONTROL = "control"
_QUESTION, _STOP = "save cancel\n", "stop cancel\n"
_REACHABLE = ("running", "suspended", "unknown")  # in these states an attempt reads requests


class _Part(NamedTuple):
    """A run, or a task of an array: its job in the scheduler, and the attempt that can save on request."""

    directory: Path
    job: str
    attempt: Path | None


def cancel(run: Path, at_once: bool) -> str:
    """Cancel the job of a run; return a message on the action.

    Raises:
        JobgenError: it has no job to end, or cannot be asked.
        SchedulerError: the message is the scheduler's own.
    """
    state, answer = cancellable(run)
    parts = list(_parts(run, state, answer))
    begun = [part for part in parts if part.attempt]
    at_once = at_once or any((part.directory / MARK).exists() for part in begun)
    if state.scheduler not in SCHEDULERS or state.id is None:
        if at_once or not begun:
            raise JobgenError(f"{state.name} is a local run: end its script with Ctrl-C or kill")
    elif at_once and begun and run.name.startswith("task-") and packs.pack_of(run):
        _mark(run, parts)  # its job has other points
        for part in begun:
            places.append((part.attempt or run) / CONTROL, _STOP)
        return f"{state.name}: it is stopped; the other points of job {state.id} go on"
    elif at_once or not begun:
        remark = _mark(run, parts)
        SCHEDULERS[state.scheduler].jobs().end([state.id], host=places.host_of(run))
        return f"{state.name}: job {state.id} is cancelled{remark}"
    return _ask(run, state, begun, [part for part in parts if not part.attempt])


def cancellable(run: Path) -> tuple[State, QueryResult]:
    """Return the state of a run that has not ended, and the answer of its scheduler.

    Raises:
        JobgenError: it has ended, or its host was removed.
        SchedulerError: it has no job yet, or none that is known.
    """
    places.host_of(run)  # an error if it was removed
    [state], answer = states([run])
    if not state.reachable:
        raise UnreachableError(state.reason)
    if not state.live and state.state != "unknown":
        raise JobgenError(f"{state.name} is {state.state}: there is nothing to cancel")
    if state.scheduler in SCHEDULERS and state.id is None and not state.attempts:
        raise SchedulerError(f"{state.name} cannot be cancelled now: {state.reason}")
    return state, answer


def _parts(run: Path, state: State, answer: QueryResult) -> Iterator[_Part]:
    """Yield the parts to end: the run, or each task of its array that the scheduler still has."""
    folder = packs.FOLDER if run_directory.tasks(run) and packs.pack_of(run) else "task"
    paths = run_directory.inside(run, f"{folder}-*")
    tasks = {path.name.removeprefix(f"{folder}-"): path for path in paths}
    if not tasks:
        attempt = _attempt(run) if state.state in _REACHABLE or state.scheduler is None else None
        yield _Part(run, state.id or "", attempt)
        return
    for job in _jobs(state, answer):
        directory = tasks.get(job.task or "", run / f"{folder}-{job.task}")
        yield _Part(directory, job.id, _attempt(directory) if job.state in _REACHABLE else None)


def _jobs(state: State, answer: QueryResult) -> list[Job]:
    """Return the tasks of an array that have not ended; an error if the scheduler cannot be asked."""
    queue = HostScheduler(state.scheduler or "", state.host or "")
    known = answer.of(queue, state.id or "")
    if known is None:
        raise SchedulerError(answer.reason(queue, state.id or ""))
    if "unknown" in state.tasks and any(job.state == "unknown" and job.task is None for job in known):
        raise SchedulerError(answer.reason(queue, state.id or ""))
    return [job for job in known if job.live and job.task is not None]


def _attempt(directory: Path) -> Path | None:
    """Return the attempt that reads requests: it has begun and not ended. None if there is none."""
    last, events = run_directory.last_attempt(directory)
    ended = any(event.what == "ended" for event in events)
    attempt = directory / f"attempt-{last}"
    return attempt if last and not ended and (attempt / CONTROL).exists() else None


def _ask(run: Path, state: State, begun: Sequence[_Part], others: Sequence[_Part]) -> str:
    """Ask the parts that have begun to save and end, and remove the others from the queue."""
    jobs = SCHEDULERS[state.scheduler].jobs() if state.scheduler in SCHEDULERS else None
    remark = _mark(run, (*begun, *others))
    if jobs and others:
        jobs.end([part.job for part in others], strict=False, host=places.host_of(run))
    for part in begun:
        if part.attempt:
            try:
                places.append(part.attempt / CONTROL, _QUESTION)
            except UnreachableError:
                raise
            except JobgenError as error:
                raise JobgenError(f"{error}; jobgen cancel --now {state.name} ends the job at once") from None
    message = f"{state.name}: {f'job {state.id}' if jobs else 'it'} is asked to save and end"
    message += f", and {len(others)} of its tasks are taken out of the queue" if others else ""
    return message + ("; cancel it again to end it at once" if jobs else "") + remark


def _mark(run: Path, parts: Sequence[_Part]) -> str:
    """Keep the script from submitting itself again; return a remark if the mark cannot be written, as on a
    full disk: the job is cancelled all the same."""
    remark = ""
    for directory in {run, *(part.directory for part in parts)}:
        if directory.is_dir():
            try:
                places.touch(directory / MARK)
            except UnreachableError:
                raise
            except JobgenError as error:
                remark = f"; {error}, so that its script may submit itself again"
    return remark
