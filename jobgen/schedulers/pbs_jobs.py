"""The commands of OpenPBS, PBS Pro and Torque: https://2021.help.altair.com/2021.1.2/PBS%20Professional/PBSReferenceGuide2021.1.2.pdf

The text of qstat is read: its JSON is invalid for certain values in a job's environment, and some versions
print only the first job (https://github.com/openpbs/openpbs/issues/2541, 1255 and 2672).
"""

from __future__ import annotations

import os
import pwd
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from jobgen.schedulers.calls import Done, SchedulerError, batched, call, complaint
from jobgen.schedulers.jobs import CLOCKS_DIFFER, Job, number, task, whole_lines
from jobgen.values import seconds

# A signal reaches every process of a job, the login shell too, and ends the job.
save_by_signal: Callable[[Sequence[str]], None] | None = None
_OVER = r"has finished|nonexistent|unknown job id|state of job"  # messages of qdel for a job that has ended
_STATES = {
    "Q": "pending",
    "T": "pending",
    "W": "pending",
    "H": "held",
    "M": "pending",
    "R": "running",
    "B": "running",
    "S": "suspended",
    "U": "suspended",
    "E": "ending",
}
_ENDED = "FXC"
_ID = re.compile(r"Job Id:\s*(\S+)")
_ATTRIBUTE = re.compile(r"\s+([A-Za-z_][\w.]*) = (.*)")
# The status of a job that a signal ended is 256 plus its number (271 after qdel, 265 by force, 266 after
# USR1), or 128 plus its number if the script ended before its shell. The statuses of limits are negative:
# https://github.com/openpbs/openpbs/blob/master/src/include/job.h
_SENT = (
    "SIGHUP",
    "SIGINT",
    "SIGTERM",
    "SIGUSR1",
    "SIGUSR2",
)  # sent to end a job; other signals are errors of its program
_CANCELLED = {256 + signal.SIGKILL, *(signal.Signals[name] + base for name in _SENT for base in (128, 256))}
_DELETED = "91"  # the substate on PBS Pro after qdel
_UNMET = "PBS has deleted it, as what it waited for could not come about any more"
_LIMITS = {-29: "timeout", -27: "out of memory", -26: "out of memory"}


command: Sequence[str] = ("qsub",)
_JOB = r"(?:job *id *[:=]? *)?(\d+(?:\[\])?{})"
_DIRECTORY = re.compile(r"(?:^|,)PBS_O_WORKDIR=(.*?)(?=,[A-Za-z_]\w*=|$)", re.DOTALL)


def submitted(said: str) -> list[str]:
    """Return the ids in the output of qsub: 4711.server, else 4711; 4711[].server for an array."""
    server = r"\.(?=[\w.-]*[A-Za-z])[\w.-]+"  # no server, but a version, is 22.05.11
    return whole_lines(said, _JOB.format(server), _JOB.format(""))


def find(directories: Collection[str], since: float) -> Iterator[tuple[str, str]]:
    """Yield the jobs that were submitted from these directories: PBS keeps PBS_O_WORKDIR of each job.

    Raises:
        SchedulerError: PBS does not answer.
    """
    known = {_plain(path): path for path in directories}
    for some in batched(_selected(since)):
        for record in _qstat(some):
            place = _DIRECTORY.search(record.get("Variable_List", ""))
            if place and (path := known.get(_plain(place[1]))):
                yield path, record["id"]


def _plain(path: str) -> str:
    """Return a path without what PBS Pro adds (backslashes) and Torque removes (also blanks)."""
    return re.sub(r"[\\\s]", "", path)


def _selected(since: float) -> list[str]:
    """Return the jobs of this user, each array as one; the ended ones since a time if PBS keeps a history."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise SchedulerError(f"qselect needs the name of the user {os.getuid()}, who has none here") from None
    begin = time.strftime("%Y%m%d%H%M.%S", time.localtime(since - CLOCKS_DIFFER))
    for options in (("-x", f"-tc.ge.{begin}"), ()):  # the second one is for Torque, and without a history
        done = call(("qselect", *options, "-u", user))
        if done.status == 0:
            words = [re.sub(r"\[\d+\]", "[]", _argument(line.strip())) for line in done.out.splitlines()]
            return list(dict.fromkeys(word for word in words if re.fullmatch(r"\d+(\[\])?", word)))
    raise SchedulerError(f"qselect does not answer: {complaint(done)}")


def ask(ids: Sequence[str]) -> list[Job]:
    """Return what PBS reports on these jobs, with every task of an array. Jobs that have ended are included
    if PBS keeps a history.

    Raises:
        SchedulerError: PBS does not answer.
    """
    words = list(dict.fromkeys(map(_argument, ids)))
    jobs = _ask(words)
    known = {number(job.id) for job in jobs}
    # Slurm's qstat accepts an array only by its number.
    bare = [number(word) for word in words if word.endswith("[]") and number(word) not in known]
    return jobs + _ask(bare) if bare else jobs


def _ask(words: Sequence[str]) -> list[Job]:
    return [_job(one) for one in _qstat(words, "-t")]


def _qstat(words: Sequence[str], *options: str) -> Iterator[dict[str, str]]:
    # -x is the history on PBS Pro and XML on Torque; Slurm's qstat does not have it, nor -t. Without -E,
    # qstat of PBS Pro needs two reserved ports for each job, for a minute: the host has 1023.
    for some in dict.fromkeys((("-x", "-E", *options, "-f"), (*options, "-f"), ("-f",))):
        done = call(("qstat", *some, *words))
        if _ID.search(done.out) or _says_unknown(done):
            return _records(done.out)
    if done.status not in (0, 153):
        raise SchedulerError(f"qstat does not answer: {complaint(done)}")
    return iter(())


def _argument(job_id: str) -> str:
    """Return an id without its server, as qstat of the default server takes it: 12, or 12[] for an array."""
    return job_id.partition(".")[0]


def _says_unknown(done: Done) -> bool:
    return "Unknown Job Id" in done.err or "has finished" in done.err


def _records(text: str) -> Iterator[dict[str, str]]:
    """Yield the attributes of each job; a long value continues on lines that begin with a tab."""
    record: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if head := _ID.match(line):
            if record:
                yield record
            record, key = {"id": head[1]}, ""
        elif attribute := _ATTRIBUTE.match(line):
            key = attribute[1]
            record[key] = attribute[2]
        elif key and line.startswith("\t"):
            record[key] += line[1:]
    if record:
        yield record


def _job(record: dict[str, str]) -> Job:
    letter = record.get("job_state", "?")[:1]
    word = record.get("Exit_status", record.get("exit_status", ""))
    status = int(word) if re.fullmatch(r"-?\d+", word) and not _never_ran(record) else None
    state = _how_it_ended(record, status) if letter in _ENDED else _STATES.get(letter, letter)
    reason = record.get("comment", "") if state in ("pending", "held") else ""
    return Job(
        record["id"],
        state,
        _UNMET if state == "cancelled" and status is None and record.get("substate") == "92" else reason,
        _left(record) if state == "running" else None,
        task(record["id"]),
        status if letter in _ENDED else None,
    )


def _how_it_ended(record: dict[str, str], status: int | None) -> str:
    if status is None:
        return "cancelled" if _never_ran(record) else "ended"
    if status == 0:
        return "finished"
    if status in _CANCELLED or (status > 128 and record.get("substate") == _DELETED):
        return "cancelled"
    return _LIMITS.get(status, "failed")


def _never_ran(record: dict[str, str]) -> bool:
    """Return whether an ended job was deleted before it began; such a task has status 1 on PBS Pro."""
    if "substate" in record:  # PBS Pro
        return "run_count" not in record
    return "fault_tolerant" in record and "start_time" not in record  # Torque


def _left(record: dict[str, str]) -> int | None:
    limit = seconds(record.get("Resource_List.walltime", ""))
    used = seconds(record.get("resources_used.walltime", "00:00:00"))
    return None if limit is None or used is None else max(0, limit - used)


def end(ids: Sequence[str], strict: bool = True) -> None:
    """End jobs; unless ``strict``, a job that has ended meanwhile is not an error.

    Raises:
        SchedulerError: the message is PBS's own.
    """
    for some in batched(list(map(_argument, ids))):
        done = call(("qdel", *some))
        refused = [line for line in done.err.splitlines() if strict or not re.search(_OVER, line, re.I)]
        if done.status != 0 and (refused or not done.err):
            words = complaint(done._replace(err="\n".join(refused)))
            raise SchedulerError(f"qdel refuses {', '.join(some)}: {words}")
