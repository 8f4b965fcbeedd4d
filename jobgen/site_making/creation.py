"""Creation of a site file from the facts of a scheduler."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from jobgen.launch.accelerators import of_devices
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.cluster import Facts, QueueFacts
from jobgen.schedulers.table import named
from jobgen.schedulers.versions import is_version
from jobgen.site_making.queue_tables import queue_table
from jobgen.sites.display import key, toml
from jobgen.sites.value_checks import valid_name
from jobgen.values.devices import SHARD, is_mig

_HEAD = """\
# A site file of jobgen, read from this machine: the queues, nodes and limits that its scheduler lists.
# jobgen site refresh NAME asks again, jobgen site check NAME finds mistakes.
title = {title}
scheduler = {scheduler}
{version}
# Directives of every job.
# directives = ["..."]

# The sources of the facts, one table each; the confidence is machine, manual, staff, users or unknown.
# A page of the manual also has: page = "https://..."
[[source]]
facts = ["queues", "node", "login"]
confidence = "machine"
date = {today}
what = {what}

# The options that every job must have, each with an example.
# [mandatory]
# account = "PROJECT"

# The signs of this cluster, for jobgen site detect.
[detect]
{detect}

# The rules that differ from the scheduler's manual.
[rules]
{rules}
# Defaults of options, in the tables of a job file.
[job]
{job}
[resources]
accelerator = {accelerator}

[launch]
launcher = {launcher}
{network}
[environment]
{modules}
"""


class LoginNode(NamedTuple):
    """The facts about the host itself: its name, the name of the cluster in its configuration, its modules by
    what they are for, and its interfaces."""

    name: str
    cluster: str = ""
    modules: Mapping[str, tuple[str, ...]] = {}
    interfaces: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    user: str = ""


def without_reservations(scheduler: Scheduler, facts: Facts) -> Facts:
    """Return the facts without the queues that are reservations, or whose names no option can have."""
    queues = {one.name: one for one in facts.queues if not scheduler.is_reservation(one.name)}
    return facts._replace(queues=tuple(one for name, one in queues.items() if valid_name(name)))


def taking_jobs(facts: Facts) -> Facts:
    """Return the facts with the queues that take jobs and start them, and their routes."""
    there = {one.name: one for one in facts.queues if one.started}
    enabled = {name for name, one in there.items() if one.enabled}
    while more := {route for name in enabled for route in there[name].routes_to if route in there} - enabled:
        enabled |= more
    kept = [one for name, one in there.items() if name in enabled]
    routes = {one.name: tuple(name for name in one.routes_to if name in enabled) for one in kept}
    return facts._replace(queues=tuple(one._replace(routes_to=routes[one.name]) for one in kept))


def site_file(
    scheduler: Scheduler,
    facts: Facts,
    host: LoginNode,
    shared: bool = False,
    defaults: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the text of the file. A ``shared`` file is for all users, others for the user who makes it.
    ``defaults`` are further lines of its tables."""
    today = datetime.date.today()
    reasons = {} if shared else {one.name: why for one in facts.queues if (why := closed(one, facts, host))}
    open_queues = [one for one in facts.queues if one.enabled and one.name not in reasons]
    chosen, on_cpus = _default(open_queues, facts), _default_on_cpus(open_queues, facts)
    text = _HEAD.format(
        title=toml(facts.name),
        scheduler=toml(scheduler.command_name),
        version=f"scheduler_version = {toml(facts.version)}\n" if is_version(facts.version) else "",
        today=today.isoformat(),
        what=toml(f"{facts.commands or 'the scheduler'} on {host.name}"),
        detect=_detect(facts, host),
        rules=_lines(_rules(facts, chosen, on_cpus)),
        job=_lines(_job(scheduler, chosen)) + defaults.get("job", ""),
        accelerator=toml(_accelerator(facts)),
        launcher=toml(scheduler.default_launcher),
        network=_network(host),
        modules=_modules(host) + f"\n{defaults.get('environment', '')}".rstrip(),
    )
    for one in facts.queues:
        why = reasons.get(one.name, "")
        text += queue_table(one, one.enabled and not why, f"{today}: {why}" if why else "")
        if not shared and (needs := _lines(_needs(one, facts))):
            text += f"\n[queues.{key(one.name)}.options]\n{needs}"
    return text


def _lines(pairs: Iterable[tuple[str, object]]) -> str:
    return "".join(f"{name} = {toml(value)}\n" for name, value in pairs)


def closed(queue: QueueFacts, facts: Facts, host: LoginNode) -> str:
    """Return why a queue takes no jobs of this user; empty if it does, or if that is unknown."""
    for what, allowed, own in (
        ("groups", queue.groups, host.groups),
        ("users", queue.users, (host.user,) if host.user else ()),
        ("accounts", queue.accounts, facts.accounts),
        ("QoS", queue.qos, facts.user_qos),
    ):
        if allowed and own and not set(allowed) & set(own):
            return f"it takes only the {what} {', '.join(allowed)}, and you have {', '.join(own)}"
    for what, refused, own in (
        ("accounts", queue.not_accounts, facts.accounts),
        ("QoS", queue.not_qos, facts.user_qos),
    ):
        if own and set(own) <= set(refused):
            return f"it refuses the {what} {', '.join(refused)}, and you have {', '.join(own)}"
    return ""


def _needs(queue: QueueFacts, facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the account and the QoS that a job of this user must name, because the default is not allowed."""
    for name, allowed, own in (
        ("account", queue.accounts, facts.accounts),
        ("qos", queue.qos, facts.user_qos),
    ):
        if allowed and own and own[0] not in allowed and (able := [one for one in own if one in allowed]):
            yield name, able[0]


def _default(queues: list[QueueFacts], facts: Facts) -> QueueFacts | None:
    """Return the default queue: one with devices if the cluster has some, whole ones and not those of a queue
    for CPUs if possible, and the scheduler's own if possible."""
    having = [one for one in queues if _devices(one, facts)] or queues
    whole = [one for one in having if _devices(one, facts, whole=True)] or having
    suited = [one for one in whole if not re.match("cpu", one.name, re.IGNORECASE)] or whole
    return max(
        suited, key=lambda one: (one.default, _devices(one, facts), one.walltime or 10**9), default=None
    )


def _default_on_cpus(queues: list[QueueFacts], facts: Facts) -> QueueFacts | None:
    """Return the default queue of jobs without devices, which need no node with devices: the scheduler's own
    if possible, else the one with the longest jobs."""
    able = [one for one in queues if not one.min_gpus]
    return max(
        able,
        key=lambda one: (not _devices(one, facts), one.default, one.walltime or 10**9, one.most_nodes or 0),
        default=None,
    )


def _devices(queue: QueueFacts, facts: Facts, whole: bool = False) -> int:
    """Return the number of nodes with devices of a queue, or of the queues to which it moves jobs; MIG
    devices are not ``whole``."""
    routes = [one for one in facts.queues if one.name in queue.routes_to and one != queue]
    kinds = [kind for one in (queue, *routes) for kind in one.kinds]
    return sum(
        kind.nodes
        for kind in kinds
        if any(name != SHARD and not (whole and is_mig(name)) for name, _ in kind.devices)
    )


def _rules(facts: Facts, chosen: QueueFacts | None, on_cpus: QueueFacts | None) -> Iterator[tuple[str, str]]:
    if facts.devices and any(one.gpus for one in facts.queues):
        yield "devices", facts.devices
    if facts.gpu_type:
        yield "gpu_type", facts.gpu_type
    if on_cpus is not None and on_cpus != chosen:
        yield "cpu_queue", on_cpus.name


def _job(scheduler: Scheduler, chosen: QueueFacts | None) -> Iterator[tuple[str, str]]:
    if chosen is not None:
        yield "queue", chosen.name
    if scheduler is not named(scheduler.command_name, None):
        yield "dialect", scheduler.name


def _accelerator(facts: Facts) -> str:
    types = [name for queue in facts.queues for kind in queue.kinds for name, _ in kind.devices]
    return of_devices(facts.resource, types) if types else "cpu"


def _detect(facts: Facts, host: LoginNode) -> str:
    """Return the sign of the cluster: its name in the configuration of the host, or else the host itself."""
    if host.cluster and valid_name(host.cluster):
        return f"clusters = {toml([host.cluster])}"
    return f"hosts = {toml([host.name])}"


def _network(host: LoginNode) -> str:
    """Return comments on the interfaces: which of them the compute nodes have cannot be read here."""
    if not host.interfaces:
        return ""
    return f"# interface = {toml(host.interfaces[-1])}  # of this host: {', '.join(host.interfaces)}\n"


def _modules(host: LoginNode) -> str:
    """Return comments with the modules of this machine that training needs."""
    lines = [f"# {what}: {', '.join(names)}" for what, names in host.modules.items() if names]
    newest = [names[-1] for what, names in host.modules.items() if names and what in ("CUDA", "CANN", "MPI")]
    return "\n".join([*lines, f"# module = {toml(newest or ['...'])}"])
