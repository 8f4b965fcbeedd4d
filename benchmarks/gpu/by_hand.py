"""The loops by hand that the training module is compared with: torch only, compiled as a whole.

They keep their data on the device, use TF32, autocast to bf16, fused kernels of the optimizer and
channels_last, and read the loss every ten steps. Model and data are those of the training module.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jobgen.train import data, models
from jobgen.train.config.language import Size
from jobgen.train.models import gpt
from torch import nn
from torch.nn import functional

Epoch = Callable[[], None]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def images(name: str, samples: data.Data, batch: int, device: torch.device) -> Epoch:
    """Return an epoch of the model `name` over the images."""
    flags(device)
    model = models.build(name, samples.train.images.shape[1:], 10)
    model = model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    pixels = torch.tensor(samples.train.images, device=device)
    labels = torch.tensor(samples.train.labels, device=device)
    mean, std = (torch.tensor(each, device=device).view(1, -1, 1, 1) * 255 for each in samples[4:])

    def forward(images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(images).float(), targets)

    def prepared(chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        images = ((pixels[chosen].float() - mean) / std).contiguous(memory_format=torch.channels_last)
        return images, labels[chosen]

    return epoch(model, forward, prepared, len(pixels), batch, device)


def language(size: Size, packed: np.ndarray, vocabulary: int, batch: int, device: torch.device) -> Epoch:
    """Return an epoch of a GPT over sequences of tokens."""
    flags(device)
    model = nn.Sequential(*gpt.layers(size, vocabulary, "gelu", False)).to(device)
    tokens = torch.from_numpy(packed.astype(np.int32)).to(device)
    count = (len(packed) - 1) // size.context
    places = torch.arange(size.context, device=device)

    def forward(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(inputs).flatten(0, 1).float(), targets.flatten())

    def prepared(chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        at = chosen[:, None] * size.context + places
        return tokens[at].long(), tokens[at + 1].long()

    return epoch(model, forward, prepared, count, batch, device)


def flags(device: torch.device) -> None:
    torch.set_float32_matmul_precision("highest" if device.type == "cpu" else "high")
    torch.backends.cudnn.benchmark = True


def epoch(
    model: nn.Module,
    forward: Loss,
    prepared: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
    count: int,
    batch: int,
    device: torch.device,
) -> Epoch:
    """Return a function that trains one epoch of `count` samples."""
    fused = {"fused": True} if device.type != "cpu" else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.0, **fused)
    compiled = torch.compile(forward, dynamic=False)

    def run() -> None:
        order = torch.randperm(count, device=device)
        for number, chosen in enumerate(order.split(batch)):
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.bfloat16):
                loss = compiled(*prepared(chosen))
            loss.backward()
            optimizer.step()
            if number % 10 == 0:
                loss.item()
        loss.item()

    return run
