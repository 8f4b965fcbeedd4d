"""The commands of OpenPBS, PBS Pro and Torque: https://2021.help.altair.com/2021.1.2/PBS%20Professional/PBSReferenceGuide2021.1.2.pdf"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Iterator, Sequence

from jobgen.errors import shown
from jobgen.hosts.calls import SchedulerError, batched, complaint
from jobgen.hosts.host import HERE, Host
from jobgen.schedulers import qstat
from jobgen.schedulers.jobs import Job, search_begin, task, whole_lines, whole_records
from jobgen.schedulers.qstat import argument
from jobgen.values.parsers import seconds

_OVER = r"has finished|nonexistent|unknown job id|state of job"  # messages of qdel for a job that has ended
_STATES = {
    **dict.fromkeys("QTWM", "pending"),
    "H": "held",
    **dict.fromkeys("RB", "running"),
    **dict.fromkeys("SU", "suspended"),
    "E": "ending",
}
_ENDED = "FXC"
# The status of a job that a signal ended is 256 plus its number (271 after qdel, 265 by force, 266 after
# USR1), or 128 plus its number if the script ended before its shell.
# The signals that end a job; others are errors of its program.
_SENT = ("SIGHUP", "SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2")
_CANCELLED = {256 + signal.SIGKILL, *(signal.Signals[name] + base for name in _SENT for base in (128, 256))}
_BY_THE_KERNEL = {base + number for base in (128, 256) for number in (signal.SIGKILL, signal.SIGXCPU)}
_DELETED = "91"  # the substate on PBS Pro after qdel
_UNMET = "PBS deleted it, because its dependency could no longer be met"
_CPU_TIME = "it exceeded its CPU time (cput)"
# The states and reasons of jobs that exceeded a limit, by the name of the attribute and its value:
# https://github.com/openpbs/openpbs/blob/master/src/include/job.h
# https://github.com/adaptivecomputing/torque/blob/6.1.3.h5/src/include/pbs_job.h
_LIMITS = {
    "Exit_status": {  # PBS Pro
        -24: ("failed", "it used more processors than it requested (a burst)"),
        -25: ("failed", "it used more processors than it requested"),
        -26: ("out of memory", "it exceeded its virtual memory (vmem)"),
        -27: ("out of memory", "it exceeded its memory (mem)"),
        -28: ("timeout", _CPU_TIME),
        -29: ("timeout", "it exceeded its wall time"),
    },
    "exit_status": {  # Torque
        -10: ("out of memory", "it exceeded a limit of memory"),
        -11: ("timeout", "it exceeded its wall time"),
        -12: ("timeout", _CPU_TIME),
    },
}


command: Sequence[str] = ("qsub",)
_JOB = r"(?:job *id *[:=]? *)?(\d+(?:\[\])?{})"
_SELECTED = re.compile(r"(\d+(?:-\d+)?)(\[\d*\])?(\.\S+)?")
_DIRECTORY = re.compile(r"(?:^|,)PBS_O_WORKDIR=(.*?)(?=,[A-Za-z_]\w*=|$)", re.DOTALL)


def submitted(output: str) -> list[str]:
    """Return the ids in the output of qsub: 4711.server, else 4711; 4711[].server for an array."""
    server = r"\.(?=[\w.-]*[A-Za-z])[\w.-]+"  # no server, but a version, is 22.05.11
    return whole_lines(output, _JOB.format(server), _JOB.format(""))


def find(directories: Collection[str], since: float, host: Host = HERE) -> Iterator[tuple[str, str]]:
    """Yield the jobs that were submitted from these directories: PBS keeps PBS_O_WORKDIR of each job.

    Raises:
        SchedulerError: PBS does not answer, or a part of its answer cannot be read and a directory has no
            job.
    """
    known = {_plain(path): path for path in directories}
    ids, defect = _selected(since, host)
    found = set()
    for some in batched(ids):
        answer = qstat.query(some, host=host)
        defect = defect or next(iter(answer.unclear.values()), "")
        for record in answer.records:
            if "Variable_List" not in record:
                defect = defect or f"qstat shows no Variable_List of job {record['id']}"
            place = _DIRECTORY.search(record.get("Variable_List", ""))
            if place and (path := known.get(_plain(place[1]))):
                found.add(path)
                yield path, record["id"]
    if defect and not found.issuperset(directories):
        raise SchedulerError(defect)


def _plain(path: str) -> str:
    """Return a path without what PBS Pro adds (backslashes) and Torque removes (also blanks)."""
    return re.sub(r"[\\\s]", "", path)


def _selected(since: float, host: Host) -> tuple[list[str], str]:
    """Return the jobs of this user, each array as one, and a sentence about the first line that is no id; the
    ended ones since a time if PBS keeps a history."""
    begin, zone = search_begin(since, "%Y%m%d%H%M.%S", host)
    for options in (("-x", f"-tc.ge.{begin}"), ()):  # the second one is for Torque, and without a history
        done = host.call(("qselect", *options, "-u", host.user), more=zone)
        # PBS Pro without a history answers the first one with status 0 and an error.
        if done.status == 0 and (done.out.strip() or not done.err.strip()):
            records, defect = whole_records("qselect", done.out, _SELECTED)
            ids = (f"{number}{'[]' if index else ''}{server}" for number, index, server in records)
            return list(dict.fromkeys(ids)), defect
    raise SchedulerError(f"qselect does not answer: {complaint(done)}")


def ask(ids: Sequence[str], host: Host = HERE) -> list[Job]:
    """Return what PBS reports on these jobs, with every task of an array. Jobs that have ended are included
    if PBS keeps a history. A job is left out only if PBS says that it does not know it.

    Raises:
        SchedulerError: PBS does not answer.
    """
    answer = qstat.query(ids, "-t", host=host)
    return [
        *map(_job, answer.records),
        *(Job(word, "ended", task=task(word)) for word in answer.finished),
        *(Job(word, "unknown", why, task=task(word)) for word, why in answer.unclear.items()),
    ]


def _job(record: dict[str, str]) -> Job:
    letter = record.get("job_state", "")[:1]
    if letter in tuple(_ENDED):
        return _ended(record)
    state = _STATES.get(letter, "unknown")
    reason = record.get("comment", "") if state in ("pending", "held") else ""
    if state == "unknown":
        reason = f"qstat shows the state {shown(letter)}" if letter else "qstat shows no state of the job"
    left = _left(record) if state == "running" else None
    return Job(record["id"], state, reason, left, task(record["id"]))


def _ended(record: dict[str, str]) -> Job:
    key = next((key for key in _LIMITS if key in record), "")
    word = record.get(key, "")
    status = int(word) if re.fullmatch(r"-?\d{1,9}", word, re.ASCII) and not _never_ran(record) else None
    state, reason = _LIMITS.get(key, {}).get(status or 0) or (_how_it_ended(record, status), "")
    if status in _BY_THE_KERNEL and _used_up(record, "cput"):
        state, reason = "timeout", _CPU_TIME
    if state == "cancelled" and status is None and record.get("substate") == "92":
        reason = _UNMET
    return Job(record["id"], state, reason, None, task(record["id"]), status)


def _how_it_ended(record: dict[str, str], status: int | None) -> str:
    if status is None:
        return "cancelled" if _never_ran(record) else "ended"
    if status == 0:
        return "finished"
    if status in _CANCELLED or (status > 128 and record.get("substate") == _DELETED):
        return "cancelled"
    return "failed"


def _never_ran(record: dict[str, str]) -> bool:
    """Return whether an ended job was deleted before it began; such a task has status 1 on PBS Pro."""
    if "substate" in record:  # PBS Pro
        return "run_count" not in record
    return "fault_tolerant" in record and "start_time" not in record  # Torque


def _used_up(record: dict[str, str], resource: str) -> bool:
    """Return whether a job used all the time that it asked for."""
    limit = seconds(record.get(f"Resource_List.{resource}", ""))
    used = seconds(record.get(f"resources_used.{resource}", ""))
    return limit is not None and used is not None and used >= limit


def _left(record: dict[str, str]) -> int | None:
    limit = seconds(record.get("Resource_List.walltime", ""))
    used = seconds(record.get("resources_used.walltime", "00:00:00"))
    return None if limit is None or used is None else max(0, limit - used)


def end(ids: Sequence[str], strict: bool = True, host: Host = HERE) -> None:
    """End jobs; unless ``strict``, a job that has ended meanwhile is not an error.

    Raises:
        SchedulerError: the message is PBS's own.
    """
    for some in batched(list(map(argument, ids))):
        done = host.call(("qdel", *some))
        refused = [line for line in done.err.splitlines() if strict or not re.search(_OVER, line, re.I)]
        if done.status != 0 and (refused or not done.err):
            words = complaint(done._replace(err="\n".join(refused)))
            raise SchedulerError(f"qdel refuses {', '.join(some)}: {words}")
