"""Creation of a site file from the facts of a scheduler."""

from __future__ import annotations

import datetime
import re
from collections import Counter

from jobgen.schedulers.base import Scheduler, clock, size
from jobgen.schedulers.cluster import Facts, QueueFacts
from jobgen.schedulers.table import named
from jobgen.sites.display import toml

_HEAD = """\
# A site file of jobgen, from the scheduler's lists of queues and nodes; values that they do not contain are
# comments. jobgen site check finds mistakes.
title = {title}
# The addresses of the manual, and the day it was read.
# manual = ["https://..."]
read = {today}
scheduler = {scheduler}

# The request of nodes and devices; the numbers in braces are those of the job.
request = {request}
# More directives for every job.
# directives = ["..."]

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


def without_reservations(scheduler: Scheduler, facts: Facts) -> Facts:
    """Return the facts without the queues that are reservations."""
    return facts._replace(queues=tuple(one for one in facts.queues if not scheduler.is_reservation(one.name)))


def site_file(scheduler: Scheduler, facts: Facts, host: str) -> str:
    """Return the text of the file; ``host`` is the name of this machine, which identifies the site later."""
    gpus, cores = max((one.gpus for one in facts.queues), default=0), _common(facts)
    chosen = next((one for one in facts.queues if one.default), facts.queues[0] if facts.queues else None)
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
    return head + "".join(_queue(one, gpus, cores) for one in facts.queues)


def _common(facts: Facts) -> int | None:
    """Return the most frequent number of cores per node."""
    counted = Counter(one.cores for one in facts.queues if one.cores)
    return counted.most_common(1)[0][0] if counted else None


def _queue(queue: QueueFacts, gpus: int, cores: int | None) -> str:
    lines = [f"\n[queues.{toml(queue.name)}]"]
    if queue.most_nodes:
        lines.append(f"nodes = [{queue.least_nodes or 1}, {queue.most_nodes}]")
    if queue.walltime:
        lines.append(f"walltime = {toml(clock(queue.walltime))}")
    if queue.gpus != gpus:
        lines.append(f"gpus = {queue.gpus}")
    if queue.cores and queue.cores != cores:
        lines.append(f"cores = {queue.cores}")
    if queue.memory:
        lines.append(f"memory = {toml(size(queue.memory).upper())}")
    return "\n".join(lines) + "\n"
