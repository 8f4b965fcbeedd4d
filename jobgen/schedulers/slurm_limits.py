"""The limits of Slurm's partitions and QoS, from the lines of scontrol and sacctmgr.

https://slurm.schedmd.com/scontrol.html and https://slurm.schedmd.com/sacctmgr.html
"""

from __future__ import annotations

from collections.abc import Iterable

from jobgen.schedulers.cluster import QueueFacts
from jobgen.values.parsers import count, seconds

_TAKES = ("UP", "DOWN")  # sbatch accepts jobs; in a partition that is down they do not start


def partition_limits(text: str, whole_nodes: bool) -> dict[str, QueueFacts]:
    """Return what ``scontrol --oneliner show partition`` says of each partition; the name in the facts is
    that of the partition's QoS. With ``whole_nodes`` (select/linear) no partition shares nodes."""
    found = {}
    for line in text.splitlines():
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if (name := fields.get("PartitionName")) is None:
            continue
        state = fields.get("State", "UP")
        sharing = fields.get("OverSubscribe", "").partition(":")[0]
        found[name] = QueueFacts(
            fields.get("QoS", "N/A"),
            most_nodes=count(fields.get("MaxNodes", "")) or count(fields.get("TotalNodes", "")),
            enabled=state in _TAKES and fields.get("RootOnly") != "YES",
            started=state == "UP",
            shared=sharing in ("YES", "FORCE") or (sharing == "NO" and not whole_nodes) if sharing else None,
        )
    return found


def qos_limits(text: str) -> dict[str, QueueFacts]:
    """Return the limits of each QoS from sacctmgr's table, whose first line has the names of its columns."""
    head, *rows = text.splitlines() or [""]
    names = head.split("|")
    found = {}
    for row in rows:
        fields = dict(zip(names, row.split("|"), strict=False))
        if name := fields.get("Name"):
            job, user = _tres(fields.get("MaxTRES", "")), _tres(_first(fields, "MaxTRESPU", "MaxTRESPerUser"))
            found[name] = QueueFacts(
                name,
                least_nodes=_tres(fields.get("MinTRES", "")).get("node"),
                most_nodes=_least((job.get("node"), user.get("node"))),
                walltime=seconds(fields.get("MaxWall", "")),
                max_jobs=count(_first(fields, "MaxJobsPU", "MaxJobsPerUser")),
                max_gpus=user.get("gres/gpu"),
            )
    return found


def within(queue: QueueFacts, limits: QueueFacts) -> QueueFacts:
    """Return a partition with the limits of its QoS, where these are narrower."""
    return queue._replace(
        least_nodes=max(queue.least_nodes or 0, limits.least_nodes or 0) or None,
        most_nodes=_least((queue.most_nodes, limits.most_nodes)),
        walltime=_least((queue.walltime, limits.walltime)),
        max_jobs=limits.max_jobs,
        max_gpus=limits.max_gpus,
    )


def _first(fields: dict[str, str], *names: str) -> str:
    return next((fields[name] for name in names if name in fields), "")


def _tres(text: str) -> dict[str, int | None]:
    """Return the numbers in ``node=4,gres/gpu=16``."""
    pairs = (one.partition("=") for one in text.split(","))
    return {name: count(number) for name, _, number in pairs}


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
