"""Selection of this rank's device, by the local rank: every host numbers its devices from 0."""

import ctypes
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .accelerators import ACCELERATORS, Accelerator
from .errors import BadInput, suggestion
from .ranks import Ranks

# A torch_npu without its CANN libraries would break even `import torch`, which loads plug-ins
# automatically; choose() imports it when it is needed.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import torch

# Parameters of malloc.h, in bytes: M_MMAP_THRESHOLD (its maximum), M_TRIM_THRESHOLD and M_TOP_PAD.
MALLOC = {-3: 32 << 20, -1: 1 << 30, -2: 64 << 20}


@dataclass(frozen=True)
class Device:
    """A device of this rank.

    kind: a key of ACCELERATORS; index: its number among the devices that the process sees
    """

    kind: str
    index: int

    @property
    def row(self) -> Accelerator:
        return ACCELERATORS[self.kind]

    @property
    def type(self) -> str:
        return self.row.type

    @property
    def torch(self) -> torch.device:
        return torch.device(self.type) if self.kind == "cpu" else torch.device(self.type, self.index)

    @property
    def backend(self) -> str:
        """The collective library for this kind of device."""
        return self.row.backend


def _keep_free_memory() -> None:
    """Make the GNU C library keep freed memory for the next step, by mallopt(3).

    Otherwise the memory returns to the kernel, which clears every page again. For a small network, this takes
    a tenth to a fifth of a step.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries do not need this
        for parameter, value in MALLOC.items():
            mallopt(parameter, value)


def choose(ranks: Ranks, env: Mapping[str, str]) -> Device:
    """Return the device of this rank and make it the current one.

    Its kind is JOBGEN_ACCELERATOR if set, otherwise the best kind available. Raise BadInput if the requested
    kind, or a device for the local rank, is not available.
    """
    request = env.get("JOBGEN_ACCELERATOR", "")
    if request and request not in ACCELERATORS:
        names = ", ".join(ACCELERATORS)
        near = suggestion(request, ACCELERATORS)
        raise BadInput(f"JOBGEN_ACCELERATOR={request!r} is not one of {names}{near}")
    kind = request or _best()
    if kind == "cpu":
        _keep_free_memory()
        return Device("cpu", 0)
    reason = _why_not(kind)
    if reason:
        raise BadInput(f"JOBGEN_ACCELERATOR={request} but {reason}")
    row = ACCELERATORS[kind]
    row.check_environment(env)
    module = _module(row)
    count = module.device_count()
    if count > 1 and ranks.local_rank >= count:
        raise BadInput(
            f"local rank {ranks.local_rank} has no device: this host has {count} {kind} devices "
            f"for {ranks.local_world_size} ranks{_visible(row, env)}"
        )
    # If a rank sees a single device, the launcher or Slurm has assigned it, for any local rank.
    index = 0 if count == 1 else ranks.local_rank
    module.set_device(index)
    return Device(kind, index)


def _visible(row: Accelerator, env: Mapping[str, str]) -> str:
    return f" ({row.visible}={env[row.visible]})" if row.visible in env else ""


def _best() -> str:
    for kind, row in ACCELERATORS.items():
        if row.package and not importlib.util.find_spec(row.package):
            continue
        reason = _why_not(kind)
        if not reason:
            return kind
        if row.package:
            print(f"jobgen.train: {reason}: trying another device", file=sys.stderr)
    return "cpu"


def _why_not(kind: str) -> str | None:
    """Return the reason why this kind of device cannot be used here, or None if it can."""
    row = ACCELERATORS[kind]
    try:
        row.load()
    except (ImportError, OSError, RuntimeError) as error:
        return f"{row.package} cannot be loaded ({str(error).splitlines()[0]})"
    builds = [name for name, one in ACCELERATORS.items() if one.build and getattr(torch.version, one.build)]
    if row.build and kind not in builds:
        return f"this torch {torch.__version__} is built for {', '.join(builds) or 'cpu'}, not for {kind}"
    module = _module(row)
    if not module.is_available() or module.device_count() == 0:
        return f"torch finds no {kind} device on this host"
    return None


def _module(row: Accelerator) -> Any:
    return getattr(torch, row.type)
