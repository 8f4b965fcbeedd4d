"""A small data set of images, and the training module's small conv net with a pause in each training pass, so that a
test can step in.

SLOW_PAUSE has the pauses of the first attempts, in seconds, such as 0.5,0.1; there is none in those after them.
"""

from __future__ import annotations

import os
import time

import numpy as np
import torch
from jobgen.train import models
from torch import nn

PAUSES = os.environ.get("SLOW_PAUSE", "0.05").split(",")
PAUSE = float(dict(enumerate(PAUSES, 1)).get(int(os.environ.get("JOBGEN_ATTEMPT", "1")), "0"))


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


def data() -> dict[str, object]:
    """Noise of ten classes, in less time than scikit-learn needs for its digits."""
    random = np.random.default_rng(0)
    parts = {"train": 186, "test": 20}
    made = {
        part: (random.random((size, 1, 8, 8), np.float32), random.integers(0, 10, size))
        for part, size in parts.items()
    }
    return {**made, "outputs": 10}
