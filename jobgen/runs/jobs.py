"""Jobs as their scheduler reports them, in the same words for Slurm and for PBS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

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


def number(job_id: str) -> str:
    """Return the number in an id, which every command accepts: 12 for 12.server, 12[].server and 12_3."""
    found = re.match(r"\d+", job_id)
    return found[0] if found else job_id


def by_number(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """Return the jobs, or the tasks of an array, by the number of their id."""
    table: dict[str, list[Job]] = {}
    for job in jobs:
        table.setdefault(number(job.id), []).append(job)
    return table
