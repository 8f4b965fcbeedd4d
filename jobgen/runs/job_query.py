"""Queries to the schedulers for the jobs of many runs at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobgen.hosts.calls import SchedulerError
from jobgen.schedulers.jobs import Job, by_key, key, same_server
from jobgen.schedulers.table import queued

SCHEDULERS = queued()


class QueryResult(NamedTuple):
    """The jobs of each scheduler by the key of their id, and the errors of schedulers that failed."""

    jobs: dict[str, dict[str, list[Job]]]
    silent: dict[str, str]

    def of(self, scheduler: str, job_id: str, task: str | None = None) -> list[Job] | None:
        """Return the scheduler's entries for a job, or for a task and its whole array. The list is empty if
        the scheduler has none; None if nothing is known of the job. An entry of an array beside entries of
        its tasks is unknown if the scheduler may have left out other tasks."""
        found = self._entries(scheduler, job_id, task)
        return None if found and all(job.state == "unknown" for job in found) else found

    def reason(self, scheduler: str, job_id: str, task: str | None = None) -> str:
        """Return why nothing is known of a job, or of a part of it."""
        found = self._entries(scheduler, job_id, task) or ()
        silent = self.silent.get(scheduler, "the scheduler does not answer")
        return next((job.reason for job in found if job.state == "unknown"), silent)

    def _entries(self, scheduler: str, job_id: str, task: str | None) -> list[Job] | None:
        known = self.jobs.get(scheduler)
        if known is None:
            return None
        found = [job for job in known.get(key(job_id), ()) if same_server(job.id, job_id)]
        return [job for job in found if task is None or job.task in (None, task)]


def ask(jobs: Iterable[tuple[str, str]]) -> QueryResult:
    """Ask each scheduler once for all the pairs of a scheduler and an id."""
    ids: dict[str, list[str]] = {}
    for scheduler, job_id in jobs:
        ids.setdefault(scheduler, []).append(job_id)
    answer = QueryResult({}, {})
    for scheduler, some in ids.items():
        try:
            answer.jobs[scheduler] = by_key(SCHEDULERS[scheduler].jobs().ask(some))
        except SchedulerError as error:
            answer.silent[scheduler] = str(error)
    return answer
