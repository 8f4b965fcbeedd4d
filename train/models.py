"""The networks: single-device code that knows nothing of ranks. Input [batch, channels, height, width]
as floats, output logits [batch, classes]."""

import math

import torch
from torch import nn
from torch.nn import functional


def build(name: str, shape: tuple[int, int, int], classes: int) -> nn.Module:
    """The model called `name` for images of `shape` (channels, height, width)."""
    return {"cnn": cnn, "mlp": mlp}[name](shape, classes)


def cnn(shape: tuple[int, int, int], classes: int) -> nn.Module:
    """The small conv net of the tutorials, after LeNet-5; padded, so that 8 x 8 pixels are enough."""
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * (height // 4) * (width // 4), 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )


def mlp(shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Two hidden layers of 128."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(shape), 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


def summed_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy summed over the samples, in fp32: half precision loses the small differences."""
    return functional.cross_entropy(logits.float(), labels, reduction="sum")
