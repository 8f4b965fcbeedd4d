"""``--ranks N``: the number of all ranks. The nodes follow from the ranks that a node can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobgen.errors import JobgenError, counted, setting
from jobgen.launch.launchers import LAUNCHERS
from jobgen.plan.launch_method import launch_of
from jobgen.plan.node_groups import check_groups
from jobgen.values.devices import SHARD, Devices, number_of, type_of
from jobgen.values.node_groups import SUBMITTED, Group, groups_text, total, world_size

if TYPE_CHECKING:
    from jobgen.schedulers.base import Scheduler
    from jobgen.spec import Specification


def with_ranks(spec: Specification, scheduler: Scheduler) -> Specification:
    """Return the specification with the nodes, and the ranks of each, that ``--ranks`` needs.

    Raises:
        JobgenError: the ranks of a node are not known, or do not fit; or nodes would differ, and the launcher
            or the scheduler supports only equal nodes. The message has the arithmetic, and what fits.
    """
    if spec.ranks is None:
        return spec
    if LAUNCHERS[spec.launcher].one_process:
        raise spec.refuse("ranks", f"--launcher {spec.launcher} starts one process, and no ranks; remove it")
    if spec.nodes == SUBMITTED:
        raise spec.refuse("ranks", "the nodes of --nodes submitted are not known; use --ranks-per-node")
    if spec.hostfile:
        return _on_hosts(spec, spec.ranks)
    if not isinstance(spec.nodes, int):
        if (size := world_size(spec.nodes, 0)) != spec.ranks:
            text = f"--nodes {groups_text(spec.nodes)} has {size} ranks; remove one of the two"
            raise spec.refuse("ranks", text)
        return spec
    if spec.origin("nodes") == "default" and not scheduler.behaviour.one_host:
        return _divided(spec, scheduler, spec.ranks, _most(spec))
    return _on_nodes(spec, scheduler, spec.ranks, spec.nodes)


def _most(spec: Specification) -> int:
    """Return the most ranks of a node: one for each device, or for the cores of a rank."""
    if spec.ranks_per_node:
        return spec.ranks_per_node
    devices = number_of(spec.gpus_per_node)
    if devices and spec.accelerator != "cpu":
        return 1 if type_of(spec.gpus_per_node) == SHARD else devices
    cores = spec.cpus_per_node or (spec.site.node(spec.queue).cores if spec.site else None)
    on_cpus = spec.accelerator == "cpu" or devices == 0
    if on_cpus and cores:
        return max(1, cores // (spec.cpus_per_rank or 1))
    size = "--cpus-per-node N, the cores of a node" if on_cpus else "--gpus-per-node N, the devices of a node"
    raise spec.refuse("ranks", f"the nodes follow from the ranks of one: add {size}, or --ranks-per-node N")


def _divided(spec: Specification, scheduler: Scheduler, ranks: int, most: int) -> Specification:
    """Return the specification with as few nodes as possible, of which the last may have fewer ranks."""
    whole, rest = divmod(ranks, most)
    if whole == 0 or rest == 0:
        return _equal(spec, max(whole, 1), min(most, ranks))
    groups = (Group(whole, most), Group(1, rest))
    return _uneven(spec, scheduler, groups, (most * whole, most * (whole + 1)))


def _on_nodes(spec: Specification, scheduler: Scheduler, ranks: int, nodes: int) -> Specification:
    """Return the specification with the ranks divided among a number of nodes."""
    each, rest = divmod(ranks, nodes)
    if each == 0:
        raise spec.refuse("ranks", f"does not fill {counted(nodes, 'node')}; use --nodes {ranks}, or fewer")
    if spec.ranks_per_node and spec.ranks_per_node * nodes != ranks:
        have = f"{counted(nodes, 'node')} x {counted(spec.ranks_per_node, 'rank')}"
        raise spec.refuse("ranks", f"{have} are {nodes * spec.ranks_per_node}; remove one of them")
    devices = number_of(spec.gpus_per_node) or 0
    cores = (spec.cpus_per_node or 0) // (spec.cpus_per_rank or 1)
    most = min((one for one in (devices, cores) if one), default=0)
    if most and each + bool(rest) > most:
        more = "" if scheduler.behaviour.one_host else f"--nodes {-(-ranks // most)} or "
        fits = f"use {more}--ranks {nodes * most}"
        of_node = counted(most, "device") if most == devices else f"cores for {most}"
        raise spec.refuse("ranks", f"is {each + bool(rest)} a node, which has {of_node}; {fits}")
    if rest == 0:
        return _equal(spec, nodes, each)
    groups = (Group(rest, each + 1), Group(nodes - rest, each))
    return _uneven(spec, scheduler, groups, (each * nodes, (each + 1) * nodes))


def _equal(spec: Specification, nodes: int, each: int) -> Specification:
    values: dict[str, Any] = {"nodes": nodes, "ranks_per_node": each}
    own = {key: "--ranks" for key, value in values.items() if spec.origin(key) == "default" or value is None}
    return spec._replace(**values, origins={**spec.origins, **own})


def _uneven(
    spec: Specification, scheduler: Scheduler, groups: tuple[Group, ...], near: tuple[int, int]
) -> Specification:
    """Return the specification with nodes that differ: each rank has one device, or its cores. ``near`` are
    the nearest numbers of ranks with equal nodes.

    Raises:
        JobgenError: the launcher, the scheduler or another option does not support them.
    """
    most, gpus = groups[0].ranks, number_of(spec.gpus_per_node)
    values: dict[str, Any] = dict.fromkeys(("ranks_per_node", "gpus_per_node", "cpus_per_node"))
    if spec.cpus_per_node and not spec.cpus_per_rank and (left := spec.cpus_per_node % most):
        even = spec.cpus_per_node - left
        nearest = f"{even} or {even + most}" if even else most
        raise spec.refuse("cpus_per_node", f"is divided equally among {most} ranks; use {nearest}")
    if spec.cpus_per_node:
        values["cpus_per_rank"] = spec.cpus_per_rank or spec.cpus_per_node // most
    if gpus == 0:
        values["accelerator"] = "cpu"
    origins = {key: origin for key, origin in spec.origins.items() if values.get(key, 1) is not None}
    made = spec._replace(**values, nodes=groups, origins={**origins, "nodes": "--ranks"})
    try:
        if isinstance(spec.gpus_per_node, Devices) or (gpus and gpus != most):
            raise spec.refuse("gpus_per_node", "is the same on each node")
        check_groups(made, scheduler)
        launch_of(made, scheduler)
    except JobgenError as error:
        why = str(error).partition(": ")[2] if error.option == "nodes" else str(error)
        fits = _fitting(spec, groups, near)
        if why.endswith("; remove it"):  # that option
            why = why.removesuffix("; remove it").replace(f" of --nodes {groups_text(groups)}", "")
            fits += f", or remove {setting(error.option, spec.origin(error.option))}"
        raise spec.refuse("ranks", f"{_prose(groups)}, but {why}; {fits}") from None
    return made


def _prose(groups: tuple[Group, ...]) -> str:
    """Return ``needs 1 node of 8 ranks and 1 of 4``."""
    first, second = groups
    return f"needs {counted(first.nodes, 'node')} of {first.ranks} ranks and {second.nodes} of {second.ranks}"


def _fitting(spec: Specification, groups: tuple[Group, ...], near: tuple[int, int]) -> str:
    """Return the nearest requests with equal nodes."""
    ranks, most = world_size(groups, 0), groups[0].ranks
    numbers = (n for n in range(-(-ranks // most), 2 * total(groups)) if ranks % n == 0)
    fits = f"use --ranks {near[0]} or {near[1]}"
    return fits + (f", or --nodes {even} for {ranks // even} a node" if (even := next(numbers, 0)) else "")


def _on_hosts(spec: Specification, ranks: int) -> Specification:
    """Return the specification with as many hosts of the hostfile as have the slots for the ranks; without
    slots, all hosts have as many."""
    hosts = spec.hostfile or ()
    if spec.origin("nodes") != "default" and isinstance(spec.nodes, int):
        hosts = hosts[: spec.nodes]
    if not any(slots for _, slots in hosts) or spec.ranks_per_node:
        each, rest = divmod(ranks, len(hosts))
        if rest or each == 0 or spec.ranks_per_node not in (None, each):
            near = f"use --ranks {max(each, 1) * len(hosts)} or {(max(each, 1) + 1) * len(hosts)}"
            why = f"does not divide by the {counted(len(hosts), 'host')} of the hostfile; {near}"
            raise spec.refuse("ranks", why)
        return spec._replace(ranks_per_node=each, origins={**spec.origins, "ranks_per_node": "--ranks"})
    chosen, left = list[tuple[str, int]](), ranks
    for host, slots in hosts:
        if left:
            chosen.append((host, min(slots or 1, left)))
            left -= chosen[-1][1]
    if left:
        why = f"the hosts of the hostfile have {ranks - left} slots; use --ranks {ranks - left}"
        raise spec.refuse("ranks", why)
    return spec._replace(
        hostfile=tuple(chosen), nodes=1, origins={k: v for k, v in spec.origins.items() if k != "nodes"}
    )
