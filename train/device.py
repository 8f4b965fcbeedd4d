"""Selection of this rank's device, by the local rank: every host numbers its devices from 0."""

import ctypes
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import npu
from .errors import BadInput, suggestion
from .ranks import Ranks

# A torch_npu without its CANN libraries would break even `import torch`, which loads plug-ins
# automatically; choose() imports it when it is needed.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

import torch

BACKENDS = {"cuda": "nccl", "rocm": "nccl", "npu": "hccl", "xpu": "xccl", "cpu": "gloo"}
# Variables that select the devices which a process sees; the process numbers these from 0.
VISIBLE = {
    "cuda": "CUDA_VISIBLE_DEVICES",
    "rocm": "ROCR_VISIBLE_DEVICES",
    "npu": npu.VISIBLE,
    "xpu": "ZE_AFFINITY_MASK",
}
# Parameters of malloc.h, in bytes: M_MMAP_THRESHOLD (its maximum), M_TRIM_THRESHOLD and M_TOP_PAD.
MALLOC = {-3: 32 << 20, -1: 1 << 30, -2: 64 << 20}


@dataclass(frozen=True)
class Device:
    """A device of this rank.

    kind: cuda, rocm, npu, xpu or cpu (torch and DeepSpeed call rocm cuda); index: its number among the
    devices that the process sees
    """

    kind: str
    index: int

    @property
    def type(self) -> str:
        return "cuda" if self.kind == "rocm" else self.kind

    @property
    def torch(self) -> torch.device:
        return torch.device(self.type) if self.kind == "cpu" else torch.device(self.type, self.index)

    @property
    def backend(self) -> str:
        """The collective library for this kind of device."""
        return BACKENDS[self.kind]


def _keep_freed_memory() -> None:
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
    wanted = env.get("JOBGEN_ACCELERATOR", "")
    if wanted and wanted not in BACKENDS:
        raise BadInput(
            f"JOBGEN_ACCELERATOR={wanted!r} is none of {', '.join(BACKENDS)}{suggestion(wanted, BACKENDS)}"
        )
    kind = wanted or _best()
    if kind == "cpu":
        _keep_freed_memory()
        return Device("cpu", 0)
    reason = _why_not(kind)
    if reason:
        raise BadInput(f"JOBGEN_ACCELERATOR={wanted} but {reason}")
    if kind == "npu":
        npu.check_environment(env)
    module = _module(kind)
    count = module.device_count()
    if count > 1 and ranks.local_rank >= count:
        raise BadInput(
            f"local rank {ranks.local_rank} has no device of its own: this host shows {count} {kind} devices "
            f"to {ranks.local_world_size} ranks{_visible(kind, env)}"
        )
    # If a rank sees a single device, the launcher or Slurm has assigned it, for any local rank.
    index = 0 if count == 1 else ranks.local_rank
    module.set_device(index)
    return Device(kind, index)


def _visible(kind: str, env: Mapping[str, str]) -> str:
    name = VISIBLE[kind]
    return f" ({name}={env[name]})" if name in env else ""


def _best() -> str:
    if importlib.util.find_spec("torch_npu"):
        reason = _why_not("npu")
        if not reason:
            return "npu"
        print(f"jobgen.train: {reason}: looking for another device", file=sys.stderr)
    if torch.cuda.is_available():
        return "rocm" if torch.version.hip else "cuda"
    return "xpu" if torch.xpu.is_available() else "cpu"


def _why_not(kind: str) -> str | None:
    """Return the reason why this kind of device cannot be used here, or None if it can."""
    if kind == "npu":
        try:
            npu.load()
        except (ImportError, OSError, RuntimeError) as error:
            return f"torch_npu cannot be loaded ({str(error).splitlines()[0]})"
    elif kind != "xpu":
        built = "rocm" if torch.version.hip else "cuda" if torch.version.cuda else "cpu"
        if built != kind:
            return f"this torch {torch.__version__} is built for {built}, not for {kind}"
    module = _module(kind)
    if not module.is_available() or module.device_count() == 0:
        return f"torch sees no {kind} device on this host"
    return None


def _module(kind: str) -> Any:
    return getattr(torch, kind if kind in ("npu", "xpu") else "cuda")
