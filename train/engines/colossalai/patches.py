"""Workarounds that ColossalAI needs on devices without CUDA.

They are based on ColossalAI 0.5.0 and torch 2.13. Its last commit is of 2025, so it will hardly change.

all plug-ins
  If an accelerator fails to load, ColossalAI silently uses the next one: it is set explicitly here.
on the CPU
  The CPU accelerator has no streams, and its autocast returns the class nullcontext, not an instance.
  low_level_zero and gemini accept only an accelerator named cuda or npu.
  gemini distinguishes device memory and host memory by the type of the device. It would move its chunks out
  of the only memory there is.
  torch_ddp converts every BatchNorm to SyncBatchNorm, which torch has for GPUs only: disabled here.
on the CPU and on NPUs
  HybridAdam requests a kernel for the host, which on x86 only nvcc can compile.
  HybridAdam ignores div_scale, by which gemini clips and unscales gradients, wherever it does not call this
  kernel: for gradients in bf16, and for all gradients on an NPU.
  The loss scaler of torch_ddp_fp16 is that of torch.cuda, which is disabled without CUDA: see engine.py.

None of this has been run on NPUs.
"""

import functools
import logging
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.optim.adam import adam as adam_step
from torch.optim.adamw import adamw as adamw_step

from ...device import Device


def load(device: Device) -> Any:
    """Import colossalai for this kind of device, apply the workarounds, and return the module."""
    # ColossalAI is written for torch of 2024.
    for old in (".* is deprecated", "torch.cuda.amp.GradScaler is enabled, but CUDA"):
        warnings.filterwarnings("ignore", message=old)
    with warnings.catch_warnings():
        # ColossalAI and its imports recommend apex, tensornvme and kernels, which are not used here.
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            # Imported first: gemini's functions have the current device as a default argument.
            import colossalai.accelerator

            colossalai.accelerator.set_accelerator(_host() if device.kind == "cpu" else device.type)
            import colossalai.booster.plugin
            import colossalai.nn.optimizer
        finally:
            logging.disable(logging.NOTSET)
    if not device.row.hybrid_adam:
        _adam_without_nvcc()
    if device.kind == "cpu":
        _one_memory()
    return colossalai


class _Stream:
    """A stream of the CPU, where all operations run in order."""

    def wait_stream(self, other: Any) -> None: ...

    def synchronize(self) -> None: ...


def _host() -> Any:
    from colossalai.accelerator.cpu_accelerator import CpuAccelerator

    class Host(CpuAccelerator):  # type: ignore[misc]
        """The CPU as an accelerator, for code that distinguishes device memory and host memory."""

        def __init__(self) -> None:
            super().__init__()
            self._name = "npu"  # of the two accepted names, the one without CUDA's libraries

        def device_count(self) -> int:
            return 1

        def synchronize(self, device: Any = None) -> None: ...

        def Stream(self, device: Any = None, priority: int = 0, **options: Any) -> _Stream:
            return _Stream()

        def current_stream(self, device: Any = None) -> _Stream:
            return _Stream()

        def stream(self, stream_: Any) -> AbstractContextManager[None]:
            return nullcontext()

        def autocast(
            self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True
        ) -> Any:
            return torch.autocast("cpu", dtype, enabled, cache_enabled)

    return Host()


def _one_memory() -> None:
    """Keep gemini's chunks where they are: device memory is host memory here. Keep every BatchNorm, too."""
    from colossalai.zero.gemini.chunk import Chunk

    if getattr(Chunk, "stays", False):
        return
    close = Chunk.close_chunk

    @functools.wraps(close)
    def close_chunk(self: Any) -> None:
        close(self)
        if self.cpu_shard is not None:
            self.cuda_shard, self.cpu_shard = self.cpu_shard, None

    Chunk.close_chunk = close_chunk
    Chunk.shard_move = lambda self, *args, **options: None
    Chunk.stays = True
    nn.SyncBatchNorm.convert_sync_batchnorm = classmethod(  # type: ignore[assignment]
        lambda cls, module, process_group=None: module
    )


class _Kernel:
    """A replacement for the compiled kernel: torch's own Adam, for one tensor in host memory at a time."""

    name, priority = "torch", 1

    def is_available(self) -> bool:
        return True

    def assert_compatible(self) -> None: ...

    def load(self) -> Any:
        return self

    class CPUAdamOptimizer:
        def __init__(self, lr: float, beta1: float, beta2: float, eps: float, decay: float, adamw: bool):
            self._update = adamw_step if adamw else adam_step

        def step(
            self,
            step: int,
            lr: float,
            beta1: float,
            beta2: float,
            eps: float,
            decay: float,
            bias_correction: bool,
            weights: torch.Tensor,
            gradient: torch.Tensor,
            mean: torch.Tensor,
            square: torch.Tensor,
            div_scale: float,
        ) -> None:
            done = [torch.tensor(float(step - 1))]
            how: dict[str, Any] = {"amsgrad": False, "maximize": False, "foreach": False, "fused": True}
            how |= {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": decay}
            grads = [gradient.to(weights.dtype)]
            self._update([weights], grads, [mean], [square], [], done, **how)


def _adam_without_nvcc() -> None:
    from colossalai.kernel.kernel_loader import CPUAdamLoader
    from colossalai.nn.optimizer import HybridAdam

    if _Kernel in CPUAdamLoader.REGISTRY:
        return
    CPUAdamLoader.REGISTRY = [_Kernel]
    step = HybridAdam.step

    @functools.wraps(step)
    def scaled_step(self: Any, closure: Any = None, div_scale: float = -1) -> Any:
        if div_scale > 0:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:  # in fp32: fp16 would lose small values
                        p.grad = p.grad.float() / div_scale
        return step(self, closure)

    HybridAdam.step = scaled_step
