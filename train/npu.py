"""Ascend NPUs: what torch_npu and HCCL do otherwise than CUDA, each with the way around it, in one place.

- HCCL reduces neither bytes, bools nor doubles (ProcessGroupHCCL.cpp, checkSupportedDataTypeOfAllReduce;
  every torch_npu so far), and DeepSpeed (0.19.8) reduces its overflow flags as bytes and, in ZeRO 3, the
  norm of the gradients as a double: here they travel as 32-bit integers and floats. Moving them works:
  DeepSpeed broadcasts weights as bytes.
- Tensor.bool() of a tensor with a gradient fails an assertion, and DeepSpeed's MoE gate asks for one.
  torch_npu 2.1.0 of 2023, before https://gitee.com/ascend/op-plugin/pulls/884.
- The native unflatten casts from a format of the NPU also tensors of the host, and ZeRO keeps there
  those whose shapes it unflattens by. torch_npu 2.1.0 of 2023, before
  https://gitee.com/ascend/pytorch/pulls/6484.
- CANN (to 9.1 at least) ignores the rest of ASCEND_RT_VISIBLE_DEVICES from the first blank or smaller
  number on, in silence: refused here.
- A torch_npu without its CANN libraries breaks `import torch` itself, torch 2.5 or later: see device.py.

None of it changes a result, so all of it is done for every version. It has been run on a simulated NPU
only, never on hardware.
"""

# torch is imported inside the functions: a wrong ASCEND_RT_VISIBLE_DEVICES is told before it loads.
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
    """Raise BadInput where CANN was not set up, and for a list of visible devices that it would cut short.

    It reads ascending numbers between commas, up to the first other character:
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
    """Import torch_npu, which adds torch.npu, and go around its defects; a second call does nothing more.

    Before deepspeed is imported, which takes flatten and unflatten by name.
    Raises ImportError, OSError or RuntimeError if torch_npu cannot be loaded.
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
    """A collective that reduces, as another type, the tensors whose type HCCL cannot reduce."""
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
    """One dimension with all their elements; for one tensor a view, as torch does."""
    import torch

    flat = [tensor.contiguous().view(-1) for tensor in tensors]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def unflatten(flat: "Tensor", tensors: Sequence["Tensor"]) -> tuple["Tensor", ...]:
    """Views of `flat` with the shapes of `tensors`, wherever these lie."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))
