"""Queries to the schedulers for the jobs of many runs at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobgen.hosts.calls import SchedulerError
from jobgen.hosts.host import HERE, Host
from jobgen.runs.remote.place import host_named
from jobgen.schedulers.jobs import Job, by_key, key, same_server
from jobgen.schedulers.table import queued

SCHEDULERS = queued()


class HostScheduler(NamedTuple):
    """The scheduler of this machine, or of a host."""

    scheduler: str
    host: str = ""

    @property
    def machine(self) -> Host:
        """The machine on which its commands run."""
        return host_named(self.host) if self.host else HERE


class QueryResult(NamedTuple):
    """The jobs of each scheduler by the key of their id, and the errors of schedulers that failed."""

    jobs: dict[HostScheduler, dict[str, list[Job]]]
    silent: dict[HostScheduler, str]

    def of(self, queue: HostScheduler, job_id: str, task: str | None = None) -> list[Job] | None:
        """Return the scheduler's entries for a job, or for a task and its whole array. The list is empty if
        the scheduler has none; None if nothing is known of the job. An entry of an array beside entries of
        its tasks is unknown if the scheduler may have left out other tasks."""
        found = self._entries(queue, job_id, task)
        return None if found and all(job.state == "unknown" for job in found) else found

    def reason(self, queue: HostScheduler, job_id: str, task: str | None = None) -> str:
        """Return why nothing is known of a job, or of a part of it."""
        found = self._entries(queue, job_id, task) or ()
        silent = self.silent.get(queue, "the scheduler does not answer")
        return next((job.reason for job in found if job.state == "unknown"), silent)

    def _entries(self, queue: HostScheduler, job_id: str, task: str | None) -> list[Job] | None:
        known = self.jobs.get(queue)
        if known is None:
            return None
        found = [job for job in known.get(key(job_id), ()) if same_server(job.id, job_id)]
        return [job for job in found if task is None or job.task in (None, task)]


def ask(jobs: Iterable[tuple[HostScheduler, str]]) -> QueryResult:
    """Ask each scheduler once for all the pairs of a scheduler and an id."""
    ids: dict[HostScheduler, list[str]] = {}
    for queue, job_id in jobs:
        ids.setdefault(queue, []).append(job_id)
    answer = QueryResult({}, {})
    for queue, some in ids.items():
        try:
            answer.jobs[queue] = by_key(SCHEDULERS[queue.scheduler].jobs().ask(some, queue.machine))
        except SchedulerError as error:
            answer.silent[queue] = str(error)
    return answer
