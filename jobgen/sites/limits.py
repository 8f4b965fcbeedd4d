"""The limits of a queue, and the numbers of a job that exceed them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import counted, one_of
from jobgen.schedulers.base import clock, size
from jobgen.sites.node_kinds import description, known_constraint, satisfies
from jobgen.values import parsers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobgen.sites.site_file import NodeTable, Queue, Site


# The factors of nodes without devices of the type that a job requests, and of those without any.
_OTHER_TYPE = 100.0
_NO_DEVICES = 10_000.0


class JobSize(NamedTuple):
    """The numbers of a job that have limits; ``mem`` in MiB per node, ``walltime`` in seconds,
    or None for that of the queue; ``kind`` and ``shards`` are of its devices."""

    nodes: int
    walltime: int | None
    gpus_per_node: int
    cpus_per_node: int
    mem: int | None
    kind: str = ""
    shards: int = 0
    constraint: str | None = None
    account: str | None = None
    qos: str | None = None


class Excess(NamedTuple):
    """A number outside of a limit: the key of the option, the limit in words, the change that the queue
    accepts, and the factor between number and limit."""

    key: str
    limit: str
    change: str
    times: float


def excesses(site: Site, name: str, request: JobSize, routed: bool = False) -> list[Excess]:
    """Return the limits of a queue that a request exceeds. A routing queue has its own limits, and those of
    the route with the fewest that the request exceeds."""
    own = [*_of_queue(site, name, request, routed), *_of_nodes(site, name, request)]
    routes = [excesses(site, route, request, True) for route in site.queues[name].routes_to]
    if not routes or not all(routes):
        return own
    nearest = min(
        routes, key=lambda one: (*distance(one)[:1], "nodes" in {each.key for each in one}, len(one))
    )
    known = {one.key for one in own}
    whole = ranges(site, name)
    return own + [
        _nodes_excess(whole, request.nodes) if one.key == "nodes" and whole else one
        for one in nearest
        if one.key not in known
    ]


def distance(limits: Sequence[Excess]) -> tuple[float, int, float]:
    """Return how far a job is from limits that it exceeds, to compare: first whether there are devices, and
    of its type."""
    missing = max((one.times for one in limits if one.times in (_OTHER_TYPE, _NO_DEVICES)), default=0.0)
    return missing, len(limits), prod(one.times for one in limits)


def accepts(site: Site, name: str, request: JobSize) -> bool:
    """Return whether a queue accepts a job that names it."""
    return site.queues[name].enabled and not excesses(site, name, request)


def _nodes_excess(spans: list[tuple[int, int]], nodes: int) -> Excess:
    nearest = min((end for span in spans for end in span), key=lambda end: abs(end - nodes))
    return Excess("nodes", _nodes(spans), f"--nodes {nearest}", _times(nodes, nearest))


def _times(number: int, limit: int) -> float:
    return max(number, limit) / max(min(number, limit), 1)


def _of_queue(site: Site, name: str, request: JobSize, routed: bool) -> Iterator[Excess]:
    queue = site.queues[name]
    if queue.nodes is not None and not queue.nodes[0] <= request.nodes <= queue.nodes[1]:
        yield _nodes_excess([queue.nodes], request.nodes)
    limit = _time(site, name, request.nodes)
    if limit is not None and request.walltime and request.walltime > limit:
        of = f" of {counted(request.nodes, 'node')}" if queue.walltime_by_nodes or routed else ""
        times = _times(request.walltime, limit)
        yield Excess("walltime", f"at most {clock(limit)} for a job{of}", f"--walltime {clock(limit)}", times)
    yield from _totals(queue, request)
    for name, value, names in (("account", request.account, queue.accounts), ("qos", request.qos, queue.qos)):
        if value is not None and names and value not in names:
            yield Excess(name, f"the {name} {one_of(names)}", f"--{name} {names[0]}", 2)


def _totals(queue: Queue, request: JobSize) -> Iterator[Excess]:
    """Yield the limits of devices and cores of all nodes together."""
    total, cores = request.nodes * request.gpus_per_node, request.nodes * request.cpus_per_node
    if queue.min_gpus is not None and total < queue.min_gpus:
        least = counted(queue.min_gpus, "accelerator")
        text = f"at least {least} a job, and this one has {total}"
        yield Excess("gpus_per_node", text, f"{least} in all", _times(total, queue.min_gpus))
    if queue.min_cores is not None and cores < queue.min_cores:
        text = f"at least {queue.min_cores} cores a job, and this one has {cores}"
        yield Excess("cpus_per_rank", text, f"{queue.min_cores} cores in all", _times(cores, queue.min_cores))
    if queue.max_cores is not None and cores > queue.max_cores:
        text = f"at most {queue.max_cores} cores a job, and this one has {cores}"
        key = "nodes" if request.nodes > 1 else "cpus_per_rank"
        yield Excess(key, text, f"{queue.max_cores} cores in all", _times(cores, queue.max_cores))
    if queue.max_gpus is not None and total > queue.max_gpus:
        key = "nodes" if request.nodes > 1 else "gpus_per_node"
        most_gpus = counted(queue.max_gpus, "accelerator")
        limit_text = f"at most {most_gpus} of a user at a time, and the job has {total}"
        yield Excess(key, limit_text, f"{most_gpus} in all", _times(total, queue.max_gpus))
    gpus = request.gpus_per_node
    if queue.gpu_counts and gpus not in queue.gpu_counts:
        nearest = min(queue.gpu_counts, key=lambda one: abs(one - gpus))
        limit_text = f"{one_of(map(str, queue.gpu_counts))} accelerators a node"
        yield Excess("gpus_per_node", limit_text, f"--gpus-per-node {nearest}", _times(gpus, nearest))


def _of_nodes(site: Site, name: str, request: JobSize) -> list[Excess]:
    """Return the limits of the nodes of a queue that a job exceeds: those of the nearest kind of nodes, with
    all kinds in the text."""
    kinds = site.kinds(name)
    request = request._replace(constraint=known_constraint(site, name, request.constraint))
    found = {kind: [*_of_node(table, request)] for kind, (_, table) in kinds.items()}
    fit = [kind for kind, limits in found.items() if not limits]
    if fit and None not in (numbers := [kinds[kind][0] for kind in fit]):
        there = sum(filter(None, numbers))
        if request.nodes <= there:
            return []
        tables = "; ".join(description(*kinds[kind]) for kind in fit)
        return [Excess("nodes", f"at most {tables}", f"--nodes {there}", _times(request.nodes, there))]
    if fit:
        return []
    nearest = min(found.values(), key=distance)
    if len(kinds) == 1:
        return nearest
    has = "; ".join(description(*one) for one in kinds.values())
    return [nearest[0]._replace(limit=f"{nearest[0].limit} (it has {has})"), *nearest[1:]]


def _of_node(node: NodeTable, request: JobSize) -> Iterator[Excess]:
    gpus = request.gpus_per_node
    if not satisfies(node, request.constraint):
        there = ", ".join(node.features or ()) or "none"
        text = f"no job with the constraint {request.constraint} on nodes of this kind"
        yield Excess("constraint", text, f"a constraint among {there}", 2)
    if gpus and node.gpus == 0:
        yield Excess("gpus_per_node", "no jobs with accelerators", "--gpus-per-node 0", _NO_DEVICES)
        return
    number = request.shards or gpus
    if request.kind and node.devices is not None and number > node.devices.get(request.kind, 0):
        most = node.devices.get(request.kind, 0)
        yield Excess(
            "gpus_per_node",
            f"at most {most} x {request.kind} a node" if most else f"no devices of the type {request.kind}",
            one_of([f"--gpus-per-node {kind}:{count}" for kind, count in node.devices.items()] or ["none"]),
            _times(number, most) if most else _OTHER_TYPE,
        )
        return
    too_many = node.gpus is not None and gpus > node.gpus
    if node.gpus is not None and (
        too_many or (node.whole_nodes and request.nodes > 1 and 0 < gpus < node.gpus)
    ):
        limit = f"at most {counted(node.gpus, 'accelerator')} a node"
        if not too_many:
            limit = f"jobs of several nodes only with all {node.gpus} accelerators of each"
        yield Excess("gpus_per_node", limit, f"--gpus-per-node {node.gpus}", _times(gpus, node.gpus))
    cores = node.cores
    per_gpu = ""
    if node.cores_fixed and node.cores_per_gpu is not None and request.gpus_per_node:
        cores = node.cores_per_gpu * request.gpus_per_node
        per_gpu = f", {node.cores_per_gpu} for each accelerator"
    if cores is not None and request.cpus_per_node > cores and not too_many:  # the cores come with the GPUs
        times = _times(request.cpus_per_node, cores)
        yield Excess(
            "cpus_per_rank", f"at most {cores} cores a node{per_gpu}", f"{cores} cores a node", times
        )
    if node.memory is not None and request.mem is not None and request.mem > parsers.memory(node.memory):
        memory = size(parsers.memory(node.memory)).upper()
        times = _times(request.mem, parsers.memory(node.memory))
        yield Excess("mem", f"at most {memory} a node", f"--mem {memory}", times)


def longest(site: Site, name: str | None, nodes: int) -> int | None:
    """Return the wall time in seconds that a queue allows for this number of nodes; None without a limit."""
    queue = site.queues.get(name) if name else None
    if name is None or queue is None:
        return None
    own = _time(site, name, nodes)
    routes = [longest(site, one, nodes) for one in queue.routes_to if _has_room(site, one, nodes)]
    times = [time for time in routes if time is not None]
    if not routes or len(times) < len(routes):
        return own
    return max(times) if own is None else min(own, max(times))


def _has_room(site: Site, name: str, nodes: int) -> bool:
    found = ranges(site, name)
    return not found or any(least <= nodes <= most for least, most in found)


def _time(site: Site, name: str, nodes: int) -> int | None:
    """Return the wall time of a queue itself, without that of its routes."""
    queue = site.queues[name]
    for most, text in queue.walltime_by_nodes:
        if nodes <= most:
            return parsers.walltime(text)
    return parsers.walltime(queue.walltime) if queue.walltime else None


def ranges(site: Site, name: str) -> list[tuple[int, int]]:
    """Return the numbers of nodes that a queue accepts, as ranges; empty without a limit."""
    queue = site.queues[name]
    if queue.nodes is not None:
        return [queue.nodes]
    routes = [ranges(site, route) for route in queue.routes_to]
    joined: list[tuple[int, int]] = []
    for least, most in sorted(one for route in routes for one in route) if all(routes) else ():
        if joined and least <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(most, joined[-1][1]))
        else:
            joined.append((least, most))
    return joined


def _nodes(spans: list[tuple[int, int]]) -> str:
    """Return ``1 to 2 or 10 to 496 nodes``."""
    words = [f"{least} to {most}" if least != most else str(most) for least, most in spans]
    return f"{one_of(words)} {'node' if words == ['1'] else 'nodes'}"


def accepted_range(site: Site, name: str, key: str, nodes: int) -> str:
    """Return the range of ``nodes`` or ``walltime`` that a queue accepts, in words; empty without a limit."""
    spans, time = ranges(site, name), longest(site, name, nodes)
    if key == "nodes" and spans:
        return _nodes(spans)
    return f"up to {clock(time)}" if key == "walltime" and time is not None else ""
