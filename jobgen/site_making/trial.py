"""A job of two nodes at a new site, which its scheduler judges."""

from __future__ import annotations

import os
import secrets
import shlex
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jobgen.errors import JobgenError
from jobgen.hosts.calls import Done, complaint
from jobgen.hosts.host import HERE, Host
from jobgen.plan.plan import Plan, resolve
from jobgen.rendering.render import render
from jobgen.schedulers.cluster import Judgement, NodeKind
from jobgen.site_making.validation import smallest
from jobgen.sites.limits import ranges
from jobgen.sites.site_file import Site


def trial_plan(site: Site) -> Plan:
    """Return the plan of a job of one minute in the default queue, of two nodes if the queue takes them.

    Raises:
        JobgenError: the site refuses it.
    """
    more = {"nodes": str(trial_nodes(site)), "walltime": "1m", "name": "jobgen-site"}
    return resolve(smallest(site, _queue(site), more))


def trial_nodes(site: Site) -> int:
    """Return two, or the number of nodes nearest to it that the default queue takes; one if it takes the
    devices or cores of one alone."""
    name = _queue(site)
    if name not in site.queues:
        return 2
    queue, node = site.queues[name], site.node(name)
    for most, of_node in ((queue.max_gpus, node.gpus), (queue.max_cores, node.cores)):
        if most and of_node and most < 2 * of_node:
            return 1
    spans = ranges(site, name)
    return min((min(max(2, least), most) for least, most in spans), key=lambda n: (n != 2, n), default=2)


def _queue(site: Site) -> str:
    queue = site.values.get("queue")
    return queue if isinstance(queue, str) else ""


def judgement(plan: Plan, host: Host = HERE, folder: str | None = None) -> Judgement:
    """Return the judgement of the scheduler on a job. Its script is in ``folder`` on the host meanwhile.

    Raises:
        SchedulerError: the scheduler does not answer.
    """
    resources = plan.resources
    needs = [
        NodeKind(
            one.nodes,
            one.cpus,
            devices=(("", resources.gpus_per_node),) if one.devices else (),
            memory=plan.spec.mem,
        )
        for one in resources.chunks
    ]
    with _script(plan, host, folder) as path:
        return plan.scheduler.cluster().judge(path, needs, host)


def submission(
    plan: Plan,
    try_job: Callable[[str, Host], Judgement],
    host: Host = HERE,
    folder: str | None = None,
) -> Judgement:
    """Return the judgement on a job that is submitted and deleted by ``try_job``; see `judgement`."""
    with _script(plan, host, folder) as path:
        return try_job(path, host)


@contextmanager
def _script(plan: Plan, host: Host, folder: str | None) -> Iterator[str]:
    """Write the script of a job, on another host below ``folder``; yield its path."""
    if folder is not None:
        made = f"{folder}/.trial-{secrets.token_hex(8)}"
        quoted = shlex.quote(made)
        answer = host.run(f"umask 077; mkdir {quoted} && cat > {quoted}/job.sh", render(plan).encode())
        try:
            if answer.status:
                why = complaint(Done(answer.status, "", answer.err))
                raise JobgenError(f"{folder} at {host.name} cannot be written: {why}")
            yield f"{made}/job.sh"
        finally:
            # Again, if PBS has just written the log of a deleted job into it.
            host.run(f"rm -rf {quoted} || (sleep 2; rm -rf {quoted})")
        return
    with tempfile.TemporaryDirectory(prefix="jobgen-site-") as folder:
        path = os.path.join(folder, "job.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write(render(plan))
        yield path
