"""Queries to a scheduler about its queues and nodes, with commands that any user may run."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterable, Mapping
from shutil import which
from typing import NamedTuple

from jobgen.errors import JobgenError
from jobgen.schedulers.pbspro import RESERVATION
from jobgen.values import seconds


class Facts(NamedTuple):
    """The facts about a cluster; ``gres`` is Slurm's name of the devices, such as gpu:a100."""

    name: str
    kind: str
    queues: tuple[QueueFacts, ...]
    gres: str = ""


class QueueFacts(NamedTuple):
    """A queue. A value is None if it is unknown; ``walltime`` in seconds, ``memory`` in MiB per node."""

    name: str
    default: bool = False
    least_nodes: int | None = None
    most_nodes: int | None = None
    walltime: int | None = None
    gpus: int = 0
    cores: int | None = None
    memory: int | None = None


class NodeFacts(NamedTuple):
    """The resources of a node; ``memory`` in MiB."""

    gpus: int = 0
    cores: int | None = None
    memory: int | None = None


def ask() -> Facts:
    """Return the facts from the scheduler on PATH.

    Raises:
        JobgenError: there is no scheduler, or it does not answer.
    """
    from jobgen.schedulers.detection import detect

    kind, _ = detect()
    if kind == "slurm":
        config = _run("scontrol", "show", "config")
        name = re.search(r"(?m)^ClusterName\s*=\s*(\S+)", config)
        nodes = "%P|%l|%D|%c|%m|%G|%s"
        return slurm(name[1] if name else "cluster", _run("sinfo", "--noheader", "-o", nodes))
    if kind in ("pbspro", "torque"):
        queues, nodes = _run("qstat", "-Q", "-f"), _run("pbsnodes", "-a")
        return pbs(socket.gethostname().split(".")[0], kind, queues, nodes)
    raise JobgenError(
        "site new: there is neither sbatch nor qsub on PATH; run it on a login node of the cluster"
    )


def _run(*command: str) -> str:
    if which(command[0]) is None:
        raise JobgenError(f"site new: there is no {command[0]} on PATH")
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise JobgenError(f"site new: {command[0]} cannot be run: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"status {done.returncode}"]
        raise JobgenError(f"site new: {' '.join(command)} failed: {said[-1]}")
    return done.stdout


def slurm(name: str, sinfo: str) -> Facts:
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
            int(sizes[1]) if sizes else None,
            int(most) if most.isdecimal() else int(cells[2]),
            seconds(cells[1]),
            sum(int(count) for _, _, count in devices),
            int(cells[3].rstrip("+")),
            int(cells[4].rstrip("+")),
        )
        queues[queue.name] = _greater(queues.get(queue.name, queue), queue)
    # If no type is named, Slurm allocates devices of any type.
    kind = gres[0] if len(set(gres)) == 1 else gres[0].partition(":")[0] if gres else ""
    return Facts(name, "slurm", tuple(queues.values()), kind)


def _greater(one: QueueFacts, other: QueueFacts) -> QueueFacts:
    """Return a queue with several kinds of nodes, with the greatest values of both."""
    return one._replace(
        gpus=max(one.gpus, other.gpus),
        cores=max(one.cores or 0, other.cores or 0),
        memory=max(one.memory or 0, other.memory or 0),
        most_nodes=max(one.most_nodes or 0, other.most_nodes or 0),
    )


def pbs(name: str, kind: str, qstat: str, pbsnodes: str) -> Facts:
    """Return the facts from ``qstat -Qf`` and ``pbsnodes -a``, of PBS Pro or Torque."""
    nodes = [node_facts(fields) for _, fields in records(pbsnodes, r"(\S+)")]
    node = NodeFacts(
        max((one.gpus for one in nodes), default=0),
        max((one.cores for one in nodes if one.cores), default=None),
        max((one.memory for one in nodes if one.memory), default=None),
    )
    queues = []
    for queue, fields in records(qstat, r"Queue: (\S+)"):
        open_ = fields.get("enabled") == fields.get("started") == "True"  # PBS leaves out false values
        if not open_ or re.fullmatch(RESERVATION, queue):
            continue
        time = fields.get("resources_max.walltime")
        least, most = (fields.get(f"resources_{end}.nodect", "") for end in ("min", "max"))
        queues.append(
            QueueFacts(
                queue,
                least_nodes=int(least) if least.isdecimal() else None,
                most_nodes=int(most) if most.isdecimal() else max(len(nodes), int(least or 0)) or None,
                walltime=seconds(time) if time else None,
                gpus=node.gpus,
                cores=node.cores,
                memory=node.memory,
            )
        )
    return Facts(name, kind, tuple(queues))


def records(text: str, head: str) -> Iterable[tuple[str, dict[str, str]]]:
    """Yield records: a line at the margin, and its ``key = value`` lines, which are indented."""
    name: str | None = None
    fields: dict[str, str] = {}
    for line in [*text.splitlines(), ""]:
        if not line.strip() or not line[0].isspace():
            if name is not None:
                yield name, fields
            start = re.fullmatch(head, line.strip())
            name, fields = (start[1] if start else None), {}
        elif " = " in line:
            key, _, value = line.strip().partition(" = ")
            fields[key] = value
    return


def node_facts(fields: Mapping[str, str]) -> NodeFacts:
    cores = fields.get("resources_available.ncpus", fields.get("np", ""))
    gpus = fields.get("resources_available.ngpus", fields.get("gpus", ""))
    memory = fields.get("resources_available.mem") or _status(fields.get("status", ""), "physmem")
    size = re.fullmatch(r"(\d+)(kb|mb|gb|tb)", memory)
    factor = {"kb": 1 / 1024, "mb": 1, "gb": 1024, "tb": 1024 * 1024}
    return NodeFacts(
        int(gpus) if gpus.isdecimal() else 0,
        int(cores) if cores.isdecimal() else None,
        int(int(size[1]) * factor[size[2]]) if size else None,
    )


def _status(text: str, key: str) -> str:
    """Return a value in Torque's ``status = a=1,b=2``."""
    found = re.search(rf"(?:^|,){key}=([^,]*)", text)
    return found[1] if found else ""
