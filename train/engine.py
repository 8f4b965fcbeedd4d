"""The engine: what trains a model on all ranks. The loop knows only the protocol."""

import logging
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from .device import Device
from .dsconfig import optimizer_name
from .errors import BadInput
from .models import summed_loss


class Micro(NamedTuple):
    """One forward pass on the device: floats [n, channels, height, width], labels [n], of which the
    first `real` count."""

    images: torch.Tensor
    labels: torch.Tensor
    real: int


class Engine(Protocol):
    """Every method is called on all ranks, the same number of times."""

    def train_step(self, micro_batches: Sequence[Micro], total: int) -> torch.Tensor:
        """One optimizer step on the mean loss of `total` samples over all ranks.

        Returns the summed loss of this rank's samples, fp32, on the device.
        """

    def predict(self, images: torch.Tensor) -> torch.Tensor:
        """Logits [n, classes], without gradients."""

    def learning_rate(self) -> float:
        """Of the next step."""


class DeepSpeedEngine:
    """Data parallel and ZeRO by deepspeed.initialize. The process group must be there."""

    def __init__(self, model: nn.Module, config: dict[str, Any], device: Device, world_size: int) -> None:
        deepspeed = load_deepspeed(device)
        if device.kind == "cpu":
            config = _nothing_to_compile(config)
        if config.get("fp16", {}).get("enabled") and not deepspeed.get_accelerator().is_fp16_supported():
            raise BadInput(f"DeepSpeed has no fp16 on this {device.kind}; bf16 works")
        parameters = [p for p in model.parameters() if p.requires_grad]
        deepspeed.init_distributed(dist_backend=device.backend, auto_mpi_discovery=False, verbose=False)
        self._engine, *_ = deepspeed.initialize(model=model, model_parameters=parameters, config=config)
        self._dtype = next(model.parameters()).dtype
        self._passes = world_size * self._engine.gradient_accumulation_steps()

    def train_step(self, micro_batches: Sequence[Micro], total: int) -> torch.Tensor:
        self._engine.train()
        summed = []
        for images, labels, real in micro_batches:
            loss = summed_loss(self._engine(images.to(self._dtype))[:real], labels[:real])
            # DeepSpeed averages over the ranks and over the passes of a step, as if all had as many
            # samples; this factor makes that the mean over samples, whatever each pass has.
            self._engine.backward(loss * (self._passes / total))
            self._engine.step()
            summed.append(loss.detach())
        return torch.stack(summed).sum()

    @torch.no_grad()
    def predict(self, images: torch.Tensor) -> torch.Tensor:
        self._engine.eval()
        return self._engine(images.to(self._dtype))

    def learning_rate(self) -> float:
        return float(self._engine.optimizer.param_groups[0]["lr"])


def _nothing_to_compile(config: dict[str, Any]) -> dict[str, Any]:
    """On a CPU, DeepSpeed's own Adam takes a compiler and two minutes; torch's does the same."""
    if optimizer_name(config) not in ("adam", "adamw"):
        return config
    optimizer = config["optimizer"]
    params = {"torch_adam": True, **optimizer.get("params", {})}
    return {"zero_force_ds_cpu_optimizer": False, **config, "optimizer": {**optimizer, "params": params}}


def load_deepspeed(device: Device) -> Any:
    """Import deepspeed for this kind of device, so that it compiles nothing at run time."""
    os.environ["DS_ACCELERATOR"] = device.type
    import deepspeed
    import deepspeed.ops

    if torch.distributed.get_rank():
        logging.getLogger("DeepSpeed").setLevel(logging.ERROR)  # once is enough
    if device.kind == "cpu":
        # It would compile this collective for 90 s, with a compiler that may not be there. Setting
        # the whole table also saves the probe that would fill it.
        deepspeed.ops.__compatible_ops__ = {"deepspeed_shm_comm": False}
    return deepspeed
