"""The topology that the kernel shows below /sys.

https://docs.kernel.org/admin-guide/mm/numaperf.html
https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci (numa_node, local_cpulist)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from jobgen.topology import cpus
from jobgen.topology.cpus import Cpus
from jobgen.topology.tools import Near

SYS = Path("/sys")


class NodeTopology(NamedTuple):
    """The processors of each NUMA domain and of each core (its hardware threads), and those that this process
    may use."""

    domains: dict[int, Cpus]
    cores: tuple[Cpus, ...]
    allowed: Cpus

    @property
    def cpus(self) -> Cpus:
        return cpus.NONE.union(*self.domains.values())


def node(sys: Path = SYS, allowed: Iterable[int] | None = None) -> NodeTopology:
    """Return the topology of this host. Without it in /sys, there is no domain."""
    domains = _domains(sys)
    cores = _cores(sys) or tuple(frozenset({cpu}) for one in domains.values() for cpu in sorted(one))
    return NodeTopology(domains, cores, frozenset(os.sched_getaffinity(0) if allowed is None else allowed))


def _domains(sys: Path) -> dict[int, Cpus]:
    """Return the domains that have processors; the memory of a GPU can be a domain, too."""
    found = {}
    for path in sys.glob("devices/system/node/node*"):
        here = cpus.read(_text(path / "cpulist"))
        if here and re.fullmatch(r"node\d{1,4}", path.name, re.ASCII):
            found[int(path.name[4:])] = here
    return dict(sorted(found.items()))


def _cores(sys: Path) -> tuple[Cpus, ...]:
    """Return the processors of each core, in the order of the first ones."""
    files = sys.glob("devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list")
    return tuple(sorted({one for file in files if (one := cpus.read(_text(file)))}, key=min))


def device(address: str, sys: Path = SYS) -> Near | None:
    """Return the topology next to a PCI device such as ``0000:07:00.0``; None if the kernel does not show
    it."""
    place = sys / "bus/pci/devices" / address
    if not re.fullmatch(r"[0-9a-f]{4,8}(:[0-9a-f]{2}){2}\.[0-7]", address, re.ASCII) or not place.is_dir():
        return None
    domain = _text(place / "numa_node").strip()
    number = int(domain) if re.fullmatch(r"\d{1,4}", domain, re.ASCII) else None
    return Near(cpus.read(_text(place / "local_cpulist")), number)


def interfaces(sys: Path = SYS) -> dict[str, int | None]:
    """Return the domain of each network interface of a device: None if the kernel does not know it."""
    found = {}
    for path in sorted(sys.glob("class/net/*/device")):
        domain = _text(path / "numa_node").strip()
        found[path.parent.name] = int(domain) if re.fullmatch(r"\d{1,4}", domain, re.ASCII) else None
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
