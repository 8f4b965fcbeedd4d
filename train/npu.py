"""Ascend NPUs: workarounds for differences of torch_npu and HCCL from CUDA.

- HCCL cannot reduce bytes, bools and doubles (ProcessGroupHCCL.cpp, checkSupportedDataTypeOfAllReduce; every
  torch_npu so far). DeepSpeed (0.19.8) reduces its overflow flags as bytes and, in ZeRO 3, the norm of the
  gradients as a double. Here they are reduced as 32-bit integers and floats. HCCL can transfer these types:
  DeepSpeed broadcasts weights as bytes.
- Tensor.bool() of a tensor with a gradient fails an assertion, and DeepSpeed's MoE gate calls it.
  torch_npu 2.1.0 of 2023, before https://gitee.com/ascend/op-plugin/pulls/884.
- The native unflatten also tries to cast host tensors from a format of the NPU. ZeRO passes host tensors to
  it, for their shapes. torch_npu 2.1.0 of 2023, before https://gitee.com/ascend/pytorch/pulls/6484.
- CANN (up to 9.1 at least) silently ignores the rest of ASCEND_RT_VISIBLE_DEVICES from the first blank or
  smaller number on: such a list is rejected here.
- A torch_npu without its CANN libraries breaks `import torch` itself, with torch 2.5 or later: see device.py.

None of the workarounds changes a result, so all of them are applied for every version. They have been run on
a simulated NPU only, never on hardware.
"""

# torch is imported in the functions, so that a wrong ASCEND_RT_VISIBLE_DEVICES is reported before.
import functools
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import BadInput

if TYPE_CHECKING:
    from torch import Tensor

VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"


def check_environment(env: Mapping[str, str]) -> None:
    """Raise BadInput if CANN is not set up, or if CANN would truncate the list of visible devices.

    CANN reads ascending numbers between commas, up to the first other character:
    https://www.hiascend.com/document/detail/en/canncommercial/800/apiref/envvar/envref_07_0028.html
    """
    if not env.get("ASCEND_HOME_PATH"):
        raise BadInput("ASCEND_HOME_PATH is not set: source CANN's set_env.sh before a run on NPUs")
    text = env.get(VISIBLE, "")
    ids = [int(part) for part in re.findall(r"\d+", text)]
    if text and (not re.fullmatch(r"\d+(,\d+)*", text) or ids != sorted(set(ids))):
        raise BadInput(
            f"{VISIBLE}={text!r} is not a list of ascending device numbers such as 0,1,2 (without blanks): "
            "CANN would ignore its rest"
        )


def load() -> None:
    """Import torch_npu, which adds torch.npu, and apply the workarounds. A second call does nothing more.

    Call it before deepspeed is imported, which imports flatten and unflatten by name. Raise ImportError,
    OSError or RuntimeError if torch_npu cannot be loaded.
    """
    import torch

    importlib.import_module("torch_npu")
    if getattr(torch.distributed.all_reduce, "for_hccl", False):
        return
    torch.distributed.all_reduce = _for_hccl(torch.distributed.all_reduce)
    torch.distributed.reduce = _for_hccl(torch.distributed.reduce)
    torch.Tensor.bool = _without_gradient(torch.Tensor.bool)  # type: ignore[method-assign]
    torch._utils._flatten_dense_tensors = flatten
    torch._utils._unflatten_dense_tensors = unflatten


def _for_hccl(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a collective, so that it reduces tensors as another type if HCCL cannot reduce their type."""
    import torch

    others = {torch.uint8: torch.int32, torch.bool: torch.int32, torch.float64: torch.float32}

    @functools.wraps(reduce)
    def run(tensor: "Tensor", *args: Any, **options: Any) -> Any:
        if tensor.dtype not in others:
            return reduce(tensor, *args, **options)
        copy = tensor.to(others[tensor.dtype])
        work = reduce(copy, *args, **options)
        if work is not None:  # asynchronous; these are single numbers, so waiting here costs little
            work.wait()
        tensor.copy_(copy)
        return work

    run.for_hccl = True  # type: ignore[attr-defined]
    return run


def _without_gradient(to_bool: Callable[..., "Tensor"]) -> Callable[..., "Tensor"]:
    @functools.wraps(to_bool)
    def run(self: "Tensor", *args: Any, **options: Any) -> "Tensor":
        return to_bool(self.detach(), *args, **options)

    return run


def flatten(tensors: Sequence["Tensor"]) -> "Tensor":
    """Return all elements of the tensors in one dimension; for one tensor a view, as in torch."""
    import torch

    flat = [tensor.contiguous().view(-1) for tensor in tensors]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def unflatten(flat: "Tensor", tensors: Sequence["Tensor"]) -> tuple["Tensor", ...]:
    """Return views of `flat` with the shapes of `tensors`, which may be on any device."""
    sizes = [tensor.numel() for tensor in tensors]
    parts = flat.split(sizes)  # type: ignore[no-untyped-call]
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))
