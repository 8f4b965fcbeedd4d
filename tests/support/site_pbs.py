"""The queues and resources of a real OpenPBS from a site file, as commands of qmgr.

The queues take jobs and start none. Where the wall time depends on the nodes, a queue routes to one for each range
of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobgen.sites.limits import ranges
from jobgen.sites.site_file import Site
from jobgen.values import parsers

TAKEN = ("workq",)  # by the jobs of other tests
_BUILT_IN = (
    "host",
    "mem",
    "mpiprocs",
    "ncpus",
    "ngpus",
    "nodes",
    "ompthreads",
    "place",
    "select",
    "vnode",
    "walltime",
)


class Limits(NamedTuple):
    """The limits of an execution queue; wall times in seconds, memory in MiB, of all nodes together."""

    chunks: tuple[int, int] | None
    walltime: int | None
    totals: tuple[tuple[str, int | str], ...] = ()
    gpus_of_a_user: int | None = None


def called(name: str) -> str:
    """Return the name of a queue in the PBS of the tests."""
    return f"site-{name}" if name in TAKEN else name


def chunks_of_a_node(site: Site, name: str) -> int:
    """Return the chunks that a script requests for each node: 0 if it requests totals."""
    text = "\n".join(site.request(name))
    if "select=" not in text:
        return 0
    return 1 if "select={nodes}" in text else site.node(name).gpus or 1


def resources(lines: Iterable[str]) -> dict[str, str]:
    """Return the resources that directives request and PBS does not have by itself, with type and flags."""
    found = {}
    for line in lines:
        for name, value in re.findall(r"([A-Za-z_]\w*)(?:=([^:,+ ]+))?", line.removeprefix("-l ")):
            chunk = "select=" in line
            if (
                line.startswith("-l ")
                and name not in _BUILT_IN
                and (value or not chunk)
                and name not in found
            ):
                kind = (
                    "long"
                    if value.isdigit()
                    else "size"
                    if re.fullmatch(r"\d+[kmgt]b", value.lower())
                    else "string"
                )
                found[name] = f"type={kind if value else 'boolean'}" + (",flag=h" if chunk else "")
            if not chunk:
                break
    return found


def limits(site: Site, name: str) -> dict[str, Limits]:
    """Return the execution queues of a queue with their limits: itself, or one for each range of nodes."""
    queue, spans = site.queues[name], ranges(site, name)
    whole = spans and (spans[0][0], spans[-1][1])
    if not queue.walltime_by_nodes:
        time = parsers.walltime(queue.walltime) if queue.walltime else None
        return {called(name): _limits(site, name, whole or None, time)}
    found, least = {}, whole[0] if whole else 1
    for at, (most, text) in enumerate(queue.walltime_by_nodes):
        if most >= least:
            found[f"{name}-{at}"[-15:]] = _limits(site, name, (least, most), parsers.walltime(text))
            least = most + 1
    return found


def _limits(site: Site, name: str, nodes: tuple[int, int] | None, time: int | None) -> Limits:
    chunks, node, queue = chunks_of_a_node(site, name), site.node(name), site.queues[name]
    totals = []
    if nodes:
        totals += [("ncpus", node.cores * nodes[1])] if node.cores else []
        totals += [("ngpus", node.gpus * nodes[1])] if node.gpus is not None else []
        totals += [("mem", f"{parsers.memory(node.memory) * nodes[1]}mb")] if node.memory else []
    counts = (nodes[0] if chunks == 1 else 1, nodes[1] * chunks) if nodes and chunks else None
    return Limits(counts, time, tuple(totals), queue.max_gpus)


def commands(site: Site) -> Iterator[str]:
    """Yield the commands that make the queues of a site, execution queues first."""
    routed = {one for queue in site.queues.values() for one in queue.routes_to}
    routes = {}
    for name, queue in site.queues.items():
        if queue.routes_to:
            routes[name] = [called(one) for one in queue.routes_to]
            continue
        parts = limits(site, name)
        if list(parts) != [called(name)]:
            routes[name] = list(parts)
        for part, limit in parts.items():
            only = part != called(name) or (name in routed and not queue.enabled)
            takes = queue.enabled or name in routed
            yield from _execution(part, limit, takes=takes, routed_only=only)
    for name, destinations in routes.items():
        yield f"create queue {called(name)} queue_type=route"
        yield f'set queue {called(name)} route_destinations="{",".join(destinations)}"'
        yield f"set queue {called(name)} enabled={site.queues[name].enabled},started=true"


def _execution(name: str, limit: Limits, *, takes: bool, routed_only: bool) -> Iterator[str]:
    yield f"create queue {name} queue_type=execution,enabled={takes},started=false"
    if routed_only:
        yield f"set queue {name} from_route_only=true"
    for key, value in limit.totals:
        yield f"set queue {name} resources_max.{key}={value}"
    if limit.chunks:
        yield f"set queue {name} resources_min.nodect={limit.chunks[0]}"
        yield f"set queue {name} resources_max.nodect={limit.chunks[1]}"
    if limit.walltime:
        yield f"set queue {name} resources_max.walltime={limit.walltime}"
    if limit.gpus_of_a_user:
        yield f'set queue {name} max_queued_res.ngpus="[u:PBS_GENERIC={limit.gpus_of_a_user}]"'


def names(site: Site) -> list[str]:
    """Return the queues that the commands make, those that route first."""
    made = [line.split()[2] for line in commands(site) if line.startswith("create queue")]
    return made[::-1]
