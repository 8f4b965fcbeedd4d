"""Check of the network adapters: whether a variable leaves out those next to the device of a rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jobgen.doctor.binding import Unknown, near_devices, ranks_here
from jobgen.doctor.verdict import NOTE, OK, WARNING, Case, Verdict
from jobgen.topology import sysfs
from jobgen.topology.adapters import (
    VARIABLES,
    FarDevice,
    better,
    far_devices,
    matching_adapters,
    of_interfaces,
    sentence,
)
from jobgen.topology.tools import Near

_CHECK = "adapters"
_WHY = "its data go from one NUMA domain to another, or do not use GPUDirect"
_WHY_TCP = "data sent by TCP go from one NUMA domain to another; those of InfiniBand or a plug-in do not"


def adapters(case: Case, sys: Path = sysfs.SYS, allowed: Iterable[int] | None = None) -> Iterator[Verdict]:
    """Compare the adapters that variables choose with those next to the devices of the ranks of this node."""
    if not case.plan.resources.gpus_per_node or not (case.in_job or case.plan.scheduler.behaviour.one_host):
        return
    node = sysfs.node(sys, allowed)
    try:
        nears = near_devices(case, node, sys)
        devices = ranks_here(case, nears, node).devices
    except Unknown:
        return  # the check of the binding says why
    domains = sysfs.interfaces(sys)
    seen = {f"device {one}": nears[one] for one in devices}
    for name, variable in VARIABLES.items():
        if value := case.here.env.get(name):
            links = _interfaces(value, seen, domains) if variable.interfaces else _adapters(seen)
            yield from _judged(case, name, value, links)


def _adapters(seen: Mapping[str, Near]) -> dict[str, dict[str, str]]:
    return {device: dict(near.links) for device, near in seen.items() if near.links}


def _interfaces(
    value: str, seen: Mapping[str, Near], domains: Mapping[str, int | None]
) -> dict[str, dict[str, str]]:
    return {device: of_interfaces(value, domains, near.domain) for device, near in seen.items()}


def _judged(case: Case, name: str, value: str, links: Mapping[str, Mapping[str, str]]) -> Iterator[Verdict]:
    there = {adapter for each in links.values() for adapter in each}
    if not there:
        return
    if not matching_adapters(value, there, VARIABLES[name].prefixes):
        listed = ", ".join(sorted(there))
        yield Verdict(_CHECK, WARNING, f"{name}={value} names none of the adapters here: {listed}")
        return
    if not (found := far_devices(VARIABLES[name], value, links)):
        yield Verdict(_CHECK, OK, f"{name}={value} leaves each device its nearest adapters")
        return
    yield _far(case, name, value, found, better(links))


def _far(case: Case, name: str, value: str, found: list[FarDevice], other: str) -> Verdict:
    tcp = VARIABLES[name].interfaces
    by_option = tcp and case.plan.spec.interface == value
    option = f"--interface {other}" if by_option else f"--env {name}={other}"
    key = "interface" if by_option else name
    place = _place(case, name, value, by_option)
    remedy = f'in {place}: {key} = "{other}"; or for this job {option}' if place else f"use {option}"
    text = sentence(name, value, found)
    return Verdict(_CHECK, NOTE if tcp else WARNING, text, _WHY_TCP if tcp else _WHY, remedy)


def _place(case: Case, name: str, value: str, by_option: bool) -> str:
    """Return the line of the site file that sets the variable to this value; empty if another place does."""
    spec = case.plan.spec
    if (site := spec.site) is None:
        return ""
    at: tuple[str, ...] = ("launch", "interface") if by_option else ("environment", "env", name)
    chosen_network = site.file.networks.get(spec.network or "")
    if chosen_network and chosen_network.env.get(name) == value:
        at = ("networks", spec.network or "", "env", name)
    elif not by_option and dict(spec.variables).get(name) != value:
        return ""
    return site.place(at) if at in site.places else ""
