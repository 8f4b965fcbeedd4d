"""A task: the samples of training and test, and what is measured on them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..host_files import Use
from ..loss_functions import BY_TOKEN
from .sources import Images, Scale, Source


@dataclass(frozen=True)
class Task:
    """The data, loss and metrics of a training.

    classes: their names; () for a task without classes. outputs: number of values that a model returns for a
    sample, or for each of its elements; 0 if unknown. loss, metrics: those of a run without --loss and
    --metric; see loss_functions.py and metrics.py, or a function. notes: what the run tells the user of the
    data. loss_by: the unit of the loss without --loss-by, sample or token.
    temporary: a directory to remove when all ranks of the host have the data. content: of a text, the numbers
    of its tokens and documents, and a digest; a run resumes with the same.
    """

    train: Source
    test: Source
    classes: tuple[str, ...] = ()
    outputs: int = 0
    loss: str | Callable[..., Any] = "cross_entropy"
    metrics: tuple[str | Callable[..., Any], ...] = ("accuracy",)
    notes: tuple[str, ...] = ()
    loss_by: str = "sample"
    temporary: Use | None = None
    content: Mapping[str, Any] = field(default_factory=dict)

    def release(self) -> None:
        """Remove temporary files. Called when all ranks of the host have the data."""
        if self.temporary:
            self.temporary.remove()

    def by_token(self, choice: str | None, loss: str | None) -> bool:
        """Return whether the loss is a mean over tokens, by the values of --loss-by and --loss, if any.

        Where all samples have as many tokens, the mean over samples is the same.
        """
        unit = choice or (self.loss_by if (loss or self.loss) in BY_TOKEN else "sample")
        return unit == "token" and not (self.train.tokens and self.test.tokens)

    def identity(self, choice: str | None, loss: str | None) -> dict[str, Any]:
        """Return what a run and its checkpoint must have in common. For the parameters see by_token."""
        return {"loss-by": "token" if self.by_token(choice, loss) else "sample", **self.content}

    def data(self) -> "Data | None":
        """Return the arrays if the task is no more than the classification of images in arrays."""
        train, test = self.train, self.test
        if not isinstance(train, Images) or not isinstance(test, Images):
            return None
        first, second = (Split(each.images, each.labels) for each in (train, test))
        arrays = Data(first, second, self.classes, *train.scale)
        plain = replace(arrays.task(), train=train, test=test) == self and train.scale == test.scale
        return arrays if plain else None


class Split(NamedTuple):
    """The training or the test samples of an image task.

    images: [samples, channels, height, width], uint8, or float32 for some of the user's own data; labels:
    int64 [samples]
    """

    images: np.ndarray
    labels: np.ndarray


class Data(NamedTuple):
    """The arrays of an image task. A pixel is normalised as (value / full - mean) / std, per channel."""

    train: Split
    test: Split
    classes: tuple[str, ...]
    full: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def task(self) -> Task:
        """Return the classification of these images."""
        scale = Scale(self.full, self.mean, self.std)
        train, test = (Images(*split, scale) for split in (self.train, self.test))
        return Task(train, test, self.classes, len(self.classes))
