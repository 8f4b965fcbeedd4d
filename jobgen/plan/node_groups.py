"""Jobs whose nodes differ: ``--nodes 2x4+1x8`` is 2 nodes of 4 ranks and 1 node of 8."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobgen.values.node_groups import SUBMITTED, groups_text

if TYPE_CHECKING:
    from jobgen.plan.allocation import Cores
    from jobgen.schedulers.base import Scheduler
    from jobgen.spec import Specification


class Chunk(NamedTuple):
    """A group as it is requested: with the cores of each node, and the scheduler's option for its devices.

    The memory and the constraint (``more``) are those of a component.
    """

    nodes: int
    ranks: int
    cpus: int
    devices: str
    memory: str | None = None
    more: str = ""


def chunks(spec: Specification, cpus: Cores, ranks: int, devices: str, gpus: int) -> tuple[Chunk, ...]:
    """Return the request of each group, in order; ``devices`` is the option for ``{n}`` devices."""
    if isinstance(spec.nodes, int):
        nodes = spec.nodes + (spec.spare_nodes or 0)
        return (Chunk(nodes, ranks, cpus.node, devices.format(n=gpus)),)
    return tuple(
        Chunk(group.nodes, group.ranks, group.ranks * cpus.rank, devices.format(n=group.ranks))
        for group in spec.nodes
    )


def check_open_number(spec: Specification, scheduler: Scheduler) -> None:
    """Refuse a number of nodes from the submission if an option or the site needs it earlier.

    Raises:
        JobgenError: the message names the reason.
    """
    if spec.nodes != SUBMITTED:
        return
    if not scheduler.keys.nodes:
        raise spec.refuse("nodes", f"{scheduler.title} gives no nodes; use a number")
    if spec.site is not None:
        raise spec.refuse("nodes", f"the limits of {spec.site.title} need a number")
    if spec.mem is not None and scheduler.memory(spec.mem, 1) != scheduler.memory(spec.mem, 2):
        why = f"{scheduler.title} counts the memory of all nodes, whose number is not known"
        raise spec.refuse("mem", why)
    for key in ("spare_nodes", "min_nodes", "include", "exclude"):
        if getattr(spec, key):
            raise spec.refuse(key, "needs the number of nodes; use --nodes N")


# Options that cannot be used with groups, and the reason.
_AGAINST = {
    "ranks_per_node": "--nodes {nodes} sets the ranks of each node; remove one of the two",
    "gpus_per_node": "--nodes {nodes} gives each rank one device, or none with --accelerator cpu; remove it",
    "cpus_per_node": "the nodes of --nodes {nodes} have different numbers of cores; use --cpus-per-rank",
    "include": "the nodes of --nodes {nodes} differ in their devices; remove it",
    "exclude": "the nodes of --nodes {nodes} differ in their devices; remove it",
    "spare_nodes": "a spare node cannot replace every node of --nodes {nodes}; remove it",
    "min_nodes": "the nodes of --nodes {nodes} differ, and none can be left out; remove it",
    "container": "is for equal nodes, not for --nodes {nodes}",
}


# What needs equal nodes, by its field.
_EQUAL = {"pack": "the points of a task", "steps": "the steps of a job"}
_OF_COMPONENTS = ("ranks_per_node", "gpus_per_node", "cpus_per_node")  # their defaults


def check_groups(spec: Specification, scheduler: Scheduler) -> None:
    """Refuse groups if the scheduler or another option does not support them.

    Raises:
        JobgenError: the message names the reason.
    """
    if isinstance(spec.nodes, int) and not spec.components:
        return
    for key, users in _EQUAL.items():
        if getattr(spec, key) and not spec.hostfile:
            raise spec.refuse("nodes", f"{users} need a number of equal nodes")
    for key, reason in scheduler.lacks_if_mixed.items():
        if getattr(spec, key) is not None:
            raise spec.refuse(key, reason)
    if spec.site is not None:
        raise spec.refuse("nodes", f"{spec.site.title} allocates equal nodes only; give a number of nodes")
    if spec.restarts and scheduler.component_line:
        reason = "ends a job with components that loses a node, unlike one of equal nodes; remove it"
        raise spec.refuse("restarts", f"{scheduler.title} {reason}")
    for key, reason in _AGAINST.items():
        if getattr(spec, key) is not None and not (spec.components and key in _OF_COMPONENTS):
            nodes = f"--nodes {groups_text(spec.nodes)}" if not spec.components else "[[component]]"
            raise spec.refuse(key, reason.replace("--nodes {nodes}", nodes))
    if spec.components and spec.hostfile is not None:
        why = "has the nodes of the job, and so has [[component]]; remove one of the two"
        raise spec.refuse("hostfile", why)
