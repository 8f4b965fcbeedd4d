"""Checks of a job's request on PBS: its queue, the limits of the queue, and the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jobgen.doctor.verdict import OK, PROBLEM, WARNING, Case, Verdict
from jobgen.errors import nearest, one_of, shown
from jobgen.schedulers.base import clock
from jobgen.schedulers.cluster import NodeKind, number_of
from jobgen.schedulers.pbs_cluster import QUEUE, has, hosts_of, records
from jobgen.values.parsers import seconds

_NEVER = "the job would wait in the queue forever"


def queue(case: Case) -> Iterator[Verdict]:
    """Check the queue of the job, or the default queue: PBS refuses a job that exceeds its limits."""
    output, server = case.text("queues"), _server(case)
    queues = dict(records(output, QUEUE))
    name = case.plan.queue or case.plan.spec.reservation or server.get("default_queue")
    if not queues or not name:
        return
    name = name.partition(".")[0] if name not in queues else name
    there, command = queues.get(name), case.plan.scheduler.command
    if there is None:
        remedy = f"use {one_of(queues)}"
        found = f"there is no {shown(name)}{nearest(name, queues)}"
        yield Verdict("queue", PROBLEM, found, f"{command} refuses it", remedy)
        return
    limits = {
        key: there.get(key) or server.get(key, "")
        for key in ("resources_max.walltime", "resources_max.nodect")
    }
    faults = [*_shut(name, there, command), *_beyond(case, name, limits)]
    yield from faults
    if not faults:
        resources = case.plan.resources
        time = clock(resources.walltime) if resources.walltime else "its own time"
        yield Verdict("queue", OK, f"{name} takes {resources.allocated} nodes for {time}")


def _server(case: Case) -> Mapping[str, str]:
    return next((fields for _, fields in records(case.text("server"), r"Server: (\S+)")), {})


def _shut(name: str, there: Mapping[str, str], command: str) -> Iterator[Verdict]:
    if there.get("enabled") != "True":
        why = f"{command} refuses the job"
        yield Verdict("queue", PROBLEM, f"{name} is not enabled", why, "use another --queue")
    elif there.get("started") != "True":
        remedy = "use another --queue, or wait until it is started"
        yield Verdict("queue", WARNING, f"{name} is not started", "jobs wait there and do not start", remedy)


def _beyond(case: Case, name: str, limits: Mapping[str, str]) -> Iterator[Verdict]:
    time, nodes = limits["resources_max.walltime"], limits["resources_max.nodect"]
    most = seconds(time) if time else None
    resources = case.plan.resources
    if most is not None and resources.walltime and resources.walltime > most:
        why = f"the job requests {clock(resources.walltime)}: {case.plan.scheduler.command} refuses it"
        yield Verdict("queue", PROBLEM, f"{name} takes at most {time}", why, f"use --walltime {time} or less")
    if nodes.isdecimal() and resources.allocated > int(nodes):
        why = f"the job requests {resources.allocated}"
        found = f"{name} takes at most {nodes} nodes"
        yield Verdict("queue", PROBLEM, found, why, f"use --nodes {nodes} or less")


def nodes(case: Case) -> Iterator[Verdict]:
    """Check whether PBS has as many nodes of that size as requested; qsub accepts the job anyway."""
    known = [host.kind for host in hosts_of(case.text("pbsnodes")).values()]
    if not known:
        return
    nodes, title = case.plan.resources.allocated, case.plan.scheduler.title
    if nodes > len(known):
        remedy = f"use --nodes {len(known)} or less"
        found = f"{title} has {len(known)} nodes, and the job requests {nodes}"
        yield Verdict("nodes", PROBLEM, found, _NEVER, remedy)
        return
    has_devices = any(map(number_of, known))  # otherwise the site uses another name for devices
    for chunk in case.plan.resources.chunks:
        resources = re.search(r"=(\d+)$", chunk.devices)
        devices = int(resources[1]) if resources and has_devices else 0
        need = NodeKind(chunk.nodes, chunk.cpus, devices=(("", devices),))
        fit = sum(has(one, need) for one in known)
        if chunk.nodes > fit:
            each = f"{chunk.cpus} cores" + (f" and {devices} devices" if devices else "")
            found = (
                f"{fit} of the {len(known)} nodes of {title} have {each}, and the job requests {chunk.nodes}"
            )
            yield Verdict("nodes", PROBLEM, found, _NEVER, "request less of each node, or fewer nodes")
            return
    yield Verdict("nodes", OK, f"{title} has {len(known)}")
