"""Slurm's commands: https://slurm.schedmd.com/man_index.html"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobgen.life.calls import SchedulerError, call, complaint
from jobgen.life.jobs import Job, number, seconds

_STATES = {
    "PENDING": "pending",
    "CONFIGURING": "pending",
    "REQUEUED": "pending",
    "REQUEUE_HOLD": "held",
    "SPECIAL_EXIT": "held",
    "RESV_DEL_HOLD": "held",
    "RUNNING": "running",
    "SIGNALING": "running",
    "RESIZING": "running",
    "SUSPENDED": "suspended",
    "STOPPED": "suspended",
    "COMPLETING": "ending",
    "STAGE_OUT": "ending",
    "COMPLETED": "finished",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "OUT_OF_MEMORY": "out of memory",
    "NODE_FAIL": "node failed",
    "BOOT_FAIL": "node failed",
    "PREEMPTED": "preempted",
    "FAILED": "failed",
}


def submit(directory: Path, script: str) -> str:
    """Submit a script from ``directory``; the answer is the id.

    Raises:
        SchedulerError: with Slurm's own words.
    """
    done = call(("sbatch", "--parsable", script), directory, patience=None)
    found = re.findall(r"^(\d+)(?:;\S+)?$", done.out, re.MULTILINE)  # ID;CLUSTER
    if done.status != 0 or not found:
        raise SchedulerError(f"sbatch refuses the job: {complaint(done)}")
    return str(found[-1])


def ask(ids: Sequence[str]) -> list[Job]:
    """What Slurm knows of these jobs, every task of an array by itself; for those that the controller has
    forgotten the accounting is asked.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    jobs = list(_squeue(ids))
    missing = sorted({number(one) for one in ids} - {number(job.id) for job in jobs})
    return jobs + _sacct(missing) if missing else jobs


def _squeue(ids: Sequence[str]) -> Iterator[Job]:
    # With --states=all also those that have ended, for as long as the controller keeps them (MinJobAge).
    numbers = ",".join(sorted({number(one) for one in ids}))
    done = call(
        ("squeue", "--noheader", "--array", "--states=all", f"--jobs={numbers}", "--format=%i|%T|%L|%r")
    )
    if done.status != 0 and "Invalid job id" not in done.err:
        raise SchedulerError(f"squeue does not answer: {complaint(done)}")
    for line in done.out.splitlines():
        job_id, state, left, reason = line.split("|", 3)
        yield _job(job_id, state, "" if reason == "None" else reason, seconds(left))


def _sacct(numbers: Sequence[str]) -> list[Job]:
    """From the accounting; nothing where there is none."""
    command = (
        "sacct",
        "--allocations",
        "--noheader",
        "--array",
        "--parsable2",
        f"--jobs={','.join(numbers)}",
    )
    try:
        done = call((*command, "--format=JobID,State,ExitCode"))
    except SchedulerError:
        return []
    words = (line.split("|") for line in done.out.splitlines() if line.count("|") == 2)
    return [_job(job_id, state, "", None, exit_code) for job_id, state, exit_code in words]


def _job(job_id: str, state: str, reason: str, left: int | None, exit_code: str = "") -> Job:
    word = _STATES.get(state.split(" ")[0].rstrip("+"), state.lower())  # CANCELLED by 1000
    if word == "pending" and reason.startswith("JobHeld"):
        word = "held"
    index = re.fullmatch(r"\d+_(\d+)", job_id)
    status = re.fullmatch(r"(\d+):(\d+)", exit_code)
    return Job(
        job_id,
        word,
        reason if word in ("pending", "held") else "",
        left if word == "running" else None,
        index[1] if index else None,
        (int(status[1]) or (128 + int(status[2]) if status[2] != "0" else 0)) if status else None,
    )


def cancel(job_id: str, at_once: bool) -> bool:
    """End a job; unless ``at_once`` the script of one that runs is only signalled. The answer is whether that
    was so.

    Raises:
        SchedulerError: with Slurm's own words.
    """
    gently = (("--state=PENDING",), ("--batch", "--signal=USR1"))
    for options in ((),) if at_once else gently:
        done = call(("scancel", "--quiet", *options, job_id))
        if done.status != 0:
            if options == gently[1] and not _is_queued(job_id):  # it was pending, or has just ended
                break
            raise SchedulerError(f"scancel refuses {job_id}: {complaint(done)}")
    return not at_once


def _is_queued(job_id: str) -> bool:
    """Whether any task of a job waits or runs; yes, where squeue does not say."""
    done = call(("squeue", "--noheader", f"--jobs={job_id}", "--format=%i"))
    return bool(done.out.strip()) or (done.status != 0 and "Invalid job id" not in done.err)
