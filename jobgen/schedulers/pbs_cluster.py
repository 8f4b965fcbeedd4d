"""The queues and nodes of PBS Pro and Torque, by commands that any user may run."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Mapping

from jobgen.schedulers.calls import output
from jobgen.schedulers.cluster import Facts, NodeFacts, QueueFacts
from jobgen.values.parsers import count, mebibytes, seconds

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
    answers = {name: output(*command) for name, command in PROBES.items()}
    name = socket.gethostname().split(".")[0]
    found = read(name, answers["queues"], answers["pbsnodes"], answers["server"])
    return found._replace(commands="qstat and pbsnodes")


def queues(patience: float) -> Iterator[str]:
    """Yield the names of the queues."""
    yield from (name for name, _ in records(output(*PROBES["queues"], patience=patience), QUEUE))


def read(name: str, qstat: str, pbsnodes: str, server: str = "") -> Facts:
    """Return the facts from ``qstat -Qf``, ``pbsnodes -a`` and ``qstat -Bf``."""
    listed = [fields for _, fields in records(pbsnodes, r"(\S+)")]
    nodes = [node_facts(fields) for fields in listed]
    sharing = [fields["sharing"] for fields in listed if "sharing" in fields]
    shape = QueueFacts(
        "",
        most_nodes=len(nodes) or None,
        gpus=max((one.gpus for one in nodes), default=0),
        cores=max((one.cores for one in nodes if one.cores), default=None),
        memory=max((one.memory for one in nodes if one.memory), default=None),
        shared=False if sharing and all("excl" in one for one in sharing) else None,
    )
    common = next((fields for _, fields in records(server, r"Server: (\S+)")), {})
    queues = dict(records(qstat, QUEUE))
    facts = (_queue(queue, fields, common, shape) for queue, fields in queues.items())
    return Facts(name, tuple(_routed(one, queues) for one in facts))


def _queue(name: str, fields: Mapping[str, str], server: Mapping[str, str], shape: QueueFacts) -> QueueFacts:
    """Return a queue with nodes of this shape; limits that it does not state are those of the server."""

    def limit(key: str) -> str:
        return fields.get(key) or server.get(key, "")

    least, most = (count(limit(f"resources_{end}.nodect")) for end in ("min", "max"))
    routes = fields.get("route_destinations", "")
    there = None if routes else max(shape.most_nodes or 0, least or 0) or None
    time = limit("resources_max.walltime")
    return shape._replace(
        name=name,
        least_nodes=least,
        most_nodes=most or there,
        walltime=seconds(time) if time else None,
        # PBS leaves out false values.
        enabled=fields.get("enabled") == "True" and fields.get("from_route_only") != "True",
        started=fields.get("started") == "True",
        routes_to=tuple(one.partition("@")[0].strip() for one in routes.split(",") if one.strip()),
        max_jobs=_of_user(fields.get("max_run", "")) or count(fields.get("max_user_run", "")),
        max_gpus=_of_user(fields.get("max_run_res.ngpus", "")),
    )


def _of_user(text: str) -> int | None:
    """Return the limit of any user in ``[u:PBS_GENERIC=2],[u:alice=5]``."""
    found = re.search(r"\[u:PBS_GENERIC=(\d{1,9})\]", text, re.ASCII)
    return count(found[1]) if found else None


def _routed(queue: QueueFacts, queues: Mapping[str, Mapping[str, str]]) -> QueueFacts:
    """Return a routing queue with the routes that are enabled; with none if one is on another server."""
    if any(route not in queues for route in queue.routes_to):
        return queue._replace(routes_to=())
    routes = (route for route in queue.routes_to if queues[route].get("enabled") == "True")
    return queue._replace(routes_to=tuple(dict.fromkeys(routes)))


def records(text: str, head: str) -> Iterable[tuple[str, dict[str, str]]]:
    """Yield records: a line at the margin, and its ``key = value`` lines, which are indented; a line that
    begins with a tab continues the one before."""
    name: str | None = None
    fields: dict[str, str] = {}
    for line in [*text.replace("\n\t", "").splitlines(), ""]:
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
