"""Packed arrays: several points of an array or a sweep side by side in the allocation of one task."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import counted, one_of
from jobgen.launch.containers import DAEMONS
from jobgen.launch.launchers import LAUNCHERS
from jobgen.plan.launch_method import start_nodes
from jobgen.plan.node_parts import NodePart, PartRequest, check_variable, divide
from jobgen.plan.node_work import KEYS
from jobgen.plan.site_binding import rank_binding
from jobgen.values.arrays import Array
from jobgen.values.devices import SHARD, type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.base import Scheduler
    from jobgen.spec import Specification

# Options that name single nodes, or replace some.
_AGAINST = ("include", "exclude", "hostfile", "spare_nodes")


class Pack(NamedTuple):
    """The points of each task of a packed array.

    ``size`` is the number of points side by side, ``points`` are the indices of all in the notation of
    arrays, ``nodes`` are those of a task, ``cores`` those of each. ``parts`` are the parts of each node, one
    a point; empty if each point has whole nodes.
    """

    size: int
    points: str
    nodes: int
    cores: int
    parts: tuple[NodePart, ...]


def check_pack(spec: Specification) -> None:
    """Refuse a pack without points, or beside an option that it cannot be used with.

    Raises:
        JobgenError: the message names the option.
    """
    if spec.pack is None:
        return
    if spec.array is None and spec.sweep is None:
        raise spec.refuse("pack", "packs the points of an array: add --array, or a sweep")
    if spec.steps:
        raise spec.refuse("pack", "is for a job without [[step]]: a step is no point of an array")
    for key in _AGAINST:
        if getattr(spec, key):
            raise spec.refuse(key, "is for one program on all nodes of the job, and --pack has several")
    for key in KEYS:
        if getattr(spec, key):
            why = "is once a node, and the points of --pack begin and end alone; use --setup"
            raise spec.refuse(key, why)
    if not spec.nodes:
        raise spec.refuse("nodes", "the points of a task need a number of equal nodes")
    if not isinstance(spec.nodes, int):  # check_groups refuses them
        return
    each = max(1, spec.nodes // spec.pack)
    if spec.min_nodes and spec.min_nodes >= each:
        raise spec.refuse("min_nodes", f"must be less than the nodes of a point, which has {each}")
    for kind, job in spec.after:
        if kind == "aftercorr":
            raise spec.refuse(
                "after",
                f"aftercorr:{job} pairs the tasks of two arrays, and a task with --pack has several points: "
                "use afterok or afterany",
            )


def with_sizes(spec: Specification, scheduler: Scheduler) -> Specification:
    """Return the specification with a rank of each point, or the cores of a node for all its points, if
    neither devices nor an option give their number."""
    if spec.pack is None or not isinstance(spec.nodes, int):
        return spec
    each = max(1, spec.pack // spec.nodes)
    if not LAUNCHERS[spec.launcher].one_process:
        alone = spec.accelerator == "cpu" and spec.ranks_per_node is None
        return spec._replace(ranks_per_node=each) if alone else spec
    if spec.cpus_per_node is not None:
        return spec
    return spec._replace(cpus_per_node=each * (spec.cpus_per_rank or scheduler.default_cpus_per_rank))


def tasks_of(spec: Specification, array: Array) -> Array:
    """Return the array of the tasks for an array of points.

    Raises:
        JobgenError: the limit of points is no number of tasks.
    """
    if not spec.pack:
        return array
    size, limit = spec.pack, array.limit
    if limit is not None and limit % size:
        below, above = limit - limit % size, limit - limit % size + size
        raise spec.refuse(
            "array",
            f"%{limit} counts points, and a task of --pack {size} has {size}: {limit} / {size} is no whole "
            f"number of tasks; use {one_of(f'%{one}' for one in (below, above) if one)}",
        )
    tasks = -(-array.size // size)
    return Array(((0, tasks - 1, 1),), None if limit is None else limit // size)


def pack_of(spec: Specification, resources: Resources, points: Array) -> Pack:
    """Return the pack of a job; ``resources`` are those of each task, ``points`` all points.

    Raises:
        JobgenError: the points do not fit the nodes, devices or cores; the message has the arithmetic.
    """
    assert spec.pack
    if spec.pack > resources.nodes and type_of(spec.gpus_per_node) == SHARD:
        raise spec.refuse("gpus_per_node", "a shard is a part of a GPU, which points cannot divide")
    if misfit := _misfit(spec.pack, resources, spec):
        why, other = misfit
        near = [
            f"--pack {one_of(map(str, _nearest(spec.pack, resources, spec)))}",
            *([other] if other else []),
        ]
        raise spec.refuse("pack", f"{why}; use {', or '.join(near)}")
    parts: tuple[NodePart, ...] = ()
    each = spec.pack // resources.nodes
    if each > 1:
        devices, cores = resources.gpus_per_node // each, resources.cpus.node // each
        requests = [PartRequest("--pack", devices or None, cores) for _ in range(each)]
        variable = resources.accelerator.part_variable
        parts = divide(requests, resources.gpus_per_node, resources.cpus.node, variable)
    return Pack(spec.pack, points._replace(limit=None).text(), resources.nodes, resources.cpus.node, parts)


def _misfit(size: int, resources: Resources, spec: Specification) -> tuple[str, str] | None:
    """Return why so many points do not fit the allocation of a task, and the option with which they would;
    None if they do."""
    nodes = resources.nodes
    if size < nodes:
        why = f"{nodes} nodes / {counted(size, 'point')} is no whole number of nodes"
        return (why, "") if nodes % size else None
    if size % nodes:
        return f"{counted(size, 'point')} / {nodes} nodes is no whole number of points a node", ""
    each = size // nodes
    ranks = 0 if LAUNCHERS[spec.launcher].one_process else resources.ranks_per_node
    cores = resources.cpus.node if ranks or "cpus_per_node" in spec.origins else 0  # else those of each point
    of_ranks = ("--ranks", nodes) if spec.ranks else ("--ranks-per-node", 1)
    amounts = (
        (resources.gpus_per_node, "GPU", ("--gpus-per-node", 1)),
        (ranks, "rank", of_ranks),
        (cores, "core", ("--cpus-per-node", 1)),
    )
    for amount, unit, (option, times) in amounts:
        if amount % each:
            why = (
                f"{counted(amount, unit)} of a node / {counted(each, 'point')} is no whole number of {unit}s"
            )
            return why, f"{option} {each * times}" if amount < each else ""
    return None


def _nearest(size: int, resources: Resources, spec: Specification) -> Iterator[int]:
    """Yield the greatest number of points below that fits, and the smallest one above."""
    most = resources.nodes * max(resources.gpus_per_node, resources.cpus.node, 1)
    for numbers in (range(min(size, most + 1) - 1, 0, -1), range(size + 1, most + 1)):
        yield from [one for one in numbers if _misfit(one, resources, spec) is None][:1]


def spec_of_point(
    spec: Specification, scheduler: Scheduler, resources: Resources, pack: Pack
) -> Specification:
    """Return the specification of one point on its part of the allocation.

    Raises:
        JobgenError: the launcher, the container or the binding is for whole nodes, or for one host.
    """
    part = pack.parts[0] if pack.parts else None
    each = max(1, len(pack.parts))
    one_process = LAUNCHERS[spec.launcher].one_process
    ranks = 1 if one_process else resources.ranks_per_node // each
    away = pack.nodes > 1 < pack.size
    devices = len(part.devices) if part else resources.gpus_per_node
    own = spec._replace(
        pack=None,
        array=None,
        sweep=None,
        after=(),
        log=None,
        away=away,
        ranks=None,
        nodes=max(1, pack.nodes // pack.size),
        ranks_per_node=ranks,
        cpus_per_rank=max(1, len(part.cores) // ranks) if part else resources.cpus.rank,
        cpus_per_node=None,
        gpus_per_node=devices or None,
        accelerator=resources.accelerator_name,
        cpu_bind=spec.cpu_bind or (None if part else rank_binding(spec, resources, spec.launcher, ranks)),
        directive=(),
        site=None,
        network=None,
    )
    if away and one_process and "launcher" not in spec.origins:
        own = own._replace(launcher=own.default_launcher.name)
    _check_side_by_side(own, scheduler, part)
    return own


def _check_side_by_side(own: Specification, scheduler: Scheduler, part: NodePart | None) -> None:
    """Refuse what whole nodes, or one program at a time, are needed for."""
    if own.container in DAEMONS:
        raise own.refuse(
            "container",
            "its containers are ended for all points at once; those side by side can use apptainer or enroot",
        )
    if own.away and LAUNCHERS[own.launcher].one_process:
        able = "srun" if scheduler.node_step else "mpirun"
        raise own.refuse(
            "launcher",
            f"{own.launcher} starts its process on the first node of the job only, and --pack has points on "
            f"others; use {able}, or --nodes 1",
        )
    if part is None:
        return
    check_variable(own, part, "each point", "leave out --pack")
    if own.cpu_bind and own.cpu_bind[0] == "list":
        raise own.refuse("cpu_bind", "lists are for whole nodes, and a point of --pack has a part of one")
    if own.master_port:
        why = "is one port, and the points of --pack on a node need one each: remove it"
        raise own.refuse("master_port", why)
    if start_nodes(own, scheduler) == LAUNCHERS[own.launcher].remote_shell:
        raise own.refuse(
            "remote",
            f"starts {own.launcher} on whole nodes, and a point of --pack has a part of one; use auto",
        )
