"""ResNet-18 in its form for CIFAR: He et al., https://arxiv.org/abs/1512.03385.

Depth and widths are those of the ImageNet network in section 4.1 (64 to 512 channels, two blocks each). The
stem is that of section 4.2: one 3 x 3 convolution and no pooling, because these images are small. There are
11.2 million parameters. Shortcuts that change the shape are 1 x 1 convolutions (option B of the paper).
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
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


def resnet18(channels: int, classes: int) -> nn.Sequential:
    """Return the network for images of `channels` and at least 16 x 16 pixels. It returns logits.

    BatchNorm averages over the micro batch of one device, so the losses depend on how a batch is divided.
    """
    widths = (64, 64, 128, 256, 512)
    blocks = []
    for before, width in pairwise(widths):
        blocks += [Block(before, width, 1 if width == 64 else 2), Block(width, width, 1)]
    return nn.Sequential(
        _convolution(channels, 64, 3, 1),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, classes),
    )
