"""Queries to qstat: of OpenPBS and PBS Pro, of Torque, and of Slurm.

The text of qstat is read: its JSON is invalid for certain values in a job's environment, and some versions
print only the first job (https://github.com/openpbs/openpbs/issues/2541, 1255 and 2672).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobgen.errors import shown
from jobgen.hosts.calls import Done, SchedulerError, complaint
from jobgen.hosts.host import HERE, Host
from jobgen.schedulers.jobs import number, same_server, server, task

_ID = re.compile(r"Job Id:\s*(\S+)")
_ATTRIBUTE = re.compile(r"\s+([A-Za-z_][\w.]*) = (.*)")
_UNKNOWN = re.compile(r"Unknown Job Id(?: Error)?\s+(\S+)")
_FINISHED = re.compile(r"(\S+) Job has finished")
_NO_OPTION = "Unknown option:"  # Slurm's qstat, which is a program in Perl
_NOTHING_FOUND = 153


class Answer(NamedTuple):
    """``records`` are the attributes of the jobs that qstat shows, and ``id``; ``finished`` are jobs of which
    it says only that they have ended; ``unclear`` are those that it neither shows nor calls unknown, and
    arrays of which it may not show all tasks, with the reason."""

    records: list[dict[str, str]]
    finished: list[str]
    unclear: dict[str, str]


class _Output(NamedTuple):
    """The content of one output of qstat; ``unknown`` are the ids that the scheduler does not know;
    ``defect`` is a sentence about the first part that cannot be read."""

    records: list[dict[str, str]]
    unknown: list[str]
    finished: list[str]
    other_errors: str
    defect: str

    @property
    def ids(self) -> list[str]:
        return [*(record["id"] for record in self.records), *self.unknown, *self.finished]


def query(ids: Sequence[str], *options: str, host: Host = HERE) -> Answer:
    """Ask for jobs by their ids. Jobs that have ended are included if PBS keeps them. The records of other
    jobs are left out, also those of another server.

    Raises:
        SchedulerError: there is no answer about any of the jobs.
    """
    # -x is the history on PBS Pro and XML on Torque; Slurm's qstat does not have it, nor -t. Without -E,
    # qstat of PBS Pro needs two reserved ports for each job, for a minute: the host has 1023.
    express = ("-x", "-E", *options, "-f")
    forms = list(dict.fromkeys((express, (*options, "-f"), ("-f",))))
    answer = Answer([], [], {})
    unclear = dict.fromkeys(ids, "")
    slurm = False
    while unclear and forms:
        words = dict.fromkeys(map(number if slurm else argument, unclear))  # Slurm's has only numbers
        done = host.call(("qstat", *forms[0], *words))
        output = _read(done)
        jobs = _by_id(output.ids, unclear)
        records = [record for record in output.records if jobs[record["id"]]]
        present = {job for record in records for job in jobs[record["id"]]}
        finished = {job for word in output.finished for job in jobs[word]}
        unknown = {job for word in output.unknown for job in jobs[word]}
        if forms[0] == express and unknown and not (done.out.strip() or output.other_errors):
            # PBS Pro names only the last one of several jobs, all of which it does not know.
            unknown = {job for job in unclear if same_server(job, output.unknown[-1])}
        if slurm and done.status in (0, _NOTHING_FOUND) and not done.err.strip():
            # Slurm's prints nothing for jobs that it does not know.
            unknown |= set(unclear) if all(jobs.values()) and not output.defect else set()
        answer.records.extend(records)
        answer.finished.extend(finished)
        answer.unclear.update((job, output.defect) for job in present if output.defect and "[]" in job)
        # PBS Pro leaves out jobs that it does not know beside others: they are asked for by themselves.
        if forms[0] != express or not records or not present | finished | unknown:
            del forms[0]
        slurm = forms[:1] == [("-f",)] and _NO_OPTION in done.err
        unclear = {
            job: _reason(job, done, output) for job in unclear if job not in present | finished | unknown
        }
    reasons = set(unclear.values())
    if len(unclear) == len(set(ids)) and len(reasons) == 1:
        raise SchedulerError(reasons.pop())
    answer.unclear.update(unclear)
    return answer


def argument(job_id: str) -> str:
    """Return an id without its server, as qstat of the default server takes it: 12, or 12[] for an array."""
    return job_id.partition(".")[0]


def _by_id(ids: Iterable[str], jobs: Iterable[str]) -> dict[str, list[str]]:
    """Return, for each id in an output, those of the jobs that it names: a job, or the array of a task."""
    table: dict[str, list[str]] = {}
    for job in jobs:
        table.setdefault(number(job), []).append(job)
    return {word: [job for job in table.get(number(word), ()) if _names(word, job)] for word in ids}


def _names(word: str, job: str) -> bool:
    """Return whether an id in an output is that of a job, or of a task of it, if their numbers are equal."""
    whole = task(job) is None or argument(word) == argument(job)
    return whole and same_server(word, job)


def _read(done: Done) -> _Output:
    records, defect = _records(done.out)
    lines = (line for line in done.err.splitlines() if line.strip())
    others = [line for line in lines if not (_UNKNOWN.search(line) or _FINISHED.search(line))]
    return _Output(
        records, _UNKNOWN.findall(done.err), _FINISHED.findall(done.err), "\n".join(others), defect
    )


def _records(text: str) -> tuple[list[dict[str, str]], str]:
    """Return the attributes of each job, and a sentence about the first part that cannot be read. An empty
    line ends a job; without it, the last job is cut off. A long value continues on lines that begin with a
    tab."""
    found: list[dict[str, str]] = []
    key, ended, defect = "", True, ""
    for line in text.splitlines():
        if head := _ID.match(line):
            found.append({"id": head[1]})
            key, ended = "", False
        elif not line.strip():
            ended = True
        elif found and (attribute := _ATTRIBUTE.match(line)):
            key, ended = attribute[1], False
            found[-1][key] = attribute[2]
        elif key and line.startswith("\t"):
            found[-1][key] += line[1:]
            ended = False
        elif ended:
            defect = defect or f"qstat prints {shown(line.strip())}, which is no record of a job"
    return (found, defect) if ended else (found[:-1], "the answer of qstat ends in the middle of a job")


def _reason(job: str, done: Done, output: _Output) -> str:
    """Return why an output leaves open what became of a job."""
    if output.other_errors or done.status not in (0, _NOTHING_FOUND):
        return f"qstat does not answer: {complaint(Done(done.status, '', output.other_errors))}"
    if others := [word for word in output.ids if not same_server(word, job)]:
        return f"{job} is a job of the server {server(job)}, and qstat answers for {server(others[0])}"
    return output.defect or f"qstat says nothing about the job, and ends with status {done.status}"
