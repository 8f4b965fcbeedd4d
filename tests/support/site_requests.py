"""The jobs that show the limits of a site's queues: what each queue takes, and one more of everything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.plan.plan import Plan, resolve
from jobgen.rendering.render import render
from jobgen.schedulers.base import clock
from jobgen.sites.limits import longest, ranges
from jobgen.sites.site_file import Site
from jobgen.spec import COMMAND_LINE, SiteName
from jobgen.values import parsers

# The queue of sites whose scheduler chooses the partition.
SCHEDULERS_CHOICE = "default"


class Request(NamedTuple):
    """A job of a queue: its options, and what of it is beyond a limit; empty if nothing is."""

    queue: str
    options: dict[str, str]
    beyond: str = ""

    @property
    def name(self) -> str:
        return f"{self.queue}: {self.beyond or 'within'}: {self.options}"


class LargestNode(NamedTuple):
    """The most devices, cores and memory, in MiB, of the kinds of nodes of a queue; None if one is not known."""

    gpus: int | None
    cores: int | None
    memory: int | None


def largest_node(site: Site, queue: str) -> LargestNode:
    """Return the most of everything that a node of a queue has."""
    tables = [table for _, table in site.kinds(queue).values()]
    sizes = [parsers.memory(one.memory) if one.memory else None for one in tables]
    columns = [[one.gpus for one in tables], [one.cores for one in tables], sizes]
    most = (None if None in column else max(filter(None, column), default=0) for column in columns)
    return LargestNode(*most)


def mandatory(site: Site, queue: str) -> dict[str, str]:
    """Return what every job of the queue must have, from the examples of the site file, in lower case."""
    return {
        key: text.lower() for key, text in {**site.file.mandatory, **site.queues[queue].mandatory}.items()
    }


def requests(site: Site, queue: str, *, totals: bool = False) -> Iterator[Request]:
    """Yield the smallest and the largest job of a queue, and one job beyond each of its limits.

    With ``totals``, devices, cores and memory are limited by those of all nodes of the largest job.
    """
    spans = ranges(site, queue)
    least, most = (spans[0][0], spans[-1][1]) if spans else (1, 2)
    node, most_gpus = site.node(queue), site.queues[queue].max_gpus
    if spans and most_gpus and node.gpus and most * node.gpus > most_gpus:
        most = most_gpus // node.gpus
    small, large = ({"nodes": str(count), **_time(site, queue, count)} for count in (least, most))
    yield Request(queue, small)
    yield Request(queue, large)
    same = [directives(plan(site, Request(queue, options))) for options in (small, large)]
    for beyond in _beyond(site, queue, small, large, totals=totals):
        # Where the request of a site has a fixed number, the script does not ask for more, or jobgen refuses more.
        with suppress(JobgenError):
            if directives(plan(site, beyond)) not in same:
                yield beyond


def _beyond(
    site: Site, queue: str, small: dict[str, str], large: dict[str, str], *, totals: bool
) -> Iterator[Request]:
    spans = ranges(site, queue)
    if spans:
        yield Request(queue, {**large, "nodes": str(spans[-1][1] + 1)}, "nodes")
        if spans[0][0] > 1:
            yield Request(queue, {**small, "nodes": str(spans[0][0] - 1)}, "nodes")
    for options in (small, large):
        limit = longest(site, queue, int(options["nodes"]))
        if limit is not None:
            yield Request(queue, {**options, "walltime": clock(limit + 60)}, "walltime")
    if spans or not totals:
        yield from _beyond_the_node(site, queue, large if totals else small)


def _beyond_the_node(site: Site, queue: str, options: dict[str, str]) -> Iterator[Request]:
    node, text = largest_node(site, queue), "\n".join(directives(plan(site, Request(queue, options))))
    if node.gpus and re.search("gpus|gres", text):
        more = {"gpus_per_node": str(node.gpus + 1), "ranks_per_node": "1", "cpus_per_rank": "1"}
        yield Request(queue, {**options, **more}, "gpus_per_node")
    if node.cores and not site.node(queue).cores_fixed and re.search("--cpus-per-task|ncpus=", text):
        more = {"ranks_per_node": "1", "cpus_per_rank": str(node.cores + 1)}
        wanted = Request(queue, {**options, **more}, "cpus_per_rank")
        # A site may request the cores that come with its GPUs, whatever a rank uses.
        if re.search(
            rf"(ncpus|--cpus-per-task)={node.cores + 1}\b", "\n".join(directives(plan(site, wanted)))
        ):
            yield wanted
    if node.memory:
        with suppress(JobgenError):  # a site whose jobs request no memory
            wanted = Request(queue, {**options, "mem": f"{node.memory + 1024}M"}, "mem")
            plan(site, wanted)
            yield wanted


def _time(site: Site, queue: str, nodes: int) -> dict[str, str]:
    limit = longest(site, queue, nodes)
    return {"walltime": clock(limit) if limit else "01:00:00"}


def plan(site: Site, request: Request) -> Plan:
    """Return the plan of a request, with all that the site demands of every job."""
    demanded = mandatory(site, request.queue)
    words: dict[str, str | list[str] | None] = {k: v for k, v in demanded.items() if not k.startswith("-")}
    given = [f"{key}={text}" for key, text in demanded.items() if key.startswith("-")]
    said = "\n".join((*site.file.directives, *site.queues[request.queue].directives))
    words["directive"] = [line for line in given if line.partition("=")[0] not in said]
    words |= request.options
    if request.queue != SCHEDULERS_CHOICE:
        words["queue"] = request.queue
    return resolve(
        read_spec(site.file.scheduler, words, ("train.py",), site=SiteName(site.name, COMMAND_LINE))
    )


def directives(found: Plan) -> list[str]:
    """Return the directives of the script of a plan, without ``#SBATCH`` or ``#PBS``."""
    lines = render(found).splitlines()
    return [line.split(maxsplit=1)[1] for line in lines if line.startswith(("#SBATCH ", "#PBS "))]
