"""Queries to qstat: of OpenPBS and PBS Pro, of Torque, and of Slurm.

The text of qstat is read: its JSON is invalid for certain values in a job's environment, and some versions
print only the first job (https://github.com/openpbs/openpbs/issues/2541, 1255 and 2672).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from jobgen.errors import shown
from jobgen.schedulers.calls import Done, SchedulerError, call, complaint
from jobgen.schedulers.jobs import number, task

_ID = re.compile(r"Job Id:\s*(\S+)")
_ATTRIBUTE = re.compile(r"\s+([A-Za-z_][\w.]*) = (.*)")
_UNKNOWN = re.compile(r"Unknown Job Id(?: Error)?\s+(\S+)")
_FINISHED = re.compile(r"(\S+) Job has finished")
_NO_OPTION = "Unknown option:"  # Slurm's qstat, which is a program in Perl
_NOTHING_FOUND = 153


class Answer(NamedTuple):
    """``records`` are the attributes of the jobs that qstat shows, and ``id``; ``finished`` are jobs of which
    it says only that they have ended; ``unclear`` are those that it neither shows nor calls unknown, with the
    reason."""

    records: list[dict[str, str]]
    finished: list[str]
    unclear: dict[str, str]


class _Output(NamedTuple):
    """The content of one output of qstat; ``unknown`` are the ids that the scheduler does not know."""

    records: list[dict[str, str]]
    unknown: set[str]
    finished: set[str]
    other_errors: str
    cut_off: bool

    def has(self, word: str) -> bool:
        """Return whether it has the job, or all tasks of an array; a task is none of the others."""
        ids = {argument(record["id"]) for record in self.records}
        return word in ids or (task(word) is None and number(word) in map(number, ids))


def query(ids: Sequence[str], *options: str) -> Answer:
    """Ask for jobs by the ids that ``argument`` returns. Jobs that have ended are included if PBS keeps them.

    Raises:
        SchedulerError: there is no answer about any of the jobs.
    """
    # -x is the history on PBS Pro and XML on Torque; Slurm's qstat does not have it, nor -t. Without -E,
    # qstat of PBS Pro needs two reserved ports for each job, for a minute: the host has 1023.
    express = ("-x", "-E", *options, "-f")
    forms = list(dict.fromkeys((express, (*options, "-f"), ("-f",))))
    found = Answer([], [], {})
    left = list(ids)
    slurm = False
    while left and forms:
        words = [number(word) for word in left] if slurm else left  # Slurm's has only numbers
        done = call(("qstat", *forms[0], *words))
        said = _read(done)
        found.records.extend(said.records)
        found.finished.extend(word for word in left if word in said.finished)
        rest = [word for word in left if not (said.has(word) or word in said.unknown | said.finished)]
        if forms[0] == express and said.unknown and not (done.out.strip() or said.other_errors):
            rest = []  # PBS Pro names only the last one of several jobs, all of which it does not know
        if slurm and done.status in (0, _NOTHING_FOUND) and not done.err.strip():
            rest = []  # Slurm's prints nothing for jobs that it does not know
        # PBS Pro leaves out jobs that it does not know beside others: they are asked for by themselves.
        if forms[0] != express or not said.records or len(rest) == len(left):
            del forms[0]
        slurm = forms[:1] == [("-f",)] and _NO_OPTION in done.err
        left, why = rest, _why(done, said)
    if left and len(left) == len(ids):
        raise SchedulerError(why)
    return found._replace(unclear=dict.fromkeys(left, why))


def argument(job_id: str) -> str:
    """Return an id without its server, as qstat of the default server takes it: 12, or 12[] for an array."""
    return job_id.partition(".")[0]


def _read(done: Done) -> _Output:
    records, cut_off = _records(done.out)
    unknown = {argument(word) for word in _UNKNOWN.findall(done.err)}
    finished = {argument(word) for word in _FINISHED.findall(done.err)}
    lines = (line for line in done.err.splitlines() if line.strip())
    others = [line for line in lines if not (_UNKNOWN.search(line) or _FINISHED.search(line))]
    return _Output(records, unknown, finished, "\n".join(others), cut_off)


def _records(text: str) -> tuple[list[dict[str, str]], bool]:
    """Return the attributes of each job, and whether the last one is cut off: an empty line ends a job. A
    long value continues on lines that begin with a tab."""
    found: list[dict[str, str]] = []
    key, ended = "", True
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
    return (found, False) if ended else (found[:-1], True)


def _why(done: Done, said: _Output) -> str:
    """Return why an output leaves open what became of a job."""
    if said.other_errors or done.status not in (0, _NOTHING_FOUND):
        return f"qstat does not answer: {complaint(Done(done.status, '', said.other_errors))}"
    if said.cut_off:
        return "the answer of qstat ends in the middle of a job"
    if done.out.strip() and not said.records:
        return f"the answer of qstat cannot be read: it begins with {shown(done.out.strip().splitlines()[0])}"
    return f"qstat says nothing about the job, and ends with status {done.status}"
