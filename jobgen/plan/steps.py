"""The steps of a job: each is a job of its own within the allocation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import JobgenError, nearest
from jobgen.launch.containers import DAEMONS
from jobgen.launch.launchers import LAUNCHERS
from jobgen.plan.launch_method import start_nodes
from jobgen.plan.node_parts import NodePart, PartRequest, check_variable, divide
from jobgen.plan.site_binding import rank_binding
from jobgen.plan.site_directives import SiteWords, step_words
from jobgen.spec import NO_CONTAINER, first_nodes
from jobgen.values.devices import SHARD, type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobgen.plan.allocation import Resources
    from jobgen.schedulers.base import Scheduler
    from jobgen.spec import Ready, Specification, Step

# Options that need one program, or all nodes of the job.
_AGAINST = ("include", "exclude", "hostfile", "min_nodes")


class StepPlace(NamedTuple):
    """The place of a step among the others: its number and name, its first node, from 0, the numbers of the
    steps for which it waits and of the one with which it is ended, and when it is ready."""

    number: int
    name: str | None
    first_node: int
    waits_for: tuple[int, ...]
    ends_with: int | None
    ready: Ready | None


class StepRequest(NamedTuple):
    """The specification of a step, its place, and its part of each of its nodes (None: whole nodes)."""

    spec: Specification
    place: StepPlace
    part: NodePart | None


def step_requests(spec: Specification, scheduler: Scheduler, resources: Resources) -> Iterator[StepRequest]:
    """Yield the requests of the steps; ``resources`` are those of the job.

    Raises:
        JobgenError: a step does not fit the allocation, or an option is for a job without steps.
    """
    if not spec.steps:
        return
    for key in _AGAINST:
        if getattr(spec, key):
            raise spec.refuse(key, "is for a job without [[step]]")
    if not resources.nodes:
        raise spec.refuse("nodes", "the steps of a job need a number of equal nodes")
    check = "preflight" if spec.preflight else "spare_nodes"
    if getattr(spec, check) and "launcher" not in spec.origins:
        raise spec.refuse(check, "checks all nodes of the job with one launcher: add --launcher torchrun")
    places = list(_places(spec))
    parts: dict[int, NodePart] = {}
    for group in _groups(spec):
        _check_nodes(spec, resources, group)
        parts.update(_parts(spec, resources, group))
    for number, (step, place) in enumerate(zip(spec.steps, places, strict=True), 1):
        most = {"nodes": resources.nodes, "ranks_per_node": resources.ranks_per_node}
        for key, limit in most.items():
            if (getattr(step, key) or 0) > limit:
                raise JobgenError(
                    f"{key} = {getattr(step, key)} ([[step]] {number}): the job has {limit}; "
                    f"increase {key} in [resources]"
                )
        own = _with_part(spec, resources, step, parts.get(number))
        own = _with_container(spec, own, step, f"[[step]] {number}")
        _check_side_by_side(own, scheduler, step, place, parts.get(number), _has_others(spec, number))
        yield StepRequest(own, place, parts.get(number))


def site_of_step(
    spec: Specification,
    scheduler: Scheduler,
    resources: Resources,
    part: NodePart | None,
    remedy: str = "leave out gpus and cores",
) -> SiteWords:
    """Return what the site of the job ``spec`` adds to a step with these resources.

    Raises:
        JobgenError: the site gives each rank devices of whole nodes, which a part of a node has not.
    """
    if part is None:
        return step_words(spec, scheduler, resources)
    words = step_words(spec._replace(cpu_bind=("none", ())), scheduler, resources)
    if found := re.search(r"\S*gpu\S*|\S*gres\S*", words.srun_ranks + words.srun_nodes):
        raise spec.refuse(
            "launcher",
            f"the site starts ranks with {found[0]}, which is for whole nodes: {remedy}",
        )
    return words


def _groups(spec: Specification) -> list[list[int]]:
    """Return the numbers of the steps at the same time, in groups."""
    groups: list[list[int]] = []
    for number, step in enumerate(spec.steps, 1):
        if step.parallel:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _has_others(spec: Specification, number: int) -> bool:
    return any(number in group and len(group) > 1 for group in _groups(spec))


def _with_part(spec: Specification, resources: Resources, step: Step, part: NodePart | None) -> Specification:
    """Return the specification of a step on its part of the nodes, or on whole nodes."""
    launcher = spec.launcher_of(step)
    row, whole = LAUNCHERS[launcher], resources.ranks_per_node
    most = part.ranks(whole, resources.gpus_per_node, resources.cpus.node) if part else whole
    ranks = step.ranks_per_node or (1 if row.one_process else most)
    devices = len(part.devices) if part else resources.gpus_per_node
    return spec._replace(
        steps=(),
        away=spec.is_away(step),
        program=step.program,
        launcher=launcher,
        nodes=step.nodes or resources.nodes,
        ranks=None,
        ranks_per_node=ranks,
        cpu_bind=spec.cpu_bind or (None if part else rank_binding(spec, resources, launcher, ranks)),
        cpus_per_rank=max(1, len(part.cores) // ranks) if part else resources.cpus.rank,
        cpus_per_node=None,
        env=(
            *step.env,
            *((name, value) for name, value in spec.env if name not in dict(step.own_env)),
            *step.own_env,
        ),
        accelerator=resources.accelerator_name if devices else "cpu",
        gpus_per_node=devices or None,
        preflight=False,
        spare_nodes=None,
        gpu_telemetry=spec.gpu_telemetry if devices else None,
        directive=(),
        site=None,
        network=None,
        mpi=spec.mpi if launcher == spec.launcher else None,
    )


def _with_container(spec: Specification, own: Specification, step: Step, number: str) -> Specification:
    """Return the specification of a step with its container: that of the job, its own, or none."""
    keys = [key for key in ("container", "image", "bind", "container_arg") if getattr(step, key) is not None]
    texts = {key: text for key, text in own.texts.items() if key not in keys}
    own = own._replace(origins={**own.origins, **dict.fromkeys(keys, number)}, texts=texts)
    if step.container == NO_CONTAINER:
        return own._replace(container=None, image=None, bind=(), container_arg=())
    return own._replace(
        container=step.container or spec.container,
        image=step.image or spec.image,
        bind=spec.bind if step.bind is None else step.bind,
        container_arg=spec.container_arg if step.container_arg is None else step.container_arg,
    )


def _check_nodes(spec: Specification, resources: Resources, group: list[int]) -> None:
    """Refuse steps at the same time that need more nodes than the job has."""
    firsts = tuple(first_nodes(spec.steps, resources.nodes))
    sizes: dict[int, int] = {}  # the nodes of the steps that begin on the same one
    for number in group:
        first, own = firsts[number - 1], spec.steps[number - 1].nodes or resources.nodes
        sizes[first] = max(own, sizes.get(first, 0))
    if len(group) > 1 and sum(sizes.values()) > resources.nodes:
        total = " + ".join(map(str, sizes.values()))
        total += f" = {sum(sizes.values())}" if len(sizes) > 1 else ""
        key = "starts" if spec.steps[group[-1] - 1].starts else "parallel = true"
        raise JobgenError(
            f"{key} ([[step]] {group[-1]}): steps at the same time need {total} nodes, "
            f"but the job has {resources.nodes}; give each fewer nodes, or a part of each with gpus or "
            "cores, or increase nodes in [resources]"
        )


def _parts(spec: Specification, resources: Resources, group: list[int]) -> Iterator[tuple[int, NodePart]]:
    """Yield the numbers of the steps with a part of their nodes, and the parts."""
    firsts = tuple(first_nodes(spec.steps, resources.nodes))
    numbers = [number for number in group if spec.steps[number - 1].shares_nodes]
    if numbers and type_of(spec.gpus_per_node) == SHARD:
        raise spec.refuse("gpus_per_node", "a shard is a part of a GPU, which steps cannot divide")
    row = resources.accelerator
    for first in dict.fromkeys(firsts[number - 1] for number in numbers):
        here = [number for number in numbers if firsts[number - 1] == first]
        steps = [(number, spec.steps[number - 1]) for number in here]
        requests = [PartRequest(f"[[step]] {number}", one.gpus, one.cores) for number, one in steps]
        yield from zip(
            here,
            divide(requests, resources.gpus_per_node, resources.cpus.node, row.part_variable),
            strict=True,
        )


def _places(spec: Specification) -> Iterator[StepPlace]:
    names: dict[str, int] = {}
    for number, step in enumerate(spec.steps, 1):
        if step.name in names:
            raise JobgenError(
                f"name = {step.name} ([[step]] {number}): is that of [[step]] {names[step.name]}, too"
            )
        if step.name:
            names[step.name] = number
    groups = {number: group for group in _groups(spec) for number in group}
    firsts = first_nodes(spec.steps, spec.nodes if isinstance(spec.nodes, int) else 0)
    ports: dict[tuple[int, int, int], int] = {}  # the group, the first node and a port of a step; its number
    for (number, step), first in zip(enumerate(spec.steps, 1), firsts, strict=True):
        waits = tuple(_number(spec, names, number, "starts", name) for name in step.starts)
        ends = _number(spec, names, number, "ends", step.ends) if step.ends else None
        for other in filter(None, (*waits, ends)):
            if other not in groups[number]:
                key = "starts" if other in waits else "ends"
                raise JobgenError(
                    f"{key} ([[step]] {number}): {spec.steps[other - 1].name} does not run at the same time; "
                    "add parallel = true to the later one"
                )
        _check_order(spec, number, waits, ends)
        _check_ready(spec, number, step)
        _add_ports(spec, number, (groups[number][0], first), ports)
        yield StepPlace(number, step.name, first, waits, ends, step.ready)


def _add_ports(
    spec: Specification, number: int, place: tuple[int, int], ports: dict[tuple[int, int, int], int]
) -> None:
    """Add the fixed ports of a step to those of its group on its first node; refuse one that is there."""
    step = spec.steps[number - 1]
    fixed = [(step.ready.port, False)] if step.ready and step.ready.port else []
    if spec.master_port and not LAUNCHERS[spec.launcher_of(step)].one_process:
        fixed.append((spec.master_port, True))
    for port, of_master in fixed:
        other = ports.get((*place, port))
        if other and of_master:
            why = f"is a port of [[step]] {other} on the same node, too; remove it"
            raise spec.refuse("master_port", why)
        if other:
            raise JobgenError(
                f"port = {port} ([[step]] {number}, ready): is that of [[step]] {other} on the same node, "
                "too; give each its own, or true"
            )
        ports[(*place, port)] = number


def _number(spec: Specification, names: dict[str, int], number: int, key: str, name: str) -> int:
    """Return the number of the step with a name."""
    if name not in names:
        raise JobgenError(f"{key} ([[step]] {number}): no step has the name {name}{nearest(name, names)}")
    return names[name]


def _check_order(spec: Specification, number: int, waits: tuple[int, ...], ends: int | None) -> None:
    """Refuse steps that wait for each other, or end with each other."""
    for other in waits:
        name = spec.steps[other - 1].name
        if other >= number:
            itself = "itself" if other == number else f"{name}, a later step; put that one before it"
            if spec.steps[number - 1].name in spec.steps[other - 1].starts and other != number:
                itself = f"{name}, which waits for it: neither would start"
            raise JobgenError(f"starts ([[step]] {number}): it waits for {itself}")
        if spec.steps[other - 1].ready is None:
            raise JobgenError(
                f"starts ([[step]] {number}): {name} does not say when it is ready: add "
                "ready = { port = true } to it, or a file, or a line of its output"
            )
    if ends and spec.steps[ends - 1].ends:
        raise JobgenError(
            f"ends ([[step]] {number}): {spec.steps[ends - 1].name} is itself ended with another step"
        )


def _check_ready(spec: Specification, number: int, step: Step) -> None:
    if step.ready is None:
        return
    if step.ready.by_port and step.name is None:
        raise JobgenError(
            f'ready ([[step]] {number}): a step with a port needs a name, such as name = "server"'
        )
    if step.ready.line and spec.rank_logs in ("failed", "none"):
        raise spec.refuse("rank_logs", f"the line of [[step]] {number} is read in a log; use node or rank")
    if not any(step.name in other.starts for other in spec.steps if step.name) and not step.ready.by_port:
        raise JobgenError(
            f"ready ([[step]] {number}): no step starts after it; add starts to one, or leave it out"
        )


def _check_side_by_side(
    own: Specification,
    scheduler: Scheduler,
    step: Step,
    place: StepPlace,
    part: NodePart | None,
    others: bool,
) -> None:
    """Refuse what whole nodes, or one step at a time, are needed for."""
    number = f"[[step]] {place.number}"
    if others and own.container in DAEMONS:
        raise JobgenError(
            f"container = {own.container} ({number}): its containers are ended for all steps at once; "
            "steps at the same time can use apptainer or enroot"
        )
    if part is None:
        return
    if part.variable in dict(step.own_env):
        reason = f"{part.variable} would replace the devices of {number}; leave it out"
        raise JobgenError(f"env ({number}): {reason}")
    check_variable(own, part, number, "leave out gpus and cores")
    ranks = own.ranks_per_node or 1
    if ranks > len(part.cores):
        raise JobgenError(
            f"ranks_per_node = {ranks} ({number}): do not fit its {len(part.cores)} cores of each node"
        )
    if step.gpus and ranks > len(part.devices):
        raise JobgenError(
            f"ranks_per_node = {ranks} ({number}): do not fit its {len(part.devices)} GPUs of each node"
        )
    if own.cpu_bind and own.cpu_bind[0] == "list":
        raise own.refuse("cpu_bind", f"lists are for whole nodes, but {number} has a part; use cores in it")
    if start_nodes(own, scheduler) == LAUNCHERS[own.launcher].remote_shell:
        raise own.refuse("remote", f"starts {own.launcher} on whole nodes, but {number} has a part; use auto")
