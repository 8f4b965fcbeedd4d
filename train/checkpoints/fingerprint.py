"""A fingerprint of the weights that a run with --lora does not train, and of which its checkpoints have none.

It is the sum of the bits of each weight, so that it does not depend on how ranks divide the weights.
"""

import hashlib
from typing import Any

import torch
from torch import distributed, nn

from ..errors import CommonMistake
from .directory import Checkpoint

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes


def of(module: nn.Module, dtype: str | None = None) -> dict[str, str]:
    """Return the type of the weights that are not trained, and a digest of their names and values.

    dtype: the type to which they are converted before. Called on all ranks of weights that ranks divide.
    """
    frozen = {name: p for name, p in module.named_parameters() if not p.requires_grad}
    kind = dtype or str(next(iter(frozen.values())).dtype).removeprefix("torch.")
    bits = [_bits(held(p).to(getattr(torch, kind))) for p in frozen.values()]
    sums = torch.stack([each.to(bits[0].device) for each in bits])
    if any(hasattr(p, "ds_tensor") or hasattr(p, "to_local") for p in frozen.values()):
        distributed.all_reduce(sums)
    digest = hashlib.sha256(repr(list(zip(frozen, sums.tolist(), strict=True))).encode())
    return {"dtype": kind, "sha256": digest.hexdigest()}


def _bits(weight: torch.Tensor) -> torch.Tensor:
    return weight.contiguous().view(INTEGERS[weight.element_size()]).sum(dtype=torch.int64)


def check(module: nn.Module, checkpoint: Checkpoint) -> None:
    """Raise CommonMistake if the checkpoint is one of adapters to other weights than those of the module."""
    before = checkpoint.record.get("base")
    if before is None:
        return
    now = of(module, before["dtype"])
    if now != before:
        settings = checkpoint.settings
        place = f"--init-from {settings.init_from}" if settings.init_from else f"--model {settings.model}"
        raise CommonMistake(
            f"{checkpoint.directory} has adapters to other weights than those of {place} now: their "
            f"fingerprint is {now['sha256'][:12]} now, and was {before['sha256'][:12]} when it was trained"
        )


def held(parameter: Any) -> torch.Tensor:
    """Return the weights of a parameter that this rank holds: at ZeRO 3 a share, without what fills it up."""
    if hasattr(parameter, "to_local"):  # a DTensor
        local: torch.Tensor = parameter.detach().to_local()
        return local
    share: torch.Tensor | None = getattr(parameter, "ds_tensor", None)
    if share is None:
        weights: torch.Tensor = parameter.detach()
        return weights
    before = distributed.get_rank(parameter.ds_process_group) * share.ds_numel  # type: ignore[attr-defined]
    return share.detach().flatten()[: max(0, parameter.ds_numel - before)]
