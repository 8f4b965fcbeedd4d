"""The networks for images, and the user's own models.

Input: floats [batch, channels, height, width]; output: logits [batch, classes].
"""

import math
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from .. import user_code
from ..config.converters import is_own
from ..errors import CommonMistake

SMALLEST = 16  # pixels; the last feature maps then have 2 x 2 (resnet18) or 1 x 1 (lenet)


def build(name: str, shape: Any, outputs: int) -> nn.Module:
    """Return the model `name` for inputs of `shape`, such as (channels, height, width).

    name: one of our models, or package.module:name for the user's own function, which makes the model; it is
    called without arguments if it has no parameters. outputs: values that the model returns for a sample.
    Raise CommonMistake if this function does not exist or returns no trainable module, or if the inputs do
    not fit the model.
    """
    if is_own(name):
        function = user_code.find("--model", name)
        arguments = (shape, outputs) if user_code.parameters(function) else ()
        model = user_code.call("--model", name, function, "NAME() or NAME(shape, outputs)", *arguments)
        if not isinstance(model, nn.Module):
            raise CommonMistake(f"--model {name} returned {type(model).__name__}, not a torch.nn.Module")
        if not any(p.requires_grad for p in model.parameters()):
            raise CommonMistake(f"--model {name} returned a {type(model).__name__} without trainable weights")
        return model
    check(name, shape, outputs)
    return {"cnn": cnn, "mlp": mlp, "lenet": lenet, "resnet18": resnet18}[name](shape, outputs)


def check(name: str, shape: Any, outputs: int) -> None:
    """Raise CommonMistake if one of our models cannot take inputs of `shape`, or has no number of outputs."""
    flat = isinstance(shape, tuple) and all(isinstance(size, int) for size in shape)
    if not flat or (name != "mlp" and len(shape) != 3):
        needs = "one tensor" if name == "mlp" else "images, [channels, height, width]"
        raise CommonMistake(f"--model {name} needs {needs}; the inputs of a sample have the shape {shape}")
    if not outputs:
        raise CommonMistake(f"--model {name}: the data give neither `classes` nor `outputs`")


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


def lenet(shape: tuple[int, int, int], classes: int) -> nn.Sequential:
    """Return the network of PyTorch's tutorial "Training a Classifier", after LeNet-5.

    Raise CommonMistake if the images are too small.
    """
    channels, height, width = shape
    _check_pixels("lenet", height, width)
    pixels = [((size - 4) // 2 - 4) // 2 for size in (height, width)]
    return nn.Sequential(
        nn.Conv2d(channels, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * math.prod(pixels), 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, classes),
    )


def resnet18(shape: tuple[int, int, int], classes: int) -> nn.Sequential:
    """Return ResNet-18 in its form for CIFAR: He et al., https://arxiv.org/abs/1512.03385.

    Depth and widths are those of the ImageNet network in section 4.1 (64 to 512 channels, two blocks each).
    The stem is that of section 4.2: one 3 x 3 convolution and no pooling, because these images are small.
    There are 11.2 million parameters. Shortcuts that change the shape are 1 x 1 convolutions (option B of the
    paper). BatchNorm averages over the micro batch of one device, so the losses depend on how a batch is
    divided. Raise CommonMistake if the images are too small.
    """
    channels, *pixels = shape
    _check_pixels("resnet18", *pixels)
    widths = (64, 64, 128, 256, 512)
    blocks = []
    for before, width in pairwise(widths):
        blocks += [ResidualBlock(before, width, 1 if width == 64 else 2), ResidualBlock(width, width, 1)]
    return nn.Sequential(
        _convolution(channels, 64, 3, 1),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, classes),
    )


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut: [n, inputs, h, w] to [n, outputs, h / stride, w / stride]."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(inputs, outputs, 3, stride)
        self.second = _convolution(outputs, outputs, 3, 1)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else _convolution(inputs, outputs, 1, stride)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out = self.second(functional.relu(self.first(images)))
        return functional.relu(out + self.shortcut(images))


def _convolution(inputs: int, outputs: int, size: int, stride: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    # As in section 3.4 of the paper: "Delving deep into rectifiers", https://arxiv.org/abs/1502.01852.
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


def _check_pixels(name: str, height: int, width: int) -> None:
    if min(height, width) < SMALLEST:
        raise CommonMistake(
            f"--model {name} needs images of at least {SMALLEST} x {SMALLEST} pixels; these have "
            f"{height} x {width}"
        )
