"""Sources: the samples of a split, from which the feed takes micro batches.

A source has a length and a method batch(indices), which returns (inputs, targets), two trees of tensors or
arrays on the host whose rows are the samples with these indices; see trees.py. Source has the other methods
that the feed calls, with defaults. For data sets of torch see dataset_sources.py.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch

from .. import trees
from ..errors import CommonMistake
from ..trees import Tree
from . import augment, sampling
from .augment import Augmentation, Draw
from .sampling import Piece, Step

Batch = tuple[Tree, Tree]
AT_ONCE = 64  # steps whose indices are copied to a device together


class Scale(NamedTuple):
    """The normalisation of images: a pixel becomes (value / full - mean) / std, per channel."""

    full: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def on(self, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return the function that normalises images, [samples, channels, height, width], on the device."""
        mean, std = (
            torch.tensor(each, device=device).view(1, -1, 1, 1) * self.full for each in (self.mean, self.std)
        )

        def normalise(images: torch.Tensor) -> torch.Tensor:
            # A subtraction makes uint8 to fp32 by itself.
            return (images if images.dtype == torch.uint8 else images.float()).sub(mean).div_(std)

        return normalise


class Changes(NamedTuple):
    """The random changes to the images of an epoch."""

    how: Augmentation
    seed: int
    epoch: int

    def of(self, indices: np.ndarray) -> Draw:
        return augment.draw(self.how, self.seed, self.epoch, indices)


class Source:
    """The samples of a split.

    sequential: batches must be requested in order, by one thread
    in_python: samples are made by the user's code, which other threads cannot do at the same time
    workers: their number without --workers
    tokens: number of tokens to learn of each sample, if it is the same for all; otherwise 0
    scale: normalisation of the images, if the inputs are images; None for all other inputs, which keep their
    type
    """

    sequential = False
    in_python = False
    workers = 0
    tokens = 0
    scale: Scale | None = None
    _changes: Changes | None = None

    def __len__(self) -> int:
        raise NotImplementedError

    def batch(self, indices: np.ndarray) -> Batch:
        """Return the inputs and targets of these samples, in host memory."""
        raise NotImplementedError

    def order(self, seed: int, epoch: int) -> np.ndarray:
        """Return the indices of the samples in the order of an epoch, which is the same on all ranks."""
        return sampling.order(len(self), seed, epoch)

    def indices(self) -> np.ndarray:
        """Return the indices of the samples in the order of an evaluation."""
        return np.arange(len(self))

    def start(self, epoch: int) -> None:
        """Called before the first batch of an epoch."""
        if self._changes:
            self._changes = self._changes._replace(epoch=epoch)

    def detached(self) -> "Source":
        """Return the source without what only the loop needs, for a worker process."""
        return self

    def divided(self, rank: int, ranks: int, micro: int, accumulation: int) -> "Source":
        """Return the source for one of the ranks, which may read the samples of this rank only.

        `batch` gets the same indices.
        """
        return self

    def resident(self, device: torch.device) -> "Source":
        """Return a source that keeps its samples in the memory of the device, or this one."""
        return self

    def located(self, steps: Iterable[Step]) -> Iterable[Step]:
        """Return the steps with their indices in the form that `batch` takes."""
        return steps

    def augmented(self, words: Sequence[str], seed: int) -> "Source":
        """Return the source with the changes that --augment's words describe, if there are any.

        They depend on seed, epoch and index. Raise CommonMistake if the inputs are not images.
        """
        if not words:
            return self
        if self.scale is None:
            raise CommonMistake("--augment changes images; the inputs of this data set are not images")
        made = copy.copy(self)
        how = augment.parse(words, *self.shape[1:])
        made._changes = how and Changes(how, seed, 0)
        return made

    def scaled(self, mean: tuple[float, ...], std: tuple[float, ...]) -> "Source":
        """Return the source with another normalisation: one value, or one for each channel.

        Raise CommonMistake if the inputs are not images, or have another number of channels.
        """
        if self.scale is None:
            raise CommonMistake("--normalize is for images; the inputs of this data set are not images")
        channels = self.shape[0]
        if len(mean) not in (1, channels):
            raise CommonMistake(f"--normalize has {len(mean)} means; the images have {channels} channels")
        made = copy.copy(self)
        made.scale = self.scale._replace(mean=mean, std=std)
        return made

    def _changed(self, batch: Batch, indices: np.ndarray) -> Batch:
        """Return the batch with changed images, if there are changes."""
        if self._changes is None:
            return batch
        drawn = torch.from_numpy(np.stack(self._changes.of(indices)))
        return augment.by_one_gather(batch[0], drawn, self._changes.how.padding), batch[1]

    @property
    def shape(self) -> Any:
        """The shapes of the inputs of one sample, as a tree; for one tensor, its shape."""
        inputs, _ = self.batch(np.zeros(1, np.int64))
        return trees.map_leaves(lambda leaf: tuple(getattr(leaf, "shape", (0,))[1:]), inputs)


class Arrays(Source):
    """Samples in arrays, which may be mapped into memory: trees whose first dimension counts the samples."""

    def __init__(self, inputs: Tree, targets: Tree) -> None:
        self.inputs, self.labels = inputs, targets

    def __len__(self) -> int:
        return trees.rows(self.inputs)

    def batch(self, indices: np.ndarray) -> Batch:
        inputs, targets = (
            trees.map_leaves(lambda array: _rows(array, indices), tree) for tree in (self.inputs, self.labels)
        )
        return inputs, targets


def _rows(array: Any, indices: np.ndarray) -> Any:
    if isinstance(array, torch.Tensor):
        return array[torch.from_numpy(indices)]
    return None if array is None else tensor(np.take(array, indices, axis=0))


class Images(Source):
    """Images in an array, uint8 or float32 [samples, channels, height, width], with their labels."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, scale: Scale) -> None:
        self.images, self.labels = images, labels
        self.scale: Scale = scale

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, indices: np.ndarray) -> Batch:
        if self._changes:
            pixels = augment.on_host(self.images, indices, self._changes.of(indices))
        else:
            pixels = np.take(self.images, indices, axis=0)
        return torch.from_numpy(pixels), torch.from_numpy(np.take(self.labels, indices, axis=0))

    def resident(self, device: torch.device) -> Source:
        return ImagesOnDevice(self, device, self._changes)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.images.shape[1:]


class ImagesOnDevice(Source):
    """Images in the memory of an accelerator, which changes them, too.

    A copy of indices to the device costs the host as much as several kernels. They are copied for many steps
    at once, with the changes to their images.
    """

    def __init__(self, source: Images, device: torch.device, changes: Changes | None) -> None:
        self._images = torch.tensor(source.images, device=device)
        self._labels = torch.tensor(source.labels, device=device)
        self.scale, self._changes = source.scale, changes

    def __len__(self) -> int:
        return len(self._labels)

    def located(self, steps: Iterable[Step]) -> Iterable[Step]:
        """Yield the steps with a tensor in place of the indices: these, and the changes, one in each row."""
        remaining = iter(steps)
        while some := list(islice(remaining, AT_ONCE)):
            pieces = [piece for step in some for piece in step.pieces]
            indices = np.concatenate([piece.indices for piece in pieces])
            rows = np.stack([indices, *(self._changes.of(indices) if self._changes else ())])
            parts = iter(torch.split(self._copy(rows), [len(piece.indices) for piece in pieces], dim=1))
            for step in some:
                yield Step([Piece(next(parts), piece.real) for piece in step.pieces], step.total)

    def batch(self, indices: Any) -> Batch:
        images, labels = self._images[indices[0]], self._labels[indices[0]]
        if self._changes:
            images = augment.by_one_gather(images, indices[1:], self._changes.how.padding)
        return images, labels

    def _copy(self, rows: np.ndarray) -> torch.Tensor:
        table, device = torch.from_numpy(rows), self._images.device
        return table if device.type == "cpu" else table.pin_memory().to(device, non_blocking=True)


def tensor(leaf: Any) -> Any:
    """Return an array as a tensor. Types that torch hardly supports, such as uint16, become int64."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    return torch.from_numpy(leaf.astype(np.int64) if leaf.dtype.str[1:] in ("u2", "u4", "u8") else leaf)
