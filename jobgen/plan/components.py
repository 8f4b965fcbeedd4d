"""The components of a job, which have requests of their own: each is planned as a job of equal nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobgen.errors import JobgenError
from jobgen.launch.launchers import LAUNCHERS
from jobgen.plan.allocation import DeviceSelection, Resources
from jobgen.spec import Component, Specification
from jobgen.values.devices import Devices, number_of
from jobgen.values.node_groups import Group, groups_text, total, world_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobgen.launch.program import Program
    from jobgen.plan.plan import Plan
    from jobgen.schedulers.base import Scheduler

# Directives that the first component has for the whole job.
_OF_JOB: dict[str, Any] = {
    **dict.fromkeys(("licenses", "comment", "begin", "priority", "mail", "mail_on", "requeue", "signal")),
    "after": (),
}
_INHERITED = ("mem", "queue")  # a component without them has those of the one before


def components_of(spec: Specification, scheduler: Scheduler) -> tuple[Component, ...]:
    """Return the components; those of groups, if the scheduler has components. Equal nodes have none.

    Raises:
        JobgenError: the scheduler does not support a key of a component, or the launcher nodes that differ.
    """
    if not spec.components:
        if isinstance(spec.nodes, int):
            return ()
        if LAUNCHERS[spec.launcher].one_process:
            why = (
                f"has several ranks, and --launcher {spec.launcher} starts one process; use another launcher"
            )
            raise spec.refuse("nodes", why)
        if not scheduler.component_line:
            return ()
        return tuple(Component(group.nodes, group.ranks) for group in spec.nodes)
    for number, one in enumerate(spec.components, 1):
        for key, reason in scheduler.lacks_in_component.items():
            if getattr(one, key) is not None:
                raise JobgenError(f"{key} = {_text(one, key)} ({_place(spec, number)}): {reason}", key)
    for key in _INHERITED if scheduler.component_line else ():
        before = None
        for number, one in enumerate(spec.components, 1):
            value = getattr(one, key) or getattr(spec, key)
            if before and not value:
                raise JobgenError(
                    f"{key} ({_place(spec, number)}): {scheduler.title} gives it the {key} of the component "
                    "before; set it here, too",
                    key,
                )
            before = before or value
    return spec.components


def _place(spec: Specification, number: int) -> str:
    return f"{spec.origin('components')}, [[component]] {number}"


def _text(component: Component, key: str) -> str:
    value = getattr(component, key)
    if isinstance(value, Devices):
        return f"{value.kind}:{value.number}"
    return f"{value}M" if key == "mem" else str(value)


def component_specs(spec: Specification, components: Sequence[Component]) -> Iterator[Specification]:
    """Yield the specification of each component as a job; that of the first has the directives of the job."""
    for number, one in enumerate(components, 1):
        own = {key: value for key, value in one._asdict().items() if value is not None}
        place = _place(spec, number) if spec.components else spec.origin("nodes")
        origins = {**spec.origins, **dict.fromkeys(own, place)}
        texts = {**spec.texts, **{key: _text(one, key) for key in own}}
        if "gpus_per_node" in own and "ranks_per_node" not in own:
            own["ranks_per_node"] = None
        if number_of(one.gpus_per_node) == 0:
            own |= {"accelerator": "cpu", "gpus_per_node": None}
        yield spec._replace(
            **({} if number == 1 else _OF_JOB),
            **own,
            components=(),
            steps=(),
            ranks=None,
            sweep=None,
            array=None,
            directive=(),
            preflight=False,
            origins=origins,
            texts=texts,
        )


def with_components(
    spec: Specification, parts: Sequence[Plan], scheduler: Scheduler, program: Program
) -> Specification:
    """Return the specification with the groups of its components, whose plans are ``parts``.

    Raises:
        JobgenError: ranks without a device would run the training module, or the preflight.
    """
    groups = tuple(Group(one.resources.nodes, one.resources.ranks_per_node) for one in parts)
    texts = {**spec.texts, "nodes": groups_text(groups) or ""}
    spec = spec._replace(nodes=groups, texts=texts)
    _check_empty_lines(spec)
    row = LAUNCHERS[spec.launcher]
    if spec.remote == "ssh" and row.remote_shell and scheduler.component_line and row.renumbers_devices:
        why = f"{row.remote_shell} finds the devices of the first component only; use --remote auto"
        raise spec.refuse("remote", why)
    if len({one.resources.accelerator_name for one in parts}) > 1:
        if program.is_ours or spec.preflight:
            what = "the training module" if program.is_ours else "the preflight"
            raise spec.refuse("nodes", f"{what} needs devices in each component, or in none")
        spec = spec._replace(preflight=False)
    return spec


def _check_empty_lines(spec: Specification) -> None:
    """Refuse values that sbatch of Slurm 22.05 would change: it takes empty lines out of the script of a
    heterogeneous job."""
    why = "has an empty line, which sbatch takes out of the script of a heterogeneous job"
    if any("\n\n" in value for _, value in spec.variables):
        raise spec.refuse("env", f"{why}; use --env-file, or --env NAME")
    if any("\n\n" in word for word in spec.program):
        raise JobgenError(f"the program ({spec.program_origin}): {why}; put it into a file")


def joined(spec: Specification, parts: Sequence[Plan]) -> Resources:
    """Return the resources of a job with these components; those of a node are the most of any component."""
    of_parts = [one.resources for one in parts]
    chunks = tuple(
        chunk._replace(memory=one.resources.memory, more=one.directives.chunk)
        for one in parts
        for chunk in one.resources.chunks
    )
    cpus = max((one.cpus for one in of_parts), key=lambda one: (len(one.lists), one.node))
    ranks = max(one.ranks_per_node for one in of_parts)
    nodes = total(spec.nodes)
    return max(of_parts, key=lambda one: one.gpus_per_node)._replace(
        nodes=nodes,
        allocated=nodes,
        mixed=groups_text(spec.nodes),
        ranks_per_node=ranks,
        cpus=cpus._replace(rank=of_parts[0].cpus.rank),
        active=DeviceSelection(nodes, world_size(spec.nodes, ranks)),
        chunks=chunks,
    )
