"""Slurm's commands: https://slurm.schedmd.com/man_index.html"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from jobgen.schedulers.calls import SchedulerError, batched, call, complaint
from jobgen.schedulers.jobs import Job, number, task
from jobgen.values import seconds

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
    """Submit a script from ``directory`` and return the id of the job.

    Raises:
        SchedulerError: the message is Slurm's own.
    """
    done = call(("sbatch", "--parsable", script), directory, patience=None)
    found = re.findall(r"^(\d+)(?:;\S+)?$", done.out, re.MULTILINE)  # ID;CLUSTER
    if done.status != 0 or not found:
        raise SchedulerError(f"sbatch refuses the job: {complaint(done)}")
    return str(found[-1])


def ask(ids: Sequence[str]) -> list[Job]:
    """Return what Slurm reports on these jobs, with every task of an array. Jobs that the controller has
    forgotten are looked up in the accounting.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    jobs = list(_squeue(ids))
    missing = sorted({number(one) for one in ids} - {number(job.id) for job in jobs})
    return jobs + _sacct(missing) if missing else jobs


def _squeue(ids: Sequence[str]) -> Iterator[Job]:
    # --states=all includes jobs that have ended, as long as the controller keeps them (MinJobAge).
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
    """Return the jobs from the accounting; an empty list if there is no accounting."""
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
    status = re.fullmatch(r"(\d+):(\d+)", exit_code)
    return Job(
        job_id,
        word,
        reason if word in ("pending", "held") else "",
        left if word == "running" else None,
        task(job_id),
        (int(status[1]) or (128 + int(status[2]) if status[2] != "0" else 0)) if status else None,
    )


def end(ids: Sequence[str], strict: bool = True) -> None:
    """End jobs; unless ``strict``, a job that has ended meanwhile is not an error.

    Raises:
        SchedulerError: the message is Slurm's own.
    """
    _scancel((), ids, strict)


def _signal(ids: Sequence[str]) -> None:
    _scancel(("--batch", "--signal=USR1"), ids, strict=False)


save_by_signal: Callable[[Sequence[str]], None] | None = _signal  # it reaches only the script


def _scancel(options: Sequence[str], ids: Sequence[str], strict: bool) -> None:
    for some in batched(ids):
        done = call(("scancel", "--quiet", *options, *some))
        if done.status != 0 and (strict or any(map(_is_queued, some))):
            raise SchedulerError(f"scancel refuses {', '.join(some)}: {complaint(done)}")


def _is_queued(job_id: str) -> bool:
    """Return whether any task of a job waits or runs; True if squeue does not answer."""
    done = call(("squeue", "--noheader", f"--jobs={job_id}", "--format=%i"))
    return bool(done.out.strip()) or (done.status != 0 and "Invalid job id" not in done.err)
