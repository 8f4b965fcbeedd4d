"""The queues and nodes of PBS Pro and Torque, by commands that any user may run."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Mapping

from jobgen.schedulers.calls import output
from jobgen.schedulers.cluster import Facts, NodeFacts, QueueFacts
from jobgen.values import count, mebibytes, seconds

PROBES = {
    "queues": ("qstat", "-Q", "-f"),  # without -f, long names are truncated
    "server": ("qstat", "-B", "-f"),
    "pbsnodes": ("pbsnodes", "-a"),
}
QUEUE = r"Queue:\s+(\S+)"


def facts() -> Facts:
    """Return the facts about this cluster.

    Raises:
        SchedulerError: PBS does not answer.
    """
    return read(socket.gethostname().split(".")[0], output(*PROBES["queues"]), output(*PROBES["pbsnodes"]))


def queues(patience: float) -> Iterator[str]:
    """Yield the names of the queues."""
    yield from (name for name, _ in records(output(*PROBES["queues"], patience=patience), QUEUE))


def read(name: str, qstat: str, pbsnodes: str) -> Facts:
    """Return the facts from ``qstat -Qf`` and ``pbsnodes -a``."""
    nodes = [node_facts(fields) for _, fields in records(pbsnodes, r"(\S+)")]
    node = NodeFacts(
        max((one.gpus for one in nodes), default=0),
        max((one.cores for one in nodes if one.cores), default=None),
        max((one.memory for one in nodes if one.memory), default=None),
    )
    queues = []
    for queue, fields in records(qstat, QUEUE):
        open_ = fields.get("enabled") == fields.get("started") == "True"  # PBS leaves out false values
        if not open_:
            continue
        time = fields.get("resources_max.walltime")
        least, most = (fields.get(f"resources_{end}.nodect", "") for end in ("min", "max"))
        queues.append(
            QueueFacts(
                queue,
                least_nodes=count(least),
                most_nodes=count(most) or max(len(nodes), count(least) or 0) or None,
                walltime=seconds(time) if time else None,
                gpus=node.gpus,
                cores=node.cores,
                memory=node.memory,
            )
        )
    return Facts(name, tuple(queues))


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


def node_facts(fields: Mapping[str, str]) -> NodeFacts:
    cores = fields.get("resources_available.ncpus", fields.get("np", ""))
    gpus = fields.get("resources_available.ngpus", fields.get("gpus", ""))
    memory = fields.get("resources_available.mem") or _status(fields.get("status", ""), "physmem")
    return NodeFacts(
        count(gpus) or 0,
        count(cores),
        mebibytes(memory, "b"),
    )


def _status(text: str, key: str) -> str:
    """Return a value in Torque's ``status = a=1,b=2``."""
    found = re.search(rf"(?:^|,){key}=([^,]*)", text)
    return found[1] if found else ""
