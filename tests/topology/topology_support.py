"""Recorded outputs of the tools, and directory trees like the /sys of the nodes that they are from."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from jobgen.topology import cpus

OUTPUTS = Path(__file__).parent / "outputs"


def output(name: str) -> str:
    """An output as it was printed, without the line that names its source."""
    first, _, rest = (OUTPUTS / f"{name}.txt").read_text(encoding="utf-8").partition("\n")
    assert first.startswith("# ")
    return rest


class Machine(NamedTuple):
    """A node: its number of NUMA domains, the cores of each, and the hardware threads of each core."""

    domains: int
    cores: int
    threads: int = 2

    def domain(self, number: int) -> str:
        """The processors of a domain; the second hardware threads come after all first ones."""
        every = self.domains * self.cores
        first = number * self.cores
        return ",".join(f"{one}-{one + self.cores - 1}" for one in range(first, every * self.threads, every))


# By the names of the outputs.
MACHINES = {
    "polaris": Machine(4, 8),
    "perlmutter": Machine(4, 16),
    "juwels_booster": Machine(8, 6),
    "dgx_a100": Machine(8, 16),
    "hopper_8x48": Machine(2, 48),
    "delta_a100_4": Machine(4, 16, 1),
    "delta_h200_8": Machine(4, 24, 1),
    "gh200_4": Machine(4, 72, 1),
    "v100_8": Machine(2, 24),
    "slurm_share": Machine(2, 28),
    "two_gpus_four_nics": Machine(2, 14),
    "lumi_g": Machine(4, 16),
    "mi210_8": Machine(8, 16),
    "mi300x_8": Machine(2, 48),
    "mi250_old_form": Machine(4, 16),
    "ascend_910b3": Machine(8, 24, 1),
    "gb10": Machine(1, 20, 1),
}


# The outputs that show the kinds of nodes of each site, or why there is none.
_NONE = "no output of its nodes was found in a public source"
OF_SITES: dict[str, tuple[str, ...] | str] = {
    "abci": ("hopper_8x48",),
    "alliance": "a generic site",
    "anvil": _NONE,
    "ascend-slurm": ("ascend_910b3",),
    "aspire2a": _NONE,
    "aurora": "no command shows the topology of Intel GPUs",
    "berzelius": _NONE,
    "bridges2": _NONE,
    "clariden": ("gh200_4",),
    "crux": "its nodes have no GPUs",
    "csd3": _NONE,
    "cx3": _NONE,
    "daint": ("gh200_4",),
    "delta": ("delta_a100_4", "delta_h200_8"),
    "deltaai": ("gh200_4",),
    "derecho": _NONE,
    "expanse": _NONE,
    "fasrc": _NONE,
    "fir": _NONE,
    "frontier": ("lumi_g",),
    "gadi": ("dgx_a100",),  # none of its V100 and H200
    "horizon": _NONE,
    "isambard-ai": ("gh200_4",),
    "jean-zay": _NONE,
    "jupiter": ("gh200_4",),
    "juwels-booster": ("juwels_booster",),
    "karolina": _NONE,
    "kestrel": _NONE,
    "leonardo": _NONE,
    "lonestar6": _NONE,
    "lumi": ("lumi_g",),
    "mahti": _NONE,
    "marenostrum5": _NONE,
    "narval": _NONE,
    "nibi": _NONE,
    "olivia": ("gh200_4",),
    "orcd": _NONE,
    "perlmutter": ("perlmutter",),
    "polaris": ("polaris",),
    "roihu": ("gh200_4",),
    "rorqual": _NONE,
    "setonix": ("lumi_g",),
    "snellius": _NONE,
    "sophia": ("dgx_a100",),
    "stampede3": _NONE,
    "torque-gpu": "a generic site",
    "vista": "one GPU and one processor: nothing is far",
}


def tree(
    root: Path,
    machine: Machine,
    devices: dict[str, int] | None = None,
    interfaces: dict[str, int] | None = None,
) -> Path:
    """Make the files of /sys of a node, and of PCI devices and network interfaces: their names with their
    domains."""
    for number in range(machine.domains):
        write(root / f"devices/system/node/node{number}/cpulist", machine.domain(number))
    write(root / "devices/system/node/node253/cpulist", "")  # the memory of a GPU
    write(root / "devices/system/node/online", f"0-{machine.domains - 1},253")
    every = machine.domains * machine.cores
    for cpu in range(every * machine.threads):
        siblings = cpus.write(range(cpu % every, every * machine.threads, every))
        write(root / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", siblings)
    for address, number in (devices or {}).items():
        write(root / f"bus/pci/devices/{address}/numa_node", str(number))
        write(
            root / f"bus/pci/devices/{address}/local_cpulist", machine.domain(number) if number >= 0 else ""
        )
    for name, number in (interfaces or {}).items():
        write(root / f"class/net/{name}/device/numa_node", str(number))
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="ascii")
