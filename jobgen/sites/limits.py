"""Checks of a job against a site: the limits of its queue, and what the site requires of every job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jobgen import values
from jobgen.errors import JobgenError, counted, nearest, one_of
from jobgen.schedulers.base import clock, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobgen.sites.site_file import Site
    from jobgen.spec import JobSpec


class Request(NamedTuple):
    """The numbers of a job that have limits; ``mem`` in MiB per node, ``walltime`` in seconds."""

    nodes: int
    walltime: int
    gpus_per_node: int
    cpus_per_node: int
    mem: int | None


class Excess(NamedTuple):
    """A number that is too large or too small: the option, and the limit in words."""

    key: str
    limit: str


def check(spec: JobSpec, request: Request, lines: tuple[str, ...]) -> None:
    """Refuse what the site would refuse; ``lines`` are the directives of the site and of the user.

    Raises:
        JobgenError: the site has no such queue, a limit is exceeded, or a mandatory value is missing.
    """
    site = spec.site
    assert site is not None
    own = site.values.get("accelerator")
    if own and spec.accelerator not in (None, own, "cpu"):
        raise spec.refuse("accelerator", f"{site.title} has {own}; remove it")
    if spec.qos and site.file.rules.queue == "--qos":
        raise spec.refuse("qos", f"a queue of {site.title} is a QoS: use --queue {spec.qos}")
    for key, reason in site.file.lacks.items():
        if spec.origin(key) not in ("default", site.said):
            raise spec.refuse(key, f"{site.title}: {reason}")
    if site.queues and not spec.reservation and not site.scheduler.is_reservation(spec.queue):
        _check_queue(spec, site, request)
    queue = site.queues.get(spec.queue) if spec.queue else None
    demanded = {**site.file.mandatory, **(queue.mandatory if queue else {})}
    for key, example in demanded.items():
        _check_there(spec, site, key, example, lines)


def _check_queue(spec: JobSpec, site: Site, request: Request) -> None:
    queue = spec.queue or min(site.queues, key=lambda one: len([*excesses(site, one, request)]))
    if queue not in site.queues:
        raise spec.refuse(
            "queue",
            f"{site.title} has no such queue: use {one_of(site.queues)}{nearest(queue, site.queues)}",
        )
    for key, limit in excesses(site, queue, request):
        if key == "cpus_per_rank" and spec.cpus_per_node is not None:
            key = "cpus_per_node"
        if key == "nodes" and spec.spare_nodes:
            limit += f", and {spec.nodes} with {spec.spare_nodes} spare nodes are {request.nodes}"
        takers = [one for one in site.queues if not any(excesses(site, one, request))]
        would = f"use --queue {one_of(takers)}" if takers else "no queue accepts it"
        raise spec.refuse(key, f"queue {queue} of {site.title} takes {limit}; {would}")


def excesses(site: Site, name: str, request: Request) -> Iterator[Excess]:
    """Yield the limits of a queue that a request exceeds."""
    queue, node = site.queues[name], site.node(name)
    if queue.nodes is not None and not queue.nodes[0] <= request.nodes <= queue.nodes[1]:
        least, most = queue.nodes
        yield Excess("nodes", f"{least} to {most} nodes" if least != most else counted(most, "node"))
    limit = longest(site, name, request.nodes)
    if limit is not None and request.walltime > limit:
        of = f" of {counted(request.nodes, 'node')}" if queue.walltime_by_nodes else ""
        yield Excess("walltime", f"at most {clock(limit)} for a job{of}")
    if node.gpus is not None and request.gpus_per_node > node.gpus:
        yield Excess("gpus_per_node", f"at most {counted(node.gpus, 'accelerator')} a node")
    elif node.whole_nodes and request.nodes > 1 and 0 < request.gpus_per_node != node.gpus:
        yield Excess("gpus_per_node", f"jobs of several nodes only with all {node.gpus} accelerators of each")
    cores = node.cores
    per_gpu = ""
    if node.cores_fixed and node.cores_per_gpu is not None and request.gpus_per_node:
        cores = node.cores_per_gpu * request.gpus_per_node
        per_gpu = f", {node.cores_per_gpu} for each accelerator"
    if cores is not None and request.cpus_per_node > cores:
        yield Excess("cpus_per_rank", f"at most {cores} cores a node{per_gpu}")
    if node.memory is not None and request.mem is not None and request.mem > values.memory(node.memory):
        yield Excess("mem", f"at most {size(values.memory(node.memory)).upper()} a node")


def longest(site: Site, name: str | None, nodes: int) -> int | None:
    """Return the wall time in seconds that a queue allows for this number of nodes; None without a limit."""
    queue = site.queues.get(name) if name else None
    if queue is None:
        return None
    for most, text in queue.walltime_by_nodes:
        if nodes <= most:
            return values.walltime(text)
    return values.walltime(queue.walltime) if queue.walltime else None


def _check_there(spec: JobSpec, site: Site, key: str, example: str, lines: tuple[str, ...]) -> None:
    """Check that a mandatory key is given: that of an option, or the beginning of a directive."""
    if key.startswith("-l "):
        there = any(re.match(rf"-l *(.*[, ])?{re.escape(key[3:])}=", line) for line in lines)
        how = f"--directive '{key}={example}'"
    elif key.startswith("-"):
        there, how = any(line.startswith(key) for line in lines), f"--directive '{key}={example}'"
    else:
        value = getattr(spec, key)
        there, how = value not in (None, ()), f"--{key.replace('_', '-')} {example}"
    if not there:
        what = key.removeprefix("-l ").lstrip("-")
        raise JobgenError(f"{site.title} requires {what}: add {how}, or set it in the job file")
