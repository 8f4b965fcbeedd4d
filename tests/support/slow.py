"""The training module's small conv net with a pause in each training pass, so that a test can step in."""

from __future__ import annotations

import os
import time

import torch
from jobgen.train import models
from torch import nn

PAUSE = float(os.environ.get("SLOW_PAUSE", "0.05"))  # seconds


class Slow(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.training:
            time.sleep(PAUSE)
        return self.inner(images)


def build(shape: tuple[int, int, int], classes: int) -> nn.Module:
    return Slow(models.build("cnn", shape, classes))
