"""Binding of ranks: whether each rank runs on the NUMA domain of its device, and has the adapters there."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobgen.topology import cpus, placement, sysfs, tools
from jobgen.topology.adapters import VARIABLES, far_devices, of_interfaces, sentence
from jobgen.topology.cpus import Cpus
from jobgen.topology.tools import Near, Tool

from .judge import Facts, Finding

if TYPE_CHECKING:
    from ..device import Device

LIMIT = 10  # seconds for a command
ONE, NEAR, WIDE, FAR, UNKNOWN = "one NUMA domain", "near", "wide", "far", "unknown"


def own_cpus() -> Cpus:
    """Return the processors that this process may use. Call it before libraries with threads change them."""
    return frozenset(os.sched_getaffinity(0))


def fact(
    mine: "Device | None", rank: int, own: Cpus, env: Mapping[str, str], sys: Path = sysfs.SYS
) -> dict[str, Any] | None:
    """Return the binding of a rank with its local rank, or None if the rank has no device.

    state: one of the constants above; near: the first hardware threads of the cores next to the device;
    text: what is wrong; adapters: nearer network adapters that a variable leaves out
    """
    node = sysfs.node(sys)
    if len(node.domains) < 2:
        return {"state": ONE}
    if mine is None or mine.kind == "cpu":
        return None
    address = _address(mine)
    near = (sysfs.device(address, sys) if address else None) or _by_tool(mine, env)
    near = placement.with_domain(near, node.domains)
    seat = placement.Seat(rank, own, f"device {address or mine.index}", near)
    if not near.cpus:
        return {"state": UNKNOWN}
    state = FAR if placement.far([seat]) else WIDE if placement.wide([seat]) else NEAR
    firsts = cpus.write(min(core) for one in node.cores if (core := one & near.cpus))
    text = placement.sentence([seat], node.domains) if state == FAR else ""
    adapters = _missing_adapters(mine, seat, env, sys)
    return {"state": state, "local_rank": rank, "near": firsts, "text": text, "adapters": adapters}


def _missing_adapters(mine: "Device", seat: placement.Seat, env: Mapping[str, str], sys: Path) -> str:
    """Return which nearer adapters the variables of the rank leave out; '' if there are none."""
    texts = []
    for name, variable in VARIABLES.items():
        if value := env.get(name):
            if variable.interfaces:
                links = of_interfaces(value, sysfs.interfaces(sys), seat.near.domain)
            else:
                links = dict(seat.near.links or _by_tool(mine, env).links)
            if missing := far_devices(variable, value, {seat.device: links}):
                texts.append(sentence(name, value, missing))
    return "; ".join(texts)


def _address(mine: "Device") -> str:
    """Return the PCI address of the device, or '' if torch does not provide it."""
    import torch

    try:
        properties = getattr(torch, mine.type).get_device_properties(mine.index)
    except (AttributeError, AssertionError, RuntimeError):  # not every backend has it
        return ""
    parts = [getattr(properties, f"pci_{name}_id", None) for name in ("domain", "bus", "device")]
    numbers = [part for part in parts if isinstance(part, int)]
    return "{:04x}:{:02x}:{:02x}.0".format(*numbers) if len(numbers) == 3 else ""


def _by_tool(mine: "Device", env: Mapping[str, str]) -> Near:
    """Return what the vendor's command shows, by the number of the device on this host."""
    tool: Tool | None = mine.row.topology
    if tool is None:
        return Near()
    nears = tool.read(_output(tool.command))
    listing = tools.listing(_output(tool.listing)) if tool.listing else {}
    order = tools.visible(tool, env, sorted(nears), listing) or []
    return nears[order[mine.index]] if mine.index < len(order) else Near()


def _output(command: tuple[str, ...]) -> str:
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout


def findings(facts: Facts) -> list[Finding]:
    """Return a note for each host with ranks that are bound to other domains, or to several. Pure."""
    result = []
    for host, ranks in _by_host(facts).items():
        bad = [one for one in ranks if one["state"] == FAR]
        loose = [one for one in ranks if one["state"] == WIDE]
        option = _option(ranks)
        if bad:
            texts = "; ".join(one["text"] for one in bad[:2])
            more = f"; {len(bad) - 2} more ranks" if len(bad) > 2 else ""
            result.append(Finding(host, "binding", False, f"{texts}{more}: use {option}"))
        elif loose:
            text = f"{len(loose)} of {len(ranks)} ranks may run on several NUMA domains: use {option}"
            result.append(Finding(host, "binding", False, text))
        if adapters := list(dict.fromkeys(one["adapters"] for one in ranks if one.get("adapters"))):
            more = f"; {len(adapters) - 2} more ranks" if len(adapters) > 2 else ""
            result.append(Finding(host, "adapters", False, f"{'; '.join(adapters[:2])}{more}"))
    return result


def _by_host(facts: Facts) -> dict[str, list[Mapping[str, Any]]]:
    hosts: dict[str, list[Mapping[str, Any]]] = {}
    for each in facts.values():
        if each.get("binding"):
            hosts.setdefault(each["host"], []).append(each["binding"])
    return hosts


def _option(ranks: Iterable[Mapping[str, Any]]) -> str:
    """Return the option that binds the ranks of a host next to their devices."""
    bindings = sorted((one for one in ranks if "near" in one), key=lambda one: int(one["local_rank"]))
    nears = [cpus.read(one["near"]) for one in bindings]
    every = cpus.NONE.union(*nears)
    lists = placement.lists(nears, [frozenset({cpu}) for cpu in sorted(every)], every)
    return f"--cpu-bind '{';'.join(lists)}'" if lists else "--cpu-bind with a list for each rank"


def word(ranks: Iterable[Mapping[str, Any]]) -> str:
    """Return the binding of the ranks of a host for the table, '' if it is not known."""
    states = [one["binding"]["state"] for one in ranks if one.get("binding")]
    if FAR in states:
        return f"{states.count(FAR)} of {len(states)} far"
    return next((state for state in (WIDE, UNKNOWN, NEAR, ONE) if state in states), "")
