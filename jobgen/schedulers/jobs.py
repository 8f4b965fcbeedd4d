"""Jobs as their scheduler reports them, in the same words for Slurm and for PBS."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from jobgen.errors import shown
from jobgen.hosts.host import HERE, Host

_CLOCKS_DIFFER = 600  # s, at most: that of the login node and that of the scheduler
_CLOCKS_OF_HOSTS_DIFFER = 86400  # s: that of this machine may be wrong
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

    Each raises SchedulerError with the scheduler's own message. ``host``: where the commands run.
    """

    # Submits the script that is named after it, from the current directory.
    command: Sequence[str]

    def submitted(self, output: str) -> list[str]:
        """Return the ids in the output of ``command``, to which sites may add lines; one id is certain."""

    def find(
        self, directories: Collection[str], since: float, host: Host = HERE
    ) -> Iterator[tuple[str, str]]:
        """Yield the jobs of this user that were submitted from these directories since a time: the directory
        and the id; a later job after an earlier one. All jobs that are queued or run are seen."""

    def ask(self, ids: Sequence[str], host: Host = HERE) -> list[Job]:
        """Return what the scheduler reports on these jobs, with every task of an array."""

    def end(self, ids: Sequence[str], strict: bool = True, host: Host = HERE) -> None:
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


def key(job_id: str) -> str:
    """Return the number of an id, and the cluster of Slurm that it names: 12;c2 for 12_3;c2."""
    cluster = job_id.partition(";")[2]
    return number(job_id) + (f";{cluster}" if cluster else "")


def server(job_id: str) -> str:
    """Return the server of PBS that an id names; an empty text if it names none."""
    return job_id.partition(".")[2].lower()


def same_server(one: str, other: str) -> bool:
    """Return whether two ids can be of one server: its name may be a short one, or is left out."""
    short, long = sorted((server(one), server(other)), key=len)
    return not short or f"{long}.".startswith(f"{short}.")


def whole_lines(output: str, *patterns: str) -> list[str]:
    """Return what the first pattern that is found matches in an output, each text once; a pattern matches a
    whole line, and blanks around lines do not count."""
    lines = [line.strip() for line in output.splitlines()]
    for pattern in patterns:
        matches = (re.fullmatch(pattern, line, re.IGNORECASE | re.ASCII) for line in lines)
        if found := [match[1] for match in matches if match]:
            return list(dict.fromkeys(found))
    return []


def whole_records(command: str, out: str, pattern: re.Pattern[str]) -> tuple[list[tuple[str, ...]], str]:
    """Return the fields of each record in the output of a command, and a sentence about the first line that
    is none. A last line without its end is none."""
    *lines, tail = out.split("\n")
    records, defect = [], ""
    for line in filter(None, map(str.strip, lines)):
        if record := pattern.fullmatch(line):
            records.append(record.groups(""))
        else:
            defect = defect or f"{command} prints {shown(line)}, which is no record of a job"
    if tail.strip() and not defect:
        defect = f"the output of {command} ends in the middle of a line: {shown(tail.strip())}"
    return records, defect


def by_key(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """Return the jobs, or the tasks of an array, by the key of their id."""
    table: dict[str, list[Job]] = {}
    for job in jobs:
        table.setdefault(key(job.id), []).append(job)
    return table


def search_begin(since: float, form: str, host: Host) -> tuple[str, dict[str, str]]:
    """Return a time before ``since`` in the form of a scheduler, and the variables with which its commands on
    a host in any time zone read it right."""
    before = since - (_CLOCKS_DIFFER if host is HERE else _CLOCKS_OF_HOSTS_DIFFER)
    return time.strftime(form, time.gmtime(before)), {"TZ": "UTC0"}
