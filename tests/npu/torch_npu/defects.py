"""What torch_npu 2.1.0 did wrong, so that the ways around it are seen to work. Messages as it gave them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def install() -> None:
    torch.Tensor.bool = _bool_without_gradient(torch.Tensor.bool)
    for name in ("flatten_dense_tensors", "unflatten_dense_tensors"):
        setattr(torch._C._nn, name, _not_on_both(getattr(torch._C._nn, name)))


def _bool_without_gradient(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def to_bool(self: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        if self.device.type == "npu" and self.requires_grad and torch.is_grad_enabled():
            raise RuntimeError("isDifferentiableType(variable.scalar_type()) INTERNAL ASSERT FAILED")
        return original(self, *args, **options)

    return to_bool


def _not_on_both(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        flat = [each for value in values for each in (value if isinstance(value, list | tuple) else [value])]
        if len({tensor.device.type for tensor in flat}) > 1:
            raise NotImplementedError(
                "Could not run 'npu::npu_format_cast' with arguments from the 'CPU' backend"
            )
        return original(*values)

    return run
