"""Check of the binding: whether each rank runs on the NUMA domain of its device."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobgen.doctor.verdict import NOTE, OK, WARNING, Case, Verdict
from jobgen.plan.site_binding import SITE
from jobgen.rendering.launch_words import bind_option
from jobgen.topology import placement, sysfs, tools
from jobgen.topology.binding import of_option, shares
from jobgen.topology.cpus import Cpus
from jobgen.topology.placement import Seat
from jobgen.topology.sysfs import NodeTopology
from jobgen.topology.tools import Near, Tool

if TYPE_CHECKING:
    from jobgen.sites.site_file import Site

_CHECK = "binding"
_NAMED = 8  # devices that a line describes


class Unknown(Exception):
    """The comparison is not possible; the text says why."""


class Ranks(NamedTuple):
    """The ranks of this node by number, the devices of each, and the processors of each if they are known."""

    numbers: Sequence[int]
    devices: Sequence[int]
    cpus: Sequence[Cpus] | None


def binding(case: Case, sys: Path = sysfs.SYS, allowed: Iterable[int] | None = None) -> Iterator[Verdict]:
    """Compare the processors of the ranks with those next to their devices, in a job or for a local run."""
    if not case.plan.resources.gpus_per_node or not (case.in_job or case.plan.scheduler.behaviour.one_host):
        return
    node = sysfs.node(sys, allowed)
    if len(node.domains) < 2:
        yield Verdict(_CHECK, OK, "this host has one NUMA domain: every rank is next to its device")
        return
    try:
        nears = near_devices(case, node, sys)
        ranks = ranks_here(case, nears, node)
    except Unknown as reason:
        yield Verdict(_CHECK, OK, f"cannot be compared with the devices: {reason}")
        return
    yield _judged(case, node, nears, ranks)


def near_devices(case: Case, node: NodeTopology, sys: Path) -> dict[int, Near]:
    """Return the topology next to each device of this node, by number.

    Raises:
        Unknown: no command shows it.
    """
    tool = case.plan.resources.accelerator.topology
    if tool is None:
        raise Unknown(f"no command shows the topology of {case.plan.resources.accelerator.title}")
    domains = tool.read(case.text("topology"))
    for number, (_, address) in tools.listing(case.text("devices")).items():
        if here := sysfs.device(address, sys):
            shown = domains.get(number, here)
            domains[number] = here._replace(adapters=shown.adapters, links=shown.links)
    nears = {number: placement.with_domain(near, node.domains) for number, near in sorted(domains.items())}
    if not any(near.cpus for near in nears.values()):
        answer = case.results.get("topology")
        reason = answer.last if answer and answer.status != 0 else "its output names no processors"
        raise Unknown(f"{' '.join(tool.command)}: {reason}")
    return nears


def ranks_here(case: Case, nears: Mapping[int, Near], node: NodeTopology) -> Ranks:
    """Return the ranks of this node with their devices and processors.

    Raises:
        Unknown: the devices of the ranks are not known here.
    """
    plan, tool = case.plan, case.plan.resources.accelerator.topology
    assert tool is not None
    own = os.environ.get("LOCAL_RANK", "")
    if own.isdecimal():  # a launcher has started the doctor as a rank
        return Ranks([int(own)], [_own(case, tool, nears, int(own))], [node.allowed])
    if "--gpu-bind" in plan.site.srun_ranks:
        raise Unknown("--gpu-bind gives each rank the device that is next to its processors")
    numbers = range(plan.resources.ranks_per_node)
    seen = _seen(case, tool, nears)
    if len(seen) < len(numbers):
        raise Unknown(f"{len(seen)} devices are visible here, for {len(numbers)} ranks")
    return Ranks(numbers, seen[: len(numbers)], _cpus(case, node))


def _own(case: Case, tool: Tool, nears: Mapping[int, Near], rank: int) -> int:
    """Return the device of a rank: the only one that it sees, or that of its number."""
    seen = _seen(case, tool, nears)
    if len(seen) > 1 and rank >= len(seen):
        raise Unknown(f"{len(seen)} devices are visible here, and this is rank {rank}")
    return seen[0] if len(seen) == 1 else seen[rank]


def _seen(case: Case, tool: Tool, nears: Mapping[int, Near]) -> list[int]:
    known = tools.listing(case.text("devices"))
    seen = tools.visible(tool, case.here.env, list(nears), known)
    if not seen:
        values = (f"{name}={case.here.env[name]}" for name in tool.visible if case.here.env.get(name))
        raise Unknown(f"{' and '.join(values)} names devices that {tool.command[0]} does not show")
    return seen


def _cpus(case: Case, node: NodeTopology) -> list[Cpus] | None:
    """Return the processors of each rank, as the job binds them; None if the launcher decides."""
    plan, bound = case.plan, case.plan.resources.cpus
    ranks = plan.resources.ranks_per_node
    if bound.bind is None:
        words = " ".join((bind_option(plan), *plan.spec.launcher_arg))
        return of_option(words, ranks, bound.rank, node.cpus)
    if bound.bind == "none":
        return [node.cpus] * ranks
    if bound.lists:
        return of_option(f"--cpu-bind=list:{':'.join(bound.lists)}", ranks, bound.rank, node.cpus)
    return shares(bound.bind, ranks, node.domains, node.cores, node.allowed & node.cpus or node.cpus)


def _judged(case: Case, node: NodeTopology, nears: Mapping[int, Near], ranks: Ranks) -> Verdict:
    nowhere = [frozenset[int]()] * len(ranks.numbers)
    seats = [
        Seat(rank, cpus, f"device {device}", nears[device])
        for rank, device, cpus in zip(ranks.numbers, ranks.devices, ranks.cpus or nowhere, strict=True)
    ]
    remedy = _remedy(case, node, seats)
    where = _where(seats, node)
    if ranks.cpus is None:
        found = f"jobgen does not choose the processors of the ranks; {where}"
        return Verdict(_CHECK, NOTE, found, "the preflight measures where the ranks run", remedy)
    if wrong := placement.far(seats):
        found = placement.sentence(wrong, node.domains)
        why = "copies between host, device and network cross the connection of the NUMA domains"
        return Verdict(_CHECK, WARNING, found, why, remedy)
    if wide := placement.wide(seats):
        found = f"{len(wide)} of {len(seats)} ranks may run on several NUMA domains; {where}"
        return Verdict(_CHECK, NOTE, found, "the kernel may move them away from their devices", remedy)
    return Verdict(_CHECK, OK, f"every rank runs next to its device; {where}")


def _where(seats: Sequence[Seat], node: NodeTopology) -> str:
    """Return a text such as ``device 0: NUMA 3, beside mlx5_1``; of many devices, the first ones."""
    texts = [
        f"{one.device}: {placement.numa(one.near.cpus, node.domains)}{placement.beside(one.near)}"
        for one in seats[:_NAMED]
    ]
    return "; ".join([*texts, "..."] if len(seats) > _NAMED else texts)


def _remedy(case: Case, node: NodeTopology, seats: Sequence[Seat]) -> str:
    """Return the line to change: in the site file if that binds the ranks, otherwise the option."""
    near, each = [one.near.cpus for one in seats], case.plan.resources.cpus.rank
    lists = placement.lists(near, node.cores, node.allowed, each)
    if not lists or len(lists) < case.plan.resources.ranks_per_node:
        return "--cpu-bind with a list of processors for each rank, next to its device"
    option = f"--cpu-bind '{';'.join(lists)}'"
    site = case.plan.spec.site
    slurm = case.plan.scheduler.node_step
    own = case.plan.spec.cpu_bind and case.plan.resources.cpus.bind != SITE
    if site is None or own or not (slurm or site.file.rules.bind):
        return f"use {option}"
    form = "--cpu-bind=mask_cpu:{cpu_masks}" if slurm else "--cpu-bind list:{cpu_lists}"
    rule = "" if "{cpu_" in site.file.rules.bind else f", [rules] bind = {json.dumps(form)}"
    here = f"{site.path}{_line(site)}"
    return f"in {here}: [node] cpu_lists = {json.dumps(lists)}{rule}; or for this job {option}"


def _line(site: Site) -> str:
    """Return the line of the file that binds the ranks, such as ``:31``."""
    places = (site.places.get(key) for key in (("node", "cpu_lists"), ("rules", "bind")))
    return next((f":{place[1]}" for place in places if place and place[0] == site.path), "")
