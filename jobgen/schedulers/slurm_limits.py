"""The limits of Slurm's partitions and QoS, from the lines of scontrol and sacctmgr.

https://slurm.schedmd.com/scontrol.html and https://slurm.schedmd.com/sacctmgr.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from jobgen.schedulers.cluster import Memory, QueueFacts, Reading
from jobgen.values.parsers import count, seconds

_TAKES = ("UP", "DOWN")  # sbatch accepts jobs; in a partition that is down they do not start


def fields_of(line: str) -> dict[str, str]:
    """Return the fields in a line of ``scontrol --oneliner``; of equal names the first, because texts of
    administrators come last."""
    found: dict[str, str] = {}
    for word in line.split():
        name, equals, value = word.partition("=")
        if equals:
            found.setdefault(name, value)
    return found


def partition_limits(text: str, config: str, reading: Reading) -> Iterator[tuple[QueueFacts, str]]:
    """Yield each partition of ``scontrol --oneliner show partition`` with the name of its QoS; its
    ``max_cores`` are those of a node. ``config`` is the answer of ``scontrol show config``."""
    whole_nodes = re.search(r"(?m)^SelectType\s*=\s*select/linear\b", config) is not None
    common = dict(re.findall(r"(?m)^(\w+)\s*=\s*(\S+)", config))
    for line in text.splitlines():
        fields = fields_of(line)
        if (name := fields.get("PartitionName")) is None:
            if line.strip():
                reading.leave_out(line)
            continue
        state = fields.get("State", "UP")
        sharing = fields.get("OverSubscribe", "").partition(":")[0]
        yield (
            QueueFacts(
                name,
                default=fields.get("Default") == "YES",
                least_nodes=reading.value(fields, "MinNodes") or None,
                most_nodes=reading.value(fields, "MaxNodes") or reading.value(fields, "TotalNodes"),
                walltime=reading.value(fields, "MaxTime", seconds),
                memory=_memory(fields, common),
                enabled=state in _TAKES and "YES" not in (fields.get("RootOnly"), fields.get("ReqResv")),
                started=state == "UP",
                shared=sharing in ("YES", "FORCE") or (sharing == "NO" and not whole_nodes)
                if sharing
                else None,
                max_cores=reading.value(fields, "MaxCPUsPerNode"),
                accounts=_names(fields.get("AllowAccounts", "ALL")),
                groups=_names(fields.get("AllowGroups", "ALL")),
                qos=_names(fields.get("AllowQos", "ALL")),
                not_accounts=_names(fields.get("DenyAccounts", "")),
                not_qos=_names(fields.get("DenyQos", "")),
            ),
            fields.get("QoS", "N/A"),
        )


def _names(text: str) -> tuple[str, ...]:
    return () if text in ("ALL", "(null)", "") else tuple(text.split(","))


def _memory(fields: Mapping[str, str], common: Mapping[str, str]) -> Memory:
    """Return the memory of jobs that request none. Slurm has no such limit if memory is not allocated."""
    if "MEMORY" not in common.get("SelectTypeParameters", "MEMORY").upper():
        return Memory()

    def limits(kind: str) -> list[int | None]:
        """Return the limits per core and per node; either one of a partition replaces both of the cluster."""
        own, all_jobs = (
            [count(where.get(f"{kind}Per{what}", "")) for what in ("CPU", "Node")]
            for where in (fields, common)
        )
        return own if any(own) else all_jobs

    defaults = (fields.get("JobDefaults", ""), common.get("JobDefaults", ""))
    device = next(
        (found[1] for text in defaults if (found := re.search(r"DefMemPerGPU=(\d{1,9})", text))), ""
    )
    (core, node), most = limits("DefMem"), limits("MaxMem")
    return Memory(core or None, count(device), node or None, *(value or None for value in most))


def qos_limits(text: str) -> dict[str, QueueFacts]:
    """Return the limits of each QoS from sacctmgr's table, whose first line has the names of its columns."""
    head, *rows = text.splitlines() or [""]
    names = head.split("|")
    found = {}
    for row in rows:
        fields = dict(zip(names, row.split("|"), strict=False))
        if name := fields.get("Name"):
            job, user = _tres(fields.get("MaxTRES", "")), _tres(_first(fields, "MaxTRESPU", "MaxTRESPerUser"))
            least = _tres(fields.get("MinTRES", ""))
            found[name] = QueueFacts(
                name,
                least_nodes=least.get("node"),
                most_nodes=_least((job.get("node"), user.get("node"))),
                walltime=seconds(fields.get("MaxWall", "")),
                max_jobs=count(_first(fields, "MaxJobsPU", "MaxJobsPerUser")),
                max_gpus=_least((job.get("gres/gpu"), user.get("gres/gpu"))),
                min_gpus=least.get("gres/gpu"),
                min_cores=least.get("cpu"),
                max_cores=_least((job.get("cpu"), user.get("cpu"))),
            )
    return found


def within(queue: QueueFacts, limits: QueueFacts) -> QueueFacts:
    """Return a partition with the limits of its QoS, where these are narrower."""
    return queue._replace(
        least_nodes=max(queue.least_nodes or 0, limits.least_nodes or 0) or None,
        most_nodes=_least((queue.most_nodes, limits.most_nodes)),
        walltime=_least((queue.walltime, limits.walltime)),
        **{
            name: getattr(limits, name)
            for name in ("max_jobs", "max_gpus", "min_gpus", "min_cores", "max_cores")
        },
    )


def _first(fields: dict[str, str], *names: str) -> str:
    return next((fields[name] for name in names if name in fields), "")


def _tres(text: str) -> dict[str, int | None]:
    """Return the numbers in ``node=4,gres/gpu=16``."""
    pairs = (one.partition("=") for one in text.split(","))
    return {name: count(number) for name, _, number in pairs}


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
