"""The loops by hand that the training module is compared with: torch or DeepSpeed only.

They keep their data on the device, use TF32, autocast to bf16, one compiled function of model and loss, fused
kernels of the optimizer and channels_last, and read the loss every ten steps. Model and data are those of the
training module.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jobgen.train import data, models
from jobgen.train.config.language import Size
from jobgen.train.data.feed import SideStream
from jobgen.train.models import gpt
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional

Pair = tuple[torch.Tensor, torch.Tensor]
LR, READ_EVERY = 3e-4, 10
NAME = "a loop by hand"


@dataclass(frozen=True)
class Loop:
    """A loop over `count` samples.

    prepared: the batch of these indices; loss: of a batch; backward, step: of the engine; clear: gradients

    The other fields are what a loop may also do: reads: steps between two reads of the loss; norm: of the
    gradients, read in place of the loss, which then is read one step later; on_host: the order of the epoch
    is copied batch by batch; side: a stream for the batches
    """

    count: int
    batch: int
    device: torch.device
    prepared: Callable[[torch.Tensor], Pair]
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    backward: Callable[[torch.Tensor], Any]
    step: Callable[[], Any]
    clear: Callable[[], None]
    autocast: bool = True
    reads: int = READ_EVERY
    norm: Callable[[], torch.Tensor] | None = None
    on_host: bool = False
    side: SideStream | None = None

    def epoch(self) -> None:
        order = torch.randperm(self.count, device="cpu" if self.on_host else self.device)
        for number, chosen in enumerate(order.split(self.batch)):
            make = partial(self.prepared, chosen)
            batch = self.side.run(make) if self.side else make()
            self.clear()
            with self._context():
                loss = self.loss(*batch)
            self.backward(loss)
            self.step()
            if number % self.reads == 0:
                (self.norm() if self.norm else loss).item()
            elif self.norm and number % self.reads == 1:
                loss.item()
        loss.item()

    def _context(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast)


class Images:
    """A model for images, and loops that train it."""

    def __init__(self, name: str, samples: data.Data, device: torch.device) -> None:
        flags(device)
        model = models.build(name, samples.train.images.shape[1:], 10)
        self.model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._images = samples.train.images
        self._pixels = torch.tensor(self._images, device=device)
        self._labels = torch.tensor(samples.train.labels, device=device)
        self._mean, self._std = (torch.tensor(s, device=device).view(1, -1, 1, 1) * 255 for s in samples[4:])

    def loop(self, count: int, batch: int, mode: str = "default") -> Loop:
        def loss(images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(self.model(images).float(), targets)

        return plain(self.model, loss, self._prepared, count, batch, self._pixels.device, mode)

    def variants(self, loop: Loop) -> dict[str, Loop]:
        """Return the loop, and others with one difference each."""
        gradients = [p for p in self.model.parameters() if p.requires_grad]
        norm = lambda: nn.utils.get_total_norm([p.grad for p in gradients if p.grad is not None])  # noqa: E731
        whole = torch.compile(
            lambda images, labels: functional.cross_entropy(self.model(self._scaled(images)).float(), labels),
            dynamic=False,
        )
        return {
            "as it is": loop,
            "nothing is read": replace(loop, reads=loop.count),
            "the norm of the gradients is read, too": replace(loop, norm=norm),
            "the order is copied batch by batch": replace(loop, on_host=True),
            "a stream for the batches": replace(loop, side=SideStream(loop.device)),
            "uint8 into the graph": replace(loop, prepared=self._raw, loss=whole),
        }

    def copy(self) -> None:
        """Copy the images to the device, and wait for it."""
        torch.tensor(self._images, device=self._pixels.device)[-1, -1, -1, -1].item()

    def _raw(self, chosen: torch.Tensor) -> Pair:
        chosen = chosen.to(self._pixels.device)
        return self._pixels[chosen], self._labels[chosen]

    def _scaled(self, images: torch.Tensor) -> torch.Tensor:
        return ((images.float() - self._mean) / self._std).contiguous(memory_format=torch.channels_last)

    def _prepared(self, chosen: torch.Tensor) -> Pair:
        images, labels = self._raw(chosen)
        return self._scaled(images), labels


def language(
    size: Size, packed: np.ndarray, vocabulary: int, batch: int, device: torch.device, engine: str = "ddp"
) -> Loop:
    """Return a loop that trains a GPT over sequences of tokens.

    engine: ddp and fsdp, compiled, or zero_1 of DeepSpeed, not compiled
    """
    flags(device)
    model = nn.Sequential(*gpt.layers(size, vocabulary, "gelu", False)).to(device)
    tokens = torch.from_numpy(packed.astype(np.int32)).to(device)
    count = (len(packed) - 1) // size.context
    places = torch.arange(size.context, device=device)

    def prepared(chosen: torch.Tensor) -> Pair:
        at = chosen[:, None] * size.context + places
        return tokens[at].long(), tokens[at + 1].long()

    def entropy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(outputs.flatten(0, 1).float(), targets.flatten())

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return entropy(forward(inputs), targets)

    forward: Any = model
    if engine == "ddp":
        return plain(model, loss, prepared, count, batch, device)
    if engine == "fsdp":
        shard(model)
        entropy = torch.compile(entropy, dynamic=False)
        adam = optimizer(model, device)
        return Loop(
            count, batch, device, prepared, loss, torch.Tensor.backward, adam.step, adam.zero_grad, False
        )
    forward = zero_1(model, batch, device)
    return Loop(count, batch, device, prepared, loss, forward.backward, forward.step, lambda: None, False)


def shard(model: nn.Sequential) -> None:
    """Compile and shard the blocks, and what is outside of them: in bf16, with states in fp32."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model[1:-1]:
        layer.compile(dynamic=False)
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, reshard_after_forward=False, mp_policy=policy)


def zero_1(model: nn.Module, batch: int, device: torch.device) -> Any:
    """Return an engine of DeepSpeed."""
    import deepspeed

    fused = {"fused": True} if device.type != "cpu" else {}
    settings = {
        "train_micro_batch_size_per_gpu": batch,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 1},
        "optimizer": {
            "type": "AdamW",
            "params": {"lr": LR, "weight_decay": 0.0, "torch_adam": True, **fused},
        },
    }
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=settings)[0]


def plain(
    model: nn.Module,
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    prepared: Callable[[torch.Tensor], Pair],
    count: int,
    batch: int,
    device: torch.device,
    mode: str = "default",
) -> Loop:
    adam = optimizer(model, device)
    compiled = torch.compile(loss, mode=mode, dynamic=False)
    return Loop(count, batch, device, prepared, compiled, torch.Tensor.backward, adam.step, adam.zero_grad)


def optimizer(model: nn.Module, device: torch.device) -> torch.optim.Optimizer:
    fused = {"fused": True} if device.type != "cpu" else {}
    return torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.0, **fused)


def flags(device: torch.device) -> None:
    torch.set_float32_matmul_precision("highest" if device.type == "cpu" else "high")
    torch.backends.cudnn.benchmark = True
