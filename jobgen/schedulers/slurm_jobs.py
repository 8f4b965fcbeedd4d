"""Slurm's commands: https://slurm.schedmd.com/man_index.html"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from jobgen.schedulers.calls import SchedulerError, batched, call, complaint
from jobgen.schedulers.jobs import CLOCKS_DIFFER, Job, number, task, whole_lines
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


command: Sequence[str] = ("sbatch", "--parsable")
_RECORD = re.compile(r"(\d+(?:_\d+|_\[[^\]|]*\])?)\|([A-Z_]+)\|([^|]*)\|(.*)")  # others are banners
_CLUSTERS = re.compile(rb"^#SBATCH\s(?:.*\s)?(?:-M\s*|--clusters?[= ]\s*)([\w.,-]+)", re.MULTILINE)
_HEAD = 4096  # bytes of a script that hold its directives
_REMEMBERED = 60  # s; the controller keeps a job that has ended for longer
_NO_ACCOUNTING = "accounting storage is disabled"


def submitted(said: str) -> list[str]:
    """Return the ids in the output of sbatch: 4711, or 4711;CLUSTER."""
    ids = whole_lines(said, r"submitted batch job (\d+(?: on cluster [\w.-]+)?)", r"(\d+(?:;[\w.-]+)?)")
    return [one.replace(" on cluster ", ";") for one in ids]


def find(directories: Collection[str], since: float) -> Iterator[tuple[str, str]]:
    """Yield the jobs that were submitted from these directories, in this cluster and those that the scripts
    name: squeue has the path of the script, also where --chdir gives the job another directory.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    found = set()
    for cluster in ("", *_clusters(directories)):
        out = _squeue_out(cluster, f"--user={os.getuid()}", "--format=%F|%o")
        for path, job_id in _pairs(out, cluster):
            if (directory := os.path.dirname(path)) in directories:
                found.add(directory)
                yield directory, job_id
    missing = [path for path in directories if path not in found]
    if missing and time.time() - since > _REMEMBERED:
        begin = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since - CLOCKS_DIFFER))
        for cluster in ("", *_clusters(missing)):
            words = (f"--user={os.getuid()}", f"--starttime={begin}", "--format=JobID,WorkDir")
            yield from (pair for pair in _pairs(_sacct_out(cluster, *words), cluster) if pair[0] in missing)


def _clusters(directories: Collection[str]) -> list[str]:
    """Return the clusters that the scripts in these directories name, or the environment of sbatch."""
    names = os.environ.get("SBATCH_CLUSTERS", "").split(",")
    for directory in directories:
        with suppress(OSError):
            text = Path(directory, "job.sh").read_bytes()[:_HEAD]
            names += [name for match in _CLUSTERS.findall(text) for name in match.decode().split(",")]
    return sorted({*names} - {""})


def _pairs(out: str, cluster: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the id of each record ID|PATH."""
    for line in out.splitlines():
        job_id, _, path = line.partition("|")
        if path and number(job_id).isdecimal():
            yield path, number(job_id) + (f";{cluster}" if cluster else "")


def ask(ids: Sequence[str]) -> list[Job]:
    """Return what Slurm reports on these jobs, with every task of an array. Jobs that the controller has
    forgotten are looked up in the accounting; they are unknown if it does not answer.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    jobs = []
    for cluster, some in _by_cluster(ids).items():
        found = list(_squeue(cluster, some))
        missing = sorted({number(one) for one in some} - {number(job.id) for job in found})
        found += _sacct(cluster, missing) if missing else []
        jobs += [job._replace(id=f"{job.id};{cluster}") for job in found] if cluster else found
    return jobs


def _by_cluster(ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids without their clusters, by cluster; the local one is an empty name."""
    table: dict[str, list[str]] = {}
    for job_id in ids:
        bare, _, cluster = job_id.partition(";")
        table.setdefault(cluster, []).append(bare)
    return table


def _squeue(cluster: str, ids: Sequence[str]) -> Iterator[Job]:
    numbers = ",".join(sorted({number(one) for one in ids}))
    for line in _squeue_out(cluster, "--array", f"--jobs={numbers}", "--format=%i|%T|%L|%r").splitlines():
        if record := _RECORD.fullmatch(line.strip()):
            job_id, state, left, reason = record.groups()
            yield _job(job_id, state, "" if reason == "None" else reason, seconds(left))


def _squeue_out(cluster: str, *options: str) -> str:
    """Return what squeue prints. --states=all includes jobs that have ended, as long as the controller keeps
    them (MinJobAge)."""
    done = call(("squeue", *_at(cluster), "--noheader", "--states=all", *options))
    if done.status != 0 and "Invalid job id" not in done.err:
        raise SchedulerError(f"squeue does not answer: {complaint(done)}")
    return done.out


def _at(cluster: str) -> tuple[str, ...]:
    return (f"--clusters={cluster}",) if cluster else ()


def _sacct(cluster: str, numbers: Sequence[str]) -> list[Job]:
    """Return the jobs from the accounting; an empty list if there is no accounting."""
    try:
        out = _sacct_out(cluster, "--array", f"--jobs={','.join(numbers)}", "--format=JobID,State,ExitCode")
    except SchedulerError as error:
        why = f"squeue does not list it any more, and {error}"
        return [Job(one, "unknown", why) for one in numbers]
    words = (line.split("|") for line in out.splitlines() if line.count("|") == 2)
    return [_job(job_id, state, "", None, exit_code) for job_id, state, exit_code in words]


def _sacct_out(cluster: str, *options: str) -> str:
    """Return what sacct prints; nothing if this Slurm has no accounting."""
    done = call(("sacct", *_at(cluster), "--allocations", "--noheader", "--parsable2", *options))
    if done.status != 0 and _NO_ACCOUNTING not in done.err:
        raise SchedulerError(f"sacct does not answer: {complaint(done)}")
    return done.out if done.status == 0 else ""


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
    for cluster, mine in _by_cluster(ids).items():
        for some in batched(mine):
            done = call(("scancel", *_at(cluster), "--quiet", *options, *some))
            if done.status != 0 and (strict or any(_is_queued(cluster, one) for one in some)):
                raise SchedulerError(f"scancel refuses {', '.join(some)}: {complaint(done)}")


def _is_queued(cluster: str, job_id: str) -> bool:
    """Return whether any task of a job waits or runs; True if squeue does not answer."""
    done = call(("squeue", *_at(cluster), "--noheader", f"--jobs={job_id}", "--format=%i"))
    return bool(done.out.strip()) or (done.status != 0 and "Invalid job id" not in done.err)
