"""The partitions and nodes of Slurm, by commands that any user may run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.schedulers.calls import output
from jobgen.schedulers.cluster import Facts, QueueFacts
from jobgen.values import count, seconds


def facts() -> Facts:
    """Return the facts about this cluster.

    Raises:
        SchedulerError: Slurm does not answer.
    """
    name = re.search(r"(?m)^ClusterName\s*=\s*(\S+)", output("scontrol", "show", "config"))
    return read(name[1] if name else "cluster", output("sinfo", "--noheader", "-o", "%P|%l|%D|%c|%m|%G|%s"))


def queues(patience: float) -> Iterator[str]:
    """Yield the names of the partitions."""
    # sinfo prints a line for each state of the nodes of a partition.
    yield from dict.fromkeys(output("sinfo", "-h", "-o", "%R", patience=patience).splitlines())


def read(name: str, sinfo: str) -> Facts:
    """Return the facts from sinfo's lines: partition, time limit, nodes, CPUs, memory, GRES and job size."""
    queues: dict[str, QueueFacts] = {}
    gres: list[str] = []
    for line in sinfo.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 7:
            continue
        found = re.findall(r"((gpu|npu)(?::[A-Za-z]\w*)?):(\d+)", cells[5])
        devices = [one for one in found if one[1] == found[0][1]]  # GPUs and NPUs are never added up
        gres += [kind for kind, _, _ in devices]
        sizes = re.fullmatch(r"(\d+)(?:-(\d+|infinite))?", cells[6])
        most = sizes[2] or sizes[1] if sizes else ""
        queue = QueueFacts(
            cells[0].rstrip("*"),
            cells[0].endswith("*"),
            count(sizes[1]) if sizes else None,
            count(most) or count(cells[2]),
            seconds(cells[1]),
            sum(count(number) or 0 for _, _, number in devices),
            count(cells[3].rstrip("+")),
            count(cells[4].rstrip("+")),
        )
        queues[queue.name] = _greater(queues.get(queue.name, queue), queue)
    # If no type is named, Slurm allocates devices of any type.
    kind = gres[0] if len(set(gres)) == 1 else gres[0].partition(":")[0] if gres else ""
    return Facts(name, tuple(queues.values()), kind)


def _greater(one: QueueFacts, other: QueueFacts) -> QueueFacts:
    """Return a queue with several kinds of nodes, with the greatest values of both."""
    return one._replace(
        gpus=max(one.gpus, other.gpus),
        cores=max(one.cores or 0, other.cores or 0),
        memory=max(one.memory or 0, other.memory or 0),
        most_nodes=max(one.most_nodes or 0, other.most_nodes or 0),
    )
