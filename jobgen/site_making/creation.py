"""Creation of a site file from the facts of a scheduler."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Collection

from jobgen.schedulers.base import Scheduler, clock, size
from jobgen.schedulers.cluster import Facts, QueueFacts
from jobgen.schedulers.table import named
from jobgen.sites.display import toml
from jobgen.sites.value_checks import valid_name

_HEAD = """\
# A site file of jobgen, from the scheduler's lists of queues and nodes; values that they do not contain are
# comments. jobgen site check finds mistakes.
title = {title}
scheduler = {scheduler}

# The request of nodes and devices; the numbers in braces are those of the job.
request = {request}
# More directives for every job.
# directives = ["..."]

# The sources of the facts, one table each; the confidence is manual, staff, users or unknown.
# A page of the manual also has: page = "https://..."
[[source]]
facts = ["queues", "node", "request", "login"]
confidence = "staff"
date = {today}
what = "the scheduler's lists of queues and nodes"

# The options that every job must have, each with an example.
# [mandatory]
# account = "PROJECT"

# The names of this machine, for jobgen site detect.
[detect]
hosts = {hosts}

# The resources of a node, unless those of its queue differ.
[node]
{node}
# The rules that differ from the scheduler's manual.
# [rules]
# module_use = ["/path/of/modulefiles"]

# Defaults of options, in the tables of a job file.
[job]
{job}
[resources]
accelerator = {accelerator}

[launch]
launcher = {launcher}

# [environment]
# module = ["..."]
"""

_LONGEST = 100_000 * 3600  # s; greater numbers are no limits
_MOST_MEMORY = 10**9  # MiB


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
    return facts._replace(
        queues=tuple(one._replace(routes_to=_among(one.routes_to, enabled)) for one in kept)
    )


def _among(routes: tuple[str, ...], names: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in routes if name in names)


def site_file(scheduler: Scheduler, facts: Facts, host: str) -> str:
    """Return the text of the file; ``host`` is the name of this machine, which identifies the site later."""
    gpus, cores = max((one.gpus for one in facts.queues), default=0), _common(facts)
    taking = sorted((one for one in facts.queues if one.enabled), key=lambda one: not one.default)
    chosen = taking[0] if taking else None
    devices = bool(gpus)
    job = [f"queue = {toml(chosen.name)}\n"] if chosen else []
    if scheduler is not named(scheduler.command_name, None):
        job.append(f"dialect = {toml(scheduler.name)}\n")
    node = [f"gpus = {gpus}\n"] + ([f"cores = {cores}\n"] if cores else [])
    if devices and cores and cores >= gpus:
        node.append(f"cores_per_gpu = {cores // gpus}\n")
    head = _HEAD.format(
        title=toml(facts.name),
        today=datetime.date.today().isoformat(),
        scheduler=toml(scheduler.command_name),
        request=toml(scheduler.site_request(facts.gres if devices else None)),
        hosts=toml([re.sub(r"\d+", "*", host)]),
        node="".join(node),
        job="".join(job),
        accelerator=toml("cpu" if not devices else "npu" if facts.gres.startswith("npu") else "cuda"),
        launcher=toml(scheduler.default_launcher),
    )
    return head + "".join(queue_table(one, gpus, cores) for one in facts.queues)


def _common(facts: Facts) -> int | None:
    """Return the most frequent number of cores per node."""
    counted = Counter(one.cores for one in facts.queues if one.cores)
    return counted.most_common(1)[0][0] if counted else None


def queue_table(queue: QueueFacts, gpus: int | None, cores: int | None) -> str:
    """Return the table of a queue; ``gpus`` and ``cores`` are those of nodes in general."""
    lines = [f"\n[queues.{toml(queue.name)}]"]
    if queue.routes_to:
        lines.append(f"routes_to = {toml(queue.routes_to)}")
    if not queue.enabled:
        lines.append("enabled = false")
    if queue.most_nodes and (queue.least_nodes or 1) <= queue.most_nodes:
        lines.append(f"nodes = [{queue.least_nodes or 1}, {queue.most_nodes}]")
    if queue.walltime and queue.walltime < _LONGEST:
        lines.append(f"walltime = {toml(clock(queue.walltime))}")
    for key in ("shared", "max_jobs", "max_gpus"):
        if (value := getattr(queue, key)) is not None:
            lines.append(f"{key} = {toml(value)}")
    if queue.gpus != gpus:
        lines.append(f"gpus = {queue.gpus}")
    if queue.cores and queue.cores != cores:
        lines.append(f"cores = {queue.cores}")
    if queue.memory and queue.memory < _MOST_MEMORY:
        lines.append(f"memory = {toml(size(queue.memory).upper())}")
    return "\n".join(lines) + "\n"
