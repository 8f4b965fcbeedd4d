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
    """The small conv net of the tutorials (conv, pool, conv, pool, three dense layers, after LeNet-5).

    Padded, so that 8 x 8 pixels are enough; 32 and 64 channels, since LeNet's 6 and 16 vary by five
    points of accuracy on the digits from one seed to the next.
    """
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * (height // 4) * (width // 4), 120),
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
