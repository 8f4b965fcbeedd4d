"""The networks, written for a single device, without any use of ranks.

Input: floats [batch, channels, height, width]; output: logits [batch, classes].
"""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .. import own
from ..config.converters import is_own
from ..errors import CommonMistake
from . import resnet


def build(name: str, shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Return the model `name` for images of `shape` (channels, height, width).

    name: one of our models, or package.module:name for the user's own function, which makes the model. Raise
    CommonMistake if this function does not exist or returns no trainable module, or if the images are too
    small.
    """
    if is_own(name):
        made = own.call("--model", name, own.find("--model", name), "NAME(shape, classes)", shape, classes)
        if not isinstance(made, nn.Module):
            raise CommonMistake(f"--model {name} returned {type(made).__name__}, not a torch.nn.Module")
        if not any(p.requires_grad for p in made.parameters()):
            raise CommonMistake(f"--model {name} returned a {type(made).__name__} without trainable weights")
        _check_logits(made, name, classes)
        return made
    return {"cnn": cnn, "mlp": mlp, "resnet18": resnet18}[name](shape, classes)


def _check_logits(model: nn.Module, name: str, classes: int) -> None:
    """Make the first forward pass raise CommonMistake unless its output is logits."""
    # A pipeline calls the layers, but not the whole model.
    last = model[-1] if isinstance(model, nn.Sequential) else model

    def check(module: nn.Module, inputs: Any, output: Any) -> None:
        hook.remove()
        shape = list(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        if not (isinstance(output, torch.Tensor) and output.ndim == 2 and output.shape[1] == classes):
            raise CommonMistake(f"--model {name} returns {shape} instead of logits, [samples, {classes}]")

    hook = last.register_forward_hook(check)


def cnn(shape: tuple[int, int, int], classes: int) -> nn.Sequential:
    """Return the small convolutional network of the tutorials, after LeNet-5.

    It has two convolutions, each followed by a pooling, and three dense layers. The convolutions are padded,
    so that 8 x 8 pixels are enough. They have 32 and 64 channels: with LeNet's 6 and 16, the accuracy on the
    digits varies by five points between seeds.
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
    """Return a network with two hidden layers of 128 units."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(shape), 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


def resnet18(shape: tuple[int, int, int], classes: int) -> nn.Module:
    """Return ResNet-18, see resnet.py. Raise CommonMistake if the images are too small."""
    channels, *pixels = shape
    if min(pixels) < resnet.SMALLEST:
        raise CommonMistake(
            f"--model resnet18 needs images of at least {resnet.SMALLEST} x {resnet.SMALLEST} pixels; these "
            f"have {pixels[0]} x {pixels[1]}"
        )
    return resnet.resnet18(channels, classes)


def summed_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy summed over the samples, in fp32: half precision loses small differences."""
    return functional.cross_entropy(logits.float(), labels, reduction="sum")
