"""Slurm's commands: https://slurm.schedmd.com/man_index.html"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator, Sequence

from jobgen.hosts.calls import Done, SchedulerError, batched, complaint
from jobgen.hosts.host import HERE, Host
from jobgen.schedulers.jobs import Job, number, search_begin, task, whole_lines, whole_records
from jobgen.values import arrays
from jobgen.values.parsers import seconds

_STATES = {
    **dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "EXPEDITING"), "pending"),
    **dict.fromkeys(("REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"), "held"),
    **dict.fromkeys(("RUNNING", "SIGNALING", "RESIZING"), "running"),
    **dict.fromkeys(("SUSPENDED", "STOPPED"), "suspended"),
    **dict.fromkeys(("COMPLETING", "STAGE_OUT"), "ending"),
    "COMPLETED": "finished",
    **dict.fromkeys(("CANCELLED", "REVOKED"), "cancelled"),
    **dict.fromkeys(("TIMEOUT", "DEADLINE"), "timeout"),
    "OUT_OF_MEMORY": "out of memory",
    **dict.fromkeys(("NODE_FAIL", "BOOT_FAIL"), "node failed"),
    "PREEMPTED": "preempted",
    "FAILED": "failed",
}


command: Sequence[str] = ("sbatch", "--parsable")
_ID = r"(\d+(?:_\d+|_\[[^\]|]*\]|\+\d+)?)"
_QUEUE_RECORD = re.compile(rf"{_ID}\|([A-Z_]+)\|([^|]*)\|(.*)")
_PATH_RECORD = re.compile(rf"{_ID}\|(.+)")
_ACCOUNTING_RECORD = re.compile(rf"{_ID}\|([A-Z_]+)[^|]*\|(\d+:\d+)")  # CANCELLED by 1000
_FURTHER = r"\+[1-9]"  # a component of a heterogeneous job behind the first, which has the script
_CLUSTERS = re.compile(rb"^#SBATCH\s(?:.*\s)?(?:-M\s*|--clusters?[= ]\s*)([\w.,-]+)", re.MULTILINE)
_HEAD = 4096  # bytes of a script that hold its directives
_REMEMBERED = 60  # s; the controller keeps a job that has ended for longer
_UNKNOWN = "slurm_load_jobs error: Invalid job id specified"
_NO_ACCOUNTING = "accounting storage is disabled"


def submitted(output: str) -> list[str]:
    """Return the ids in the output of sbatch: 4711, or 4711;CLUSTER."""
    ids = whole_lines(output, r"submitted batch job (\d+(?: on cluster [\w.-]+)?)", r"(\d+(?:;[\w.-]+)?)")
    return [one.replace(" on cluster ", ";") for one in ids]


def find(directories: Collection[str], since: float, host: Host = HERE) -> Iterator[tuple[str, str]]:
    """Yield the jobs that were submitted from these directories, in this cluster and those that the scripts
    name: squeue has the path of the script, also where --chdir gives the job another directory.

    Raises:
        SchedulerError: Slurm does not answer, or a part of its answer cannot be read and a directory has no
            job.
    """
    found = set()
    defects = []
    for cluster in ("", *_clusters(directories, host)):
        out = _squeue_out(host, cluster, f"--user={host.uid}", "--format=%i|%o")
        pairs, defect = _pairs("squeue", out, cluster)
        defects.append(defect)
        for path, job_id in pairs:
            if (directory := os.path.dirname(path)) in directories:
                found.add(directory)
                yield directory, job_id
    missing = [path for path in directories if path not in found]
    if missing and time.time() - since > _REMEMBERED:
        begin, zone = search_begin(since, "%Y-%m-%dT%H:%M:%S", host)
        for cluster in ("", *_clusters(missing, host)):
            words = (f"--user={host.uid}", f"--starttime={begin}", "--format=JobID,WorkDir")
            pairs, defect = _pairs("sacct", _sacct_out(host, cluster, *words, **zone), cluster)
            defects.append(defect)
            for directory, job_id in pairs:
                if directory in missing:
                    found.add(directory)
                    yield directory, job_id
    if any(defects) and not found.issuperset(directories):
        raise SchedulerError(next(filter(None, defects)))


def _clusters(directories: Collection[str], host: Host) -> list[str]:
    """Return the clusters that the scripts in these directories name, or the environment of sbatch."""
    names = host.variable("SBATCH_CLUSTERS").split(",")
    for directory in directories:
        text = host.read(os.path.join(directory, "job.sh"), _HEAD)
        names += [name for match in _CLUSTERS.findall(text) for name in match.decode().split(",")]
    return sorted({*names} - {""})


def _pairs(command: str, out: str, cluster: str) -> tuple[list[tuple[str, str]], str]:
    """Return the path and the id of each record ID|PATH, and a sentence about the first line that is none."""
    records, defect = whole_records(command, out, _PATH_RECORD)
    suffix = f";{cluster}" if cluster else ""
    return [(path, number(job_id) + suffix) for job_id, path in records], defect


def ask(ids: Sequence[str], host: Host = HERE) -> list[Job]:
    """Return what Slurm reports on these jobs, with every task of an array. Jobs that the controller has
    forgotten are looked up in the accounting. A job is left out only if neither knows it; it is unknown if an
    answer cannot be read.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    jobs = []
    for cluster, some in _by_cluster(ids).items():
        numbers = {number(one) for one in some}
        found, why = _squeue(host, cluster, numbers)
        if missing := numbers - {number(job.id) for job in found}:
            others, no_record = _sacct(host, cluster, missing)
            found += others
            why = why or no_record
            missing -= {number(job.id) for job in others}
        found += [Job(one, "unknown", why) for one in sorted(missing)] if why else []
        jobs += [job._replace(id=f"{job.id};{cluster}") for job in found] if cluster else found
    return jobs


def _by_cluster(ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids without their clusters, by cluster; the local one is an empty name."""
    table: dict[str, list[str]] = {}
    for job_id in ids:
        bare, _, cluster = job_id.partition(";")
        table.setdefault(cluster, []).append(bare)
    return table


def _squeue(host: Host, cluster: str, numbers: Collection[str]) -> tuple[list[Job], str]:
    """Return the jobs that the controller knows, and why others may be missing."""
    out = _squeue_out(host, cluster, "--array", f"--jobs={_listed(numbers)}", "--format=%i|%T|%L|%r")
    records, defect = whole_records("squeue", out, _QUEUE_RECORD)
    jobs = [
        _job("squeue", job_id, state, "" if reason == "None" else reason, seconds(left))
        for job_id, state, left, reason in records
    ]
    return _of(numbers, "squeue", jobs, defect)


def _of(numbers: Collection[str], command: str, jobs: Sequence[Job], defect: str) -> tuple[list[Job], str]:
    """Return those of the jobs that have one of these numbers, and why others may be missing. An array is
    unknown beside its tasks if a part of them may be missing."""
    found = [job for job in jobs if number(job.id) in numbers and not re.search(_FURTHER, job.id)]
    foreign = next((job.id for job in jobs if number(job.id) not in numbers), None)
    if foreign and not defect:
        defect = f"{command} shows job {foreign}, which is another one"
    partial = dict.fromkeys(number(job.id) for job in found if job.task is not None) if defect else ()
    return [*found, *(Job(array, "unknown", defect) for array in partial)], defect


def _squeue_out(host: Host, cluster: str, *options: str) -> str:
    """Return what squeue prints. --states=all includes jobs that have ended, as long as the controller keeps
    them (MinJobAge)."""
    done = host.call(("squeue", *_at(cluster), "--noheader", "--states=all", *options))
    if done.status != 0 and not _is_unknown(done):
        raise SchedulerError(f"squeue does not answer: {complaint(done)}")
    return done.out


def _is_unknown(done: Done) -> bool:
    """Return whether squeue says that the controller knows none of the jobs."""
    return done.status == 1 and _UNKNOWN in done.err.splitlines()


def _at(cluster: str) -> tuple[str, ...]:
    return (f"--clusters={cluster}",) if cluster else ()


def _sacct(host: Host, cluster: str, numbers: Collection[str]) -> tuple[list[Job], str]:
    """Return the jobs in the accounting, and why others may be missing; no jobs if there is no accounting."""
    words = (f"--jobs={_listed(numbers)}", "--format=JobID,State,ExitCode")
    try:
        out = _sacct_out(host, cluster, *words)
    except SchedulerError as error:
        return [], f"squeue does not list it any more, and {error}"
    records, defect = whole_records("sacct", out, _ACCOUNTING_RECORD)
    jobs = [
        _job("sacct", task_id, state, "", None, code)
        for job_id, state, code in records
        for task_id in _tasks(job_id)
    ]
    return _of(numbers, "sacct", jobs, defect)


def _tasks(job_id: str) -> list[str]:
    """Return the ids of the tasks in an id such as 12_[0-2,5], which never began; otherwise the id."""
    match = re.fullmatch(r"(\d+)_\[(.*)\]", job_id)
    array = arrays.read(match[2]) if match else None
    if not (match and array):
        return [job_id]
    ranges = (range(first, last + 1, step) for first, last, step in array.ranges)
    return [f"{match[1]}_{index}" for indices in ranges for index in indices]


def _sacct_out(host: Host, cluster: str, *options: str, **variables: str) -> str:
    """Return what sacct prints; nothing if this Slurm has no accounting."""
    words = ("sacct", *_at(cluster), "--allocations", "--noheader", "--parsable2", *options)
    whole = {"SLURM_BITSTR_LEN": "0"}  # the indices of an array at full length
    done = host.call(words, more={**whole, **variables})
    if done.status != 0 and _NO_ACCOUNTING not in done.err:
        raise SchedulerError(f"sacct does not answer: {complaint(done)}")
    return done.out if done.status == 0 else ""


def _listed(numbers: Collection[str]) -> str:
    return ",".join(sorted(numbers))


def _job(command: str, job_id: str, state: str, reason: str, left: int | None, exit_code: str = "") -> Job:
    word = _STATES.get(state, "unknown")
    if word == "pending" and reason.startswith("JobHeld"):
        word = "held"
    if word == "unknown":
        reason = f"{command} shows the state {state}"
    status = re.fullmatch(r"(\d+):(\d+)", exit_code)
    return Job(
        job_id,
        word,
        reason if word in ("pending", "held", "unknown") else "",
        left if word == "running" else None,
        task(job_id),
        (int(status[1]) or (128 + int(status[2]) if status[2] != "0" else 0)) if status else None,
    )


def end(ids: Sequence[str], strict: bool = True, host: Host = HERE) -> None:
    """End jobs; unless ``strict``, a job that has ended meanwhile is not an error.

    Raises:
        SchedulerError: the message is Slurm's own.
    """
    for cluster, mine in _by_cluster(ids).items():
        for some in batched(mine):
            done = host.call(("scancel", *_at(cluster), "--quiet", *some))
            if done.status != 0 and (strict or any(_is_queued(host, cluster, one) for one in some)):
                raise SchedulerError(f"scancel refuses {', '.join(some)}: {complaint(done)}")


def _is_queued(host: Host, cluster: str, job_id: str) -> bool:
    """Return whether any task of a job waits or runs; True if squeue does not answer."""
    done = host.call(("squeue", *_at(cluster), "--noheader", f"--jobs={job_id}", "--format=%i"))
    return bool(done.out.strip()) or (done.status != 0 and not _is_unknown(done))
