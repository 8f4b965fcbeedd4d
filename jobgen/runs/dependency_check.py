"""Dependencies on jobs that have ended already: Torque refuses or holds a job that has one, and PBS Pro may
delete it without a message."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from jobgen.hosts.calls import SchedulerError
from jobgen.hosts.host import Host
from jobgen.runs import states
from jobgen.runs.lookup import all_runs, by_id
from jobgen.runs.remote.place import name_of
from jobgen.schedulers.jobs import LIVE, Job, number, task
from jobgen.schedulers.table import scheduler_of
from jobgen.spec import Specification

_UNCLEAR = ("ended", "lost", "gone", "unknown", "")  # the end is not known


def without_met_dependencies(spec: Specification, root: Path, host: Host) -> Specification:
    """Return the job without the dependencies that are met, and print them; ``root`` has the runs. The job is
    one of ``host``.

    Raises:
        JobgenError: a dependency cannot be met any more, or its job is unknown.
    """
    scheduler = scheduler_of(spec)
    if not (scheduler.behaviour.loses_dependents and spec.after):
        return spec
    try:
        jobs = scheduler.jobs().ask([job for _, job in spec.after], host)
    except SchedulerError:
        return spec  # the submission reports the error
    waits = []
    for kind, job in spec.after:
        ends = _ends(job, jobs, root, host)
        if not ends:
            why = f"{scheduler.title} does not know job {job}, and the new one would never begin"
            raise spec.refuse("after", why)
        if any(end in LIVE for end in ends) or set(ends) & set(_UNCLEAR):
            waits.append((kind, job))
            continue
        well = all(end == "finished" for end in ends)
        word = "finished" if well else next(end for end in ends if end != "finished")
        if kind in ("afterok", "afternotok") and well != (kind == "afterok"):
            raise spec.refuse("after", f"job {job} is {word}, and the new one would never begin")
        print(f"jobgen: job {job} is {word} already: the new one does not wait for it", file=sys.stderr)
    return spec if len(waits) == len(spec.after) else spec._replace(after=tuple(waits))


def _ends(job: str, jobs: Sequence[Job], root: Path, host: Host) -> list[str]:
    """Return the states of a job or of an array's tasks, by the scheduler or by the run directory; empty if
    unknown."""
    mine = [one for one in jobs if number(one.id) == number(job)]
    mine = [one for one in mine if task(job) in (None, one.task)]
    tasks = [one for one in mine if one.task is not None]
    if mine:
        return [one.state for one in tasks or mine]
    runs = [run for run in by_id(job, all_runs(root)) if name_of(run) == host.name]
    found, _ = states.states(runs)
    return [one.state for one in found if one.state not in _UNCLEAR]
