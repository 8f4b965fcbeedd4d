"""What ColossalAI needs where there is no CUDA, each with the way around it, in this one place.

Measured with ColossalAI 0.5.0 and torch 2.13; its last commit is of 2025, so it will hardly change.

all plug-ins
  An accelerator that fails to load is passed over in silence for the next: it is set here.
on the CPU
  Its accelerator has no streams, and its autocast returns nullcontext itself, not one.
  low_level_zero and gemini take only an accelerator named cuda or npu.
  gemini tells the device's memory from the host's by the device's type, and would move its chunks out
  of the only one that there is.
  torch_ddp makes every BatchNorm a SyncBatchNorm, which torch has for GPUs only: it stays what it is.
on the CPU and on NPUs
  HybridAdam asks for a kernel of the host, which on x86 is compiled by nvcc alone.
  HybridAdam forgets div_scale, by which gemini clips and takes the loss scale back, wherever it does not
  call that kernel: for gradients in bf16, and for all on an NPU.
  The loss scaler of torch_ddp_fp16 is torch.cuda's, which is off without CUDA: see colossalai.py.

On NPUs none of this has been run.
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

from ..device import Device


def load(device: Device) -> Any:
    """Import colossalai for this kind of device, and go around its defects."""
    # It is written for a torch of 2024.
    for old in (".* is deprecated", "torch.cuda.amp.GradScaler is enabled, but CUDA"):
        warnings.filterwarnings("ignore", message=old)
    with warnings.catch_warnings():
        # It and its imports advise to install apex, tensornvme and kernels, which nothing here uses.
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            # Before the rest: gemini's functions take the current device as a default value.
            import colossalai.accelerator

            colossalai.accelerator.set_accelerator(_host() if device.kind == "cpu" else device.type)
            import colossalai.booster.plugin
            import colossalai.nn.optimizer
        finally:
            logging.disable(logging.NOTSET)
    if device.type != "cuda":
        _adam_without_nvcc()
    if device.kind == "cpu":
        _one_memory()
    return colossalai


class _Stream:
    """The CPU does one thing after the other."""

    def wait_stream(self, other: Any) -> None: ...

    def synchronize(self) -> None: ...


def _host() -> Any:
    from colossalai.accelerator.cpu_accelerator import CpuAccelerator

    class Host(CpuAccelerator):  # type: ignore[misc]
        """The CPU as a device beside the host, for code that knows two memories."""

        def __init__(self) -> None:
            super().__init__()
            self._name = "npu"  # of the two names that are accepted, the one without CUDA's libraries

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
    """Chunks of gemini stay where they are: what counts as the device's memory is the host's."""
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
    """In place of the compiled kernel: torch's own Adam, for one tensor of the host at a time."""

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
            rates = {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": decay}
            grads = [gradient.to(weights.dtype)]
            how = {"amsgrad": False, "maximize": False, "foreach": False, "fused": True}
            self._update([weights], grads, [mean], [square], [], done, **how, **rates)


def _adam_without_nvcc() -> None:
    from colossalai.kernel.kernel_loader import CPUAdamLoader
    from colossalai.nn.optimizer import HybridAdam

    if _Kernel in CPUAdamLoader.REGISTRY:
        return
    CPUAdamLoader.REGISTRY = [_Kernel]
    step = HybridAdam.step

    @functools.wraps(step)
    def divided(self: Any, closure: Any = None, div_scale: float = -1) -> Any:
        if div_scale > 0:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:  # in fp32: fp16 would lose what is small
                        p.grad = p.grad.float() / div_scale
        return step(self, closure)

    HybridAdam.step = divided
