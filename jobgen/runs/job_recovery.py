"""Recovery of the job of an interrupted submission: the scheduler is queried for a job that was submitted
from the run directory."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import JobgenError
from jobgen.hosts.calls import Done, SchedulerError, complaint
from jobgen.runs import intent
from jobgen.runs.intent import Intent
from jobgen.runs.job_query import SCHEDULERS, HostScheduler
from jobgen.runs.remote.place import Place
from jobgen.runs.remote.recovery import recover

_HOW = "the scheduler lists no job of its directory: submit it again"
_NEVER = "the connection broke before the command that submits it ran: submit it again"
_BUSY = "the scheduler was busy, and made no job: submit it again"
_FOREIGN = "no id of a job was recorded, and only the owner can ask for it"
GRACE = 60  # s; a scheduler may still work on a request whose sender is gone
_FAR_GRACE = 3600  # s; from another host, or without locks, nobody sees whether the command still runs
_KEPT = 3600  # s; then it is recorded that there is no job


class Recovery(NamedTuple):
    """The id of the job of an interrupted submission, or else the state of the run and the reason."""

    id: str | None
    state: str = ""
    reason: str = ""


def resolve(runs: Sequence[tuple[Path, str]], at: Mapping[Path, Place]) -> dict[Path, Recovery]:
    """Query each scheduler once for the jobs of these runs, pairs of directory and scheduler; record the
    ids. ``at`` has the places of runs on hosts."""
    queries: dict[HostScheduler, list[Intent]] = {}
    found: dict[Path, Recovery] = {}
    held = {run for run, _ in runs if intent.under_way(run)}  # read first: the command may end
    for directory, scheduler in runs:
        if os.path.exists(directory / intent.UNUSED):
            found[directory] = Recovery(None, "never submitted", _HOW)
        elif not (one := intent.read(directory)).mine:
            found[directory] = Recovery(None, "unknown", _FOREIGN)
        elif (place := at.get(directory)) and directory not in held:
            there = _at_host(one, place)
            if isinstance(there, Recovery):
                found[directory] = there
            else:
                queries.setdefault(HostScheduler(scheduler, place.host_name), []).append(there)
        else:
            queries.setdefault(HostScheduler(scheduler, place.host_name if place else ""), []).append(one)
    for queue, intents in queries.items():
        found.update(_ask(queue, intents, held))
    return found


def _at_host(one: Intent, place: Place) -> Intent | Recovery:
    """Return the record of a submission at a host with the answer of its command there, or the state of the
    run if no command ran or the host does not answer. No command can run from now on."""
    try:
        remains = recover(place)
    except (SchedulerError, JobgenError) as error:
        return Recovery(None, "unknown", f"no id of a job was recorded, and {error}")
    if remains.answer is None:
        intent.give_up(one.directory)
        return Recovery(None, "never submitted", _NEVER)
    return intent.with_answer(one, remains.answer, place.host_name)


def _ask(queue: HostScheduler, intents: Sequence[Intent], held: Set[Path]) -> dict[Path, Recovery]:
    jobs = SCHEDULERS[queue.scheduler].jobs()
    paths = {path for one in intents for path in one.paths}
    ids: dict[str, str] = {}
    silent = ""
    try:
        ids.update(jobs.find(paths, min(one.began for one in intents), queue.machine))
    except SchedulerError as error:
        silent = str(error)
    found = {}
    for one in intents:
        printed = [] if one.has_failed else jobs.submitted(one.answer)
        job_id = next((ids[path] for path in one.paths if path in ids), None)
        job_id = job_id or (printed[0] if len(printed) == 1 else None)
        if job_id:
            intent.record(one.directory, job_id)
            found[one.directory] = Recovery(job_id)
        else:
            command = SCHEDULERS[queue.scheduler].command
            found[one.directory] = _without(one, one.directory in held, silent, command)
    return found


def _without(one: Intent, held: bool, silent: str, command: str) -> Recovery:
    """Return the state of a run whose job the scheduler does not list."""
    age = time.time() - one.last_sign
    answer = f"; {command} said: {complaint(Done(0, '', one.answer))}" if one.answer.strip() else ""
    if held and one.in_pause:
        return Recovery(None, "submitting", f"jobgen on {one.host} waits to run {command} again{answer}")
    if held:
        return Recovery(None, "submitting", f"{command} runs on {one.host}, and has not ended yet")
    near = one.lockable and one.host == os.uname().nodename
    if one.in_pause and near:
        intent.give_up(one.directory)
        return Recovery(None, "never submitted", _BUSY + answer)
    if silent:
        return Recovery(None, "unknown", f"no id of a job was recorded, and {silent}")
    rest = (GRACE if near else _FAR_GRACE) - age
    if rest > 0:
        where = "" if near else f", but {command} may still run on {one.host}"
        why = f"no job is listed{where}; this is certain in {rest:.0f} s{answer}"
        return Recovery(None, "submitting" if near else "unknown", why)
    if age > _KEPT:
        intent.give_up(one.directory)
    return Recovery(None, "never submitted", _HOW + answer)
