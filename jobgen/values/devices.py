"""Accelerators of one type: ``--gpus-per-node a100:4``."""

import re
from typing import NamedTuple

from jobgen.values.parsers import Whole, number

# A type is a word that the administrator of a cluster chooses: 3090, nvidia_a100-sxm4-80gb, a100_3g.20gb.
TYPE = r"\w[\w.+@/~%-]{0,63}"
# Devices of a type: one, or a number of them. A word of capital letters alone is a placeholder.
COUNTED = re.compile(rf"(?!\d+$|[A-Z_]+$)({TYPE})(?::\d+)?", re.ASCII)
# The type of a share of a GPU in Slurm, which is a resource of its own: https://slurm.schedmd.com/gres.html
SHARD = "shard"
# The end of the name of a MIG device: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
_MIG = r"(^|.*[^0-9])[1-7]g\.\d+gb.*"


class Devices(NamedTuple):
    """A number of devices of a type."""

    number: int
    kind: str


class DeviceCount(Whole):
    """A parser for a number of devices, or for ``TYPE:N``."""

    def __call__(self, text: str) -> int | Devices:  # type: ignore[override]
        if (found := re.fullmatch(rf"({TYPE}):([0-9]{{1,9}})", text, re.ASCII)) is not None:
            return Devices(Whole(1)(found[2]), found[1])
        if ":" in text:
            raise ValueError("must be a number, or a type and a number such as a100:4")
        return super().__call__(text)


def number_of(devices: int | Devices | None) -> int | None:
    """Return the number."""
    return devices.number if isinstance(devices, Devices) else devices


def type_of(devices: int | Devices | None) -> str:
    """Return the type; empty if none is requested."""
    return devices.kind if isinstance(devices, Devices) else ""


def is_mig(kind: str) -> bool:
    """Return whether a type is a MIG device, a part of a GPU, of which a process of CUDA uses one."""
    return re.fullmatch(_MIG, kind, re.ASCII | re.IGNORECASE) is not None


def device_count(text: str) -> int | None:
    """Return the sum of ``4``, ``a100:4``, ``a100`` or ``v100:2,k80:1``; None for another text."""
    parts = text.split(",")
    counts = [
        1 if COUNTED.fullmatch(one) and ":" not in one else number(one.rpartition(":")[2]) for one in parts
    ]
    return None if None in counts else sum(filter(None, counts))
