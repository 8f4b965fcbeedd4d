"""A request of nodes or devices in ``--directive``. It replaces the request of jobgen, and sets its
numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobgen.errors import JobgenError, counted, shown
from jobgen.schedulers.directive_options import values_by_key
from jobgen.values.devices import number_of
from jobgen.values.node_groups import SUBMITTED, Group, groups_text, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jobgen.schedulers.base import Scheduler
    from jobgen.spec import Specification

_NUMBERS = ("nodes", "ranks_per_node", "gpus_per_node", "cpus_per_rank")


def directive_values(spec: Specification, scheduler: Scheduler) -> dict[str, str]:
    """Return the values of the options in the user's directives by their keys."""
    return values_by_key(spec.directive, scheduler) if spec.directive else {}


def replaced_keys(given: Iterable[str], scheduler: Scheduler) -> set[str]:
    """Return the keys of jobgen's directives that a user's directives with the keys ``given`` replace."""
    found = set(given)
    for alike in (scheduler.keys.devices, *scheduler.keys.alternatives):
        if found & alike:
            found |= alike
    return found


def remaining(lines: Iterable[str], without: set[str], scheduler: Scheduler) -> tuple[str, ...]:
    """Return the directives that set none of the keys ``without``."""
    return tuple(
        line for line in lines if not (without and values_by_key((line,), scheduler).keys() & without)
    )


def check_beside(
    request: Iterable[str], given: Mapping[str, str], spec: Specification, scheduler: Scheduler
) -> None:
    """Refuse one of the user's directives ``given`` that the scheduler refuses beside the request."""
    present = (
        {**values_by_key(request, scheduler), **given}
        if given.keys() & scheduler.keys.refused_beside.keys()
        else {}
    )
    for key, (other, option) in scheduler.keys.refused_beside.items():
        if key not in given or other not in present:
            continue
        instead = f"use {option}"
        if other in given:
            instead = f"add it to {other}"
        elif spec.site and spec.site.request(spec.queue):
            instead = "remove it"
        why = f"{scheduler.command} refuses it beside {other}; {instead}"
        line = shown(f"{key}={given[key]}")
        raise JobgenError(f"--directive {line} ({spec.origin('directive')}): {why}", "directive")


def nodes_are_open(spec: Specification, scheduler: Scheduler) -> bool:
    """Return whether the submission command must have the number of nodes."""
    return spec.nodes == SUBMITTED and scheduler.keys.nodes not in values_by_key(spec.directive, scheduler)


def with_own_request(spec: Specification, scheduler: Scheduler) -> Specification:
    """Return the specification with the numbers of the request in the user's directives.

    Raises:
        JobgenError: an option says another number, or the request has no devices for the ranks.
    """
    given = directive_values(spec, scheduler)
    if not (keys := given.keys() & scheduler.keys.all):
        return spec
    if spec.components:
        line = shown(" ".join(sorted(keys)))
        raise JobgenError(
            f"--directive {line} ({spec.origin('directive')}): each [[component]] "
            f"({spec.origin('components')}) requests its nodes; set the keys of the component",
            "directive",
        )
    _check_parts(spec, scheduler, given)
    values = _read(given, spec, scheduler)
    if scheduler.keys.devices & given.keys() and values["gpus_per_node"] is None:
        _check_devices(spec, scheduler, given)
    values = {key: one for key, one in values.items() if one not in (None, getattr(spec, key))}
    for key, value in values.items():
        if key in spec.origins:
            why = f"--directive requests {groups_text(value) or value or 'a range'}; remove one of the two"
            raise spec.refuse(key, why)
    origins = {**spec.origins, **dict.fromkeys(values, spec.origin("directive"))}
    return spec._replace(**values, origins=origins)


def _read(given: Mapping[str, str], spec: Specification, scheduler: Scheduler) -> dict[str, Any]:
    """Return the numbers of a request; None for one that it does not determine."""
    from jobgen.schedulers.request import Request
    from jobgen.values.parsers import number

    ours = Request(nodes=total(spec.nodes) or None, ranks_per_node=spec.ranks_per_node)
    request = scheduler.sizes({**values_by_key(scheduler.resources(ours, "", "")[0], scheduler), **given})
    values: dict[str, Any] = {key: getattr(request, key) for key in _NUMBERS}
    if spec.accelerator == "cpu":
        values["gpus_per_node"] = None  # the program assigns the devices to its ranks
    if request.nodes is None and scheduler.keys.nodes in given:
        values["nodes"] = SUBMITTED  # a range
    elif len(request.chunks) > 1:
        key = "ppn" if scheduler.behaviour.hosts_by_core else "mpiprocs"
        groups = tuple(Group(number(one[""]) or 1, number(one.get(key)) or 1) for one in request.chunks)
        if len({group.ranks for group in groups}) > 1:
            values["nodes"] = groups
        else:
            values["ranks_per_node"] = groups[0].ranks
    elif scheduler.behaviour.hosts_by_core and (cores := request.ranks_per_node):
        ranks = spec.ranks_per_node or number_of(spec.gpus_per_node) or request.gpus_per_node
        values["ranks_per_node"] = ranks = ranks or max(cores // (spec.cpus_per_rank or 1), 1)
        values["cpus_per_rank"] = max(cores // ranks, 1)
    return values


def _check_parts(spec: Specification, scheduler: Scheduler, given: Mapping[str, str]) -> None:
    """Refuse options that jobgen writes into a request that --directive replaces."""
    inside = {
        "constraint": "constraint" in scheduler.in_request,
        "mem": scheduler.behaviour.memory_in_request,
    }
    for key, is_part in inside.items():
        if is_part and scheduler.keys.nodes in given and getattr(spec, key) is not None:
            why = f"is a part of {scheduler.keys.nodes}, which --directive replaces: add it there"
            raise spec.refuse(key, why)


def _check_devices(spec: Specification, scheduler: Scheduler, given: Mapping[str, str]) -> None:
    """Refuse a request of other devices that replaces the request of jobgen for the ranks."""
    from jobgen.plan.allocation import devices_and_ranks

    name, count, _ = devices_and_ranks(spec, scheduler)
    if count:
        line = next(f"{key}={value}" for key, value in given.items() if key in scheduler.keys.devices)
        raise JobgenError(
            f"--directive {shown(line)} ({spec.origin('directive')}): replaces the request of the "
            f"{counted(count, f'{name} device')} of a node; name these in it, too, or use --accelerator cpu",
            "directive",
        )
