"""Jobs as their scheduler reports them, in the same words for Slurm and for PBS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

LIVE = ("pending", "held", "running", "suspended", "ending")


class Job(NamedTuple):
    """A job, or one task of an array (``task``), as its scheduler reports it.

    ``state`` is one of LIVE, or the end: finished, failed, cancelled, timeout, out of memory, node failed,
    preempted. ``seconds_left`` is the rest of the wall time while the job runs.
    """

    id: str
    state: str
    reason: str = ""
    seconds_left: int | None = None
    task: str | None = None
    status: int | None = None

    @property
    def live(self) -> bool:
        return self.state in LIVE


class JobCommands(Protocol):
    """The commands of a scheduler that submit, query and end jobs: a module of functions.

    Each raises SchedulerError with the scheduler's own message.
    """

    # Has the scripts of an older jobgen save and end; None if a signal ends a job at once.
    save_by_signal: Callable[[Sequence[str]], None] | None

    def submit(self, directory: Path, script: str) -> str:
        """Submit a script from ``directory`` and return the id of the job."""

    def ask(self, ids: Sequence[str]) -> list[Job]:
        """Return what the scheduler reports on these jobs, with every task of an array."""

    def end(self, ids: Sequence[str], strict: bool = True) -> None:
        """End jobs; unless ``strict``, a job that has ended meanwhile is not an error."""


def number(job_id: str) -> str:
    """Return the number in an id, which every command accepts: 12 for 12.server, 12[].server and 12_3."""
    found = re.match(r"\d+", job_id)
    return found[0] if found else job_id


def task(job_id: str) -> str | None:
    """Return the index of a task in its id: 3 of 12_3, of 12[3].server, and of 12-3 on older versions of
    Torque; None for another id."""
    index = re.match(r"\d+[\[_-](\d+)", job_id)
    return index[1] if index else None


def by_number(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """Return the jobs, or the tasks of an array, by the number of their id."""
    table: dict[str, list[Job]] = {}
    for job in jobs:
        table.setdefault(number(job.id), []).append(job)
    return table
