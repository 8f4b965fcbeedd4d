"""The collective library hccl, over gloo: the memory is the host's, so gloo works on it as it lies.

Like ProcessGroupHCCL.cpp of torch_npu, it moves every type of number and reduces only some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import distributed

from .native import device as native

REDUCED = (
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
)
MOVING = (
    *("broadcast", "allgather", "_allgather_base", "alltoall", "alltoall_base", "gather", "scatter"),
    *("send", "recv", "recv_anysource", "barrier"),
)
REDUCING = ("allreduce", "allreduce_coalesced", "reduce", "reduce_scatter", "_reduce_scatter_base")
# Names that torch gave some of them in 2.13.
RENAMED = {
    "all_gather_single": "_allgather_base",
    "reduce_scatter_single": "_reduce_scatter_base",
    "all_to_all_single": "alltoall_base",
}
# One call for several tensors.
COALESCED = {
    "allgather_into_tensor_coalesced": "_allgather_base",
    "all_gather_single_coalesced": "_allgather_base",
    "reduce_scatter_tensor_coalesced": "_reduce_scatter_base",
    "reduce_scatter_single_coalesced": "_reduce_scatter_base",
}


class HCCL(distributed.ProcessGroup):
    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self._place = rank, size
        self.gloo = distributed.ProcessGroupGloo(store, rank, size, timeout)

    def getBackendName(self) -> str:
        return "hccl"

    def rank(self) -> int:
        return self._place[0]

    def size(self) -> int:
        return self._place[1]


class Works:
    """Several operations as one."""

    def __init__(self, works: Sequence[Any]) -> None:
        self.works = works

    def wait(self, *timeout: Any) -> bool:
        return all(work.wait() for work in self.works)

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self.works)


def _on_host(value: Any, reducing: bool) -> Any:
    """The same memory as tensors of the CPU, in lists as well."""
    if isinstance(value, list | tuple):
        return [_on_host(each, reducing) for each in value]
    if not isinstance(value, torch.Tensor):
        return value
    if reducing and value.device.type == "npu" and value.dtype not in REDUCED:
        raise RuntimeError(f"HCCL AllReduce & Reduce: Unsupported data type {value.dtype}")
    return native.on_host(value.detach())


def _collective(name: str, reducing: bool) -> Callable[..., Any]:
    def run(self: HCCL, *values: Any, **options: Any) -> Any:
        words = {key: _on_host(value, reducing) for key, value in options.items()}
        return getattr(self.gloo, name)(*_on_host(values, reducing), **words)

    return run


def _several(name: str) -> Callable[..., Any]:
    def run(self: HCCL, outputs: Any, inputs: Any, *options: Any, **ignored: Any) -> Works:
        one = getattr(self, name)
        return Works([one(out, into, *options) for out, into in zip(outputs, inputs, strict=True)])

    return run


def register() -> None:
    for name in MOVING + REDUCING:
        setattr(HCCL, name, _collective(name, name in REDUCING))
    for new, old in RENAMED.items():
        setattr(HCCL, new, getattr(HCCL, old))
    for name, single in COALESCED.items():
        setattr(HCCL, name, _several(single))
    distributed.Backend.register_backend("hccl", HCCL, devices=["npu", "cpu"])
