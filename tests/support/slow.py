"""The training module's small conv net with a pause in each training pass, so that a test can step in.

SLOW_PAUSE is the pause of the first attempt, in seconds; the attempts after it have less to wait for.
"""

from __future__ import annotations

import os
import time

import torch
from jobgen.train import models
from torch import nn

FIRST = os.environ.get("JOBGEN_ATTEMPT", "1") == "1"
PAUSE = float(os.environ.get("SLOW_PAUSE", "0.05") if FIRST else "0.05")


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
