"""The tools of the vendors that print which processors and network adapters are next to a device. Pure.

nvidia-smi topo -m:         https://docs.nvidia.com/deploy/nvidia-smi/index.html
rocm-smi --showtoponuma:    https://rocm.docs.amd.com/projects/rocm_smi_lib/en/latest/
npu-smi info -t topo:       a table like that of nvidia-smi, without network adapters
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from jobgen.topology import adapters, cpus
from jobgen.topology.cpus import Cpus

_TITLES = r"CPU Affinity|NUMA Affinity|GPU NUMA ID"


class Near(NamedTuple):
    """The processors, the NUMA domain and the network adapters next to a device, as far as these are known,
    and its links to all adapters of the host."""

    cpus: Cpus = cpus.NONE
    domain: int | None = None
    adapters: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


class Tool(NamedTuple):
    """A command, and the reader of its output by the numbers of the devices.

    ``visible`` are the variables that select the devices of a process; each one counts those that the ones
    before it have left.
    ``listing`` is the command that prints number, identifier and PCI address of each device.
    """

    command: tuple[str, ...]
    read: Callable[[str], dict[int, Near]]
    visible: tuple[str, ...]
    listing: tuple[str, ...] = ()


def matrix(text: str) -> dict[int, Near]:
    """Read the table of nvidia-smi or npu-smi. Lines that are not complete are left out."""
    lines = re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()
    heads = (i for i, line in enumerate(lines) if re.search(r"\b[GN]PU\d.*CPU Affinity", line))
    if (head := next(heads, None)) is None:
        return {}
    columns = lines[head].partition("CPU Affinity")[0].split()
    titles = len(re.findall(_TITLES, lines[head]))
    names = dict(re.findall(r"^\s*(NIC\d+):\s*(\S+)", text, re.MULTILINE))
    found = {}
    for line in lines[head + 1 :]:
        match = re.match(r"\s*[GN]PU(\d{1,4})\s(.*)", line, re.ASCII)
        cells = match[2].split() if match else []
        if match and len(cells) >= len(columns):
            links = {names.get(one, one): link for one, link in zip(columns, cells, strict=False)}
            found[int(match[1])] = _near(links, cells[len(columns) :], titles)
    return found


def _near(links: Mapping[str, str], rest: list[str], titles: int) -> Near:
    """Return the topology in a line of the table. In a job with few processors, its list of processors may be
    blank."""
    if 0 < len(rest) < titles and not re.search("[-,]", rest[0]):
        rest = ["", *rest]
    domain = rest[1] if len(rest) > 1 else ""
    those = {name: link for name, link in links.items() if link in adapters.LINKS and _adapter(name)}
    here = cpus.read(rest[0]) if rest else cpus.NONE
    return Near(here, _number(domain), adapters.near(those), tuple(those.items()))


def _adapter(name: str) -> bool:
    return not re.fullmatch(r"[GN]PU\d+", name)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,4}", text, re.ASCII) else None


def domains_of_devices(text: str) -> dict[int, Near]:
    """Read the lines ``GPU[0] : (Topology) Numa Affinity: 3`` of rocm-smi; the domain -1 is unknown."""
    lines = r"^\s*GPU\s*\[?(\d{1,4})\]?\s*:\s*\(Topology\) Numa Affinity:\s*(\S+)\s*$"
    found = re.findall(lines, text, re.MULTILINE | re.ASCII)
    return {int(device): Near(domain=_number(domain)) for device, domain in found}


def listing(text: str) -> dict[int, tuple[str, str]]:
    """Return identifier and PCI address of each device, from lines like ``0, GPU-12, 00000000:07:00.0``."""
    line = r"^\s*(\d{1,4}),\s*([\w/-]+),\s*([0-9a-f]{4,8})(:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s*$"
    found = re.findall(line, text, re.MULTILINE | re.IGNORECASE | re.ASCII)
    return {
        int(number): (name, f"{int(domain, 16):04x}{place.lower()}") for number, name, domain, place in found
    }


def visible(
    tool: Tool, env: Mapping[str, str], devices: Sequence[int], known: Mapping[int, tuple[str, str]]
) -> list[int] | None:
    """Return the numbers of the devices that a process sees, in its order.

    ``devices`` are the numbers of all, ``known`` is their listing. None if a variable has a word that is
    neither the number nor (the beginning of) the identifier of one device.
    """
    seen: list[int] = list(devices)
    for variable in tool.visible:
        if value := env.get(variable, "").strip():
            chosen = [_chosen(word.strip(), seen, known) for word in value.split(",")]
            if None in chosen:
                return None
            seen = [one for one in chosen if one is not None]
    return seen


def _chosen(word: str, seen: Sequence[int], known: Mapping[int, tuple[str, str]]) -> int | None:
    if (place := _number(word)) is not None:
        return seen[place] if place < len(seen) else None
    named = [number for number, (name, _) in known.items() if word and name.startswith(word)]
    return named[0] if len(named) == 1 else None


NVIDIA = Tool(
    ("nvidia-smi", "topo", "-m"),
    matrix,
    ("CUDA_VISIBLE_DEVICES",),
    ("nvidia-smi", "--query-gpu=index,uuid,pci.bus_id", "--format=csv,noheader"),
)
AMD = Tool(
    ("rocm-smi", "--showtoponuma"),
    domains_of_devices,
    ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
)
ASCEND = Tool(("npu-smi", "info", "-t", "topo"), matrix, ("ASCEND_RT_VISIBLE_DEVICES",))
