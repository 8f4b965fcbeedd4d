"""The commands of OpenPBS, PBS Pro and Torque: https://2021.help.altair.com/2021.1.2/PBS%20Professional/PBSReferenceGuide2021.1.2.pdf

qstat is asked for text: its JSON is no JSON where a job's environment holds certain values, and some versions
print the first job alone (https://github.com/openpbs/openpbs/issues/2541, 1255 and 2672).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which

from jobgen.life.calls import Done, SchedulerError, call, complaint
from jobgen.life.jobs import Job, number, seconds

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
# A job that qdel ended has the signal for its status; what PBS says of limits is below 0:
# https://github.com/openpbs/openpbs/blob/master/src/include/job.h
_SIGNALLED = {256 + 15, 256 + 9, 128 + 15, 128 + 9}
_LIMITS = {-29: "timeout", -27: "out of memory", -26: "out of memory"}


def submit(directory: Path, script: str) -> str:
    """Submit a script from ``directory``; the answer is the id.

    Raises:
        SchedulerError: with PBS's own words.
    """
    done = call(("qsub", script), directory, patience=None)
    found = re.findall(r"^\d+(?:\[\])?(?:\.\S+)?$", done.out, re.MULTILINE)  # a site's hooks may say more
    if done.status != 0 or not found:
        raise SchedulerError(f"qsub refuses the job: {complaint(done)}")
    return str(found[-1])


def ask(ids: Sequence[str]) -> list[Job]:
    """What PBS knows of these jobs, every task of an array by itself, also of those that have ended where its
    history is on.

    Raises:
        SchedulerError: PBS does not answer.
    """
    words = list(dict.fromkeys(map(_argument, ids)))
    jobs = _ask(words)
    known = {number(job.id) for job in jobs}
    # Slurm's qstat knows an array by its number alone.
    bare = [number(word) for word in words if word.endswith("[]") and number(word) not in known]
    return jobs + _ask(bare) if bare else jobs


def _ask(words: Sequence[str]) -> list[Job]:
    # -x is PBS Pro's history; Torque's is XML, and Slurm's qstat has none.
    for options in (("-x", "-t", "-f"), ("-t", "-f"), ("-f",)):
        done = call(("qstat", *options, *words))
        if _ID.search(done.out) or _says_unknown(done):
            return [_job(one) for one in _records(done.out)]
    if done.status not in (0, 153):
        raise SchedulerError(f"qstat does not answer: {complaint(done)}")
    return []


def _argument(job_id: str) -> str:
    """An id without its server, as qstat of the default server takes it: 12, or 12[] for an array."""
    return job_id.partition(".")[0]


def _says_unknown(done: Done) -> bool:
    return "Unknown Job Id" in done.err or "has finished" in done.err


def _records(text: str) -> Iterator[dict[str, str]]:
    """The attributes of each job; a long value goes on in lines that begin with a tab."""
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
    status = int(word) if re.fullmatch(r"-?\d+", word) else None
    state = _how_it_ended(status) if letter in _ENDED else _STATES.get(letter, letter)
    index = re.match(r"\d+\[(\d+)\]", record["id"]) or re.match(r"\d+-(\d+)", record["id"])
    return Job(
        record["id"],
        state,
        record.get("comment", "") if state in ("pending", "held") else "",
        _left(record) if state == "running" else None,
        index[1] if index else None,
        status if letter in _ENDED else None,
    )


def _how_it_ended(status: int | None) -> str:
    if status is None:
        return "ended"
    if status == 0:
        return "finished"
    return "cancelled" if status in _SIGNALLED else _LIMITS.get(status, "failed")


def _left(record: dict[str, str]) -> int | None:
    limit = seconds(record.get("Resource_List.walltime", ""))
    used = seconds(record.get("resources_used.walltime", "00:00:00"))
    return None if limit is None or used is None else max(0, limit - used)


def cancel(job_id: str, at_once: bool) -> bool:
    """End a job; unless ``at_once`` the script of one that runs is only signalled, where there is a qsig. The
    answer is whether that was so.

    Raises:
        SchedulerError: with PBS's own words.
    """
    if not at_once and which("qsig") and call(("qsig", "-s", "USR1", _argument(job_id))).status == 0:
        return True
    done = call(("qdel", _argument(job_id)))
    if done.status != 0:
        raise SchedulerError(f"qdel refuses {number(job_id)}: {complaint(done)}")
    return False
