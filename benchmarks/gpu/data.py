"""The data set of part resume: --dataset benchmarks.gpu.data:images."""

from __future__ import annotations

from typing import Any

import numpy as np


def images() -> dict[str, Any]:
    """Return random images of 32 x 32 pixels with random labels."""
    random = np.random.default_rng(0)
    pictures = random.integers(0, 256, (512, 3, 32, 32), np.uint8)
    labels = random.integers(0, 10, 512)
    return {"train": (pictures, labels), "test": (pictures[:64], labels[:64]), "mean": [0.5] * 3}
