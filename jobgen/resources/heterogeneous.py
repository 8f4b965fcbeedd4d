"""Jobs whose nodes differ: ``--nodes 2x4+1x8`` is 2 nodes of 4 ranks and 1 node of 8."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jobgen.values import Whole

if TYPE_CHECKING:
    from jobgen.resources.cores import Cores
    from jobgen.schedulers.base import Scheduler
    from jobgen.spec import JobSpec


class Group(NamedTuple):
    """A number of nodes with the same number of ranks."""

    nodes: int
    ranks: int


class Chunk(NamedTuple):
    """A group as it is requested: with the cores of each node, and the scheduler's option for its devices."""

    nodes: int
    ranks: int
    cpus: int
    devices: str


SUBMITTED = 0  # the number of nodes that the script is submitted with
Nodes = int | tuple[Group, ...]


class WholeOrGroups(Whole):
    """A parser for a number of nodes, or for groups of nodes with different numbers of ranks."""

    def __call__(self, text: str) -> Nodes:  # type: ignore[override]
        if text == "submitted":
            return SUBMITTED
        if re.fullmatch(r"-?[0-9]+", text):
            return super().__call__(text)
        number = "[1-9][0-9]{0,4}"
        if not re.fullmatch(rf"{number}x{number}(\+{number}x{number})*", text):
            raise ValueError(
                "must be a whole number of at least 1, submitted, or nodes x ranks of nodes that differ: "
                "2x4+1x8"
            )
        groups = tuple(Group(*map(int, part.split("x"))) for part in text.split("+"))
        if len({group.ranks for group in groups}) == 1:
            raise ValueError(
                "must be nodes that differ, such as 2x4+1x8; for equal nodes "
                f"use --nodes {total(groups)} --ranks-per-node {groups[0].ranks}"
            )
        return groups


def total(nodes: Nodes) -> int:
    """Return the number of nodes."""
    return nodes if isinstance(nodes, int) else sum(group.nodes for group in nodes)


def world_size(nodes: Nodes, ranks: int) -> int:
    """Return the number of ranks; equal nodes have ``ranks`` each."""
    return sum(group.nodes * group.ranks for group in groups_of(nodes, ranks))


def groups_of(nodes: Nodes, ranks: int) -> tuple[Group, ...]:
    """Return the groups; equal nodes, with ``ranks`` each, are one group."""
    return (Group(nodes, ranks),) if isinstance(nodes, int) else nodes


def most_ranks(nodes: Nodes) -> int | None:
    """Return the ranks of the largest node; None if the nodes are equal."""
    return None if isinstance(nodes, int) else max(group.ranks for group in nodes)


def chunks(spec: JobSpec, cpus: Cores, ranks: int, devices: str, gpus: int) -> tuple[Chunk, ...]:
    """Return the request of each group, in order; ``devices`` is the option for ``{n}`` devices."""
    if isinstance(spec.nodes, int):
        nodes = spec.nodes + (spec.spare_nodes or 0)
        return (Chunk(nodes, ranks, cpus.node, devices.format(n=gpus)),)
    return tuple(
        Chunk(group.nodes, group.ranks, group.ranks * cpus.rank, devices.format(n=group.ranks))
        for group in spec.nodes
    )


def check_submitted(spec: JobSpec, scheduler: Scheduler) -> None:
    """Refuse a number of nodes from the submission if something needs it before.

    Raises:
        JobgenError: the message names the reason.
    """
    if spec.nodes != SUBMITTED:
        return
    if not scheduler.nodes_key:
        raise spec.refuse("nodes", f"{scheduler.title} gives no nodes; use a number")
    if spec.site is not None:
        raise spec.refuse("nodes", f"the limits of {spec.site.title} need a number")
    for key in ("spare_nodes", "include", "exclude"):
        if getattr(spec, key):
            raise spec.refuse(key, "needs the number of nodes; use --nodes N")


def written(nodes: Nodes) -> str | None:
    """Return the groups by number of ranks, each number once, as the script counts its nodes."""
    if isinstance(nodes, int):
        return None
    counts = dict.fromkeys(sorted(group.ranks for group in nodes), 0)
    for group in nodes:
        counts[group.ranks] += group.nodes
    return "+".join(f"{count}x{size}" for size, count in counts.items())


# Options that cannot be used with groups, and the reason.
_AGAINST = {
    "ranks_per_node": "--nodes {nodes} sets the ranks of each node; remove one of the two",
    "gpus_per_node": "each rank of --nodes {nodes} has one, or none with --accelerator cpu; remove it",
    "cpus_per_node": "the nodes of --nodes {nodes} differ in it; use --cpus-per-rank",
    "include": "the nodes of --nodes {nodes} differ in their devices; remove it",
    "exclude": "the nodes of --nodes {nodes} differ in their devices; remove it",
    "spare_nodes": "a spare node cannot replace every node of --nodes {nodes}; remove it",
    "container": "is for equal nodes, not for --nodes {nodes}",
}


def check_groups(spec: JobSpec, scheduler: Scheduler) -> None:
    """Refuse groups if the scheduler or another option does not support them.

    Raises:
        JobgenError: the message names the reason.
    """
    if isinstance(spec.nodes, int):
        return
    for key, reason in scheduler.lacks_if_mixed.items():
        if getattr(spec, key) is not None:
            raise spec.refuse(key, reason)
    if spec.site is not None:
        raise spec.refuse("nodes", f"the request of {spec.site.title} is for equal nodes; use a number")
    for key, reason in _AGAINST.items():
        if getattr(spec, key) is not None:
            raise spec.refuse(key, reason.format(nodes=written(spec.nodes)))
