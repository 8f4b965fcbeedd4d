"""The partitions, nodes and QoS of Slurm, by commands that any user may run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jobgen.schedulers.calls import SchedulerError, output
from jobgen.schedulers.cluster import Facts, QueueFacts
from jobgen.schedulers.slurm_limits import partition_limits, qos_limits, within
from jobgen.values.parsers import count, seconds

SINFO = ("sinfo", "--all", "--noheader", "-o", "%P|%l|%D|%c|%m|%G|%s")
PARTITIONS = ("scontrol", "--all", "--oneliner", "show", "partition")
# sacctmgr needs Slurm's database, which not every cluster has.
QOS = (
    "sacctmgr",
    "--parsable2",
    "show",
    "qos",
    "format=Name,Flags,MaxWall,MaxTRES,MinTRES,MaxTRESPerUser,MaxJobsPerUser",
)


def facts() -> Facts:
    """Return the facts about this cluster.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    config = output("scontrol", "show", "config")
    name = re.search(r"(?m)^ClusterName\s*=\s*(\S+)", config)
    whole = re.search(r"(?m)^SelectType\s*=\s*select/linear\b", config) is not None
    try:
        qos = output(*QOS)
    except SchedulerError:
        qos = ""
    found = read(name[1] if name else "cluster", output(*SINFO), output(*PARTITIONS), qos, whole)
    return found._replace(commands="sinfo, scontrol and sacctmgr" if qos else "sinfo and scontrol")


def queues(patience: float) -> Iterator[str]:
    """Yield the names of the partitions."""
    # sinfo prints a line for each state of the nodes of a partition.
    yield from dict.fromkeys(output("sinfo", "-h", "-o", "%R", patience=patience).splitlines())


def read(name: str, sinfo: str, partitions: str = "", qos: str = "", whole_nodes: bool = False) -> Facts:
    """Return the facts from sinfo's lines (partition, time limit, nodes, CPUs, memory, GRES and job size),
    the lines of scontrol's partitions and the table of sacctmgr's QoS. With ``whole_nodes`` no node has two
    jobs."""
    queues: dict[str, QueueFacts] = {}
    gres: list[str] = []
    for line in sinfo.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 7:
            continue
        found = re.findall(r"((gpu|npu)(?::[A-Za-z]\w*)?):(\d+)", cells[5])
        devices = [one for one in found if one[1] == found[0][1]]  # GPUs and NPUs are never added up
        gres += [kind for kind, _, _ in devices]
        queue = _partition(cells)._replace(gpus=sum(count(number) or 0 for _, _, number in devices))
        queues[queue.name] = _greater(queues.get(queue.name, queue), queue)
    # If no type is named, Slurm allocates devices of any type.
    kind = gres[0] if len(set(gres)) == 1 else gres[0].partition(":")[0] if gres else ""
    limits = qos_limits(qos)
    binding = (
        {} if "OverPartQOS" in qos else limits
    )  # with it the QoS of a job replaces that of its partition
    limits_of_partitions = partition_limits(partitions, whole_nodes)
    listed = tuple(_limited(one, limits_of_partitions, binding) for one in queues.values())
    return Facts(name, listed, kind, tuple(limits.values()))


def _partition(cells: list[str]) -> QueueFacts:
    """Return the facts in a line of sinfo, but for its devices."""
    sizes = re.fullmatch(r"(\d+)(?:-(\d+|infinite))?", cells[6], re.ASCII)
    most = sizes[2] or sizes[1] if sizes else ""
    return QueueFacts(
        cells[0].rstrip("*"),
        cells[0].endswith("*"),
        least_nodes=count(sizes[1]) if sizes else None,
        most_nodes=count(most) or count(cells[2]),
        walltime=seconds(cells[1]),
        cores=count(cells[3].rstrip("+")),
        memory=count(cells[4].rstrip("+")),
    )


def _limited(
    queue: QueueFacts, limits_of_partitions: Mapping[str, QueueFacts], limits: Mapping[str, QueueFacts]
) -> QueueFacts:
    """Return a partition with what scontrol says of it, and with the limits of its own QoS."""
    own = limits_of_partitions.get(queue.name)
    if own is None:
        return queue
    queue = queue._replace(
        enabled=own.enabled,
        started=own.started,
        shared=own.shared,
        most_nodes=own.most_nodes or queue.most_nodes,
    )
    return within(queue, limits[own.name]) if own.name in limits else queue


def _greater(one: QueueFacts, other: QueueFacts) -> QueueFacts:
    """Return a queue with several kinds of nodes, with the greatest values of both."""
    return one._replace(
        gpus=max(one.gpus, other.gpus),
        cores=max(one.cores or 0, other.cores or 0),
        memory=max(one.memory or 0, other.memory or 0),
        most_nodes=max(one.most_nodes or 0, other.most_nodes or 0),
    )
