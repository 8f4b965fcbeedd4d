"""The arrays of a data set."""

from typing import NamedTuple

import numpy as np


class Split(NamedTuple):
    """The training or the test samples.

    images: [samples, channels, height, width], uint8, or float32 for some of the user's own data; labels:
    int64 [samples]
    """

    images: np.ndarray
    labels: np.ndarray


class Data(NamedTuple):
    """A task's data. A pixel is normalised as (value / full - mean) / std, per channel."""

    train: Split
    test: Split
    classes: tuple[str, ...]
    full: float
    mean: tuple[float, ...]
    std: tuple[float, ...]
