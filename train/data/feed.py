"""Batches for the engine: a split's samples on their way to the device.

Images stay as they were read, mostly bytes, until they are on the device, which normalises them. Without
workers a whole split lies on the device; with workers it stays in the host's memory, and threads choose,
augment and pin batches ahead of the loop, in the loop's order. Threads, not processes: they live as long
as the run, share the arrays, and nothing is forked under MPI; the copying is done outside Python's lock.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch

from ..engines import Micro
from . import Data, Split, augment
from .augment import Augmentation
from .sampling import Piece, Step

AHEAD = 2  # steps that each worker prepares before they are wanted


class Raw(NamedTuple):
    """One forward pass before normalisation, on the device or in the host's memory."""

    images: torch.Tensor
    labels: torch.Tensor
    real: int


class Feed:
    """A split as micro batches on `device`; `changes` are made to the images, by `seed` and epoch."""

    def __init__(
        self,
        split: Split,
        data: Data,
        device: torch.device,
        workers: int = 0,
        changes: Augmentation | None = None,
        seed: int = 0,
    ) -> None:
        self.size = len(split.labels)
        self._split = split
        self._device = device
        self._changes, self._seed = changes, seed
        self._mean = torch.tensor(data.mean, device=device).view(1, -1, 1, 1) * data.full
        self._std = torch.tensor(data.std, device=device).view(1, -1, 1, 1) * data.full
        self._ahead = AHEAD * workers
        self._pool = ThreadPoolExecutor(workers, "worker") if workers else None
        # An accelerator holds the split itself. A CPU shares it as it is.
        self._resident = None
        if not workers and device.type != "cpu":
            self._resident = (
                torch.tensor(split.images, device=device),
                torch.tensor(split.labels, device=device),
            )

    def batches(self, steps: Iterable[Step], epoch: int = 0) -> Iterator[tuple[list[Micro], int]]:
        """The micro batches of each step, and how many samples it counts over all ranks."""
        for raw, total in self._prepared(steps, epoch):
            yield [self._on_device(each) for each in raw], total

    def _prepared(self, steps: Iterable[Step], epoch: int) -> Iterator[tuple[list[Raw], int]]:
        if self._pool is None:
            for step in steps:
                yield self._prepare(step, epoch), step.total
            return
        waiting: deque = deque()
        for step in steps:
            waiting.append((self._pool.submit(self._prepare, step, epoch), step.total))
            if len(waiting) > self._ahead:
                first, total = waiting.popleft()
                yield first.result(), total
        for first, total in waiting:
            yield first.result(), total

    def _prepare(self, step: Step, epoch: int) -> list[Raw]:
        return [self._choose(piece, epoch) for piece in step.pieces]

    def _choose(self, piece: Piece, epoch: int) -> Raw:
        drawn = self._changes and augment.draw(self._changes, self._seed, epoch, piece.indices)
        if self._resident is not None:
            chosen = torch.from_numpy(piece.indices).to(self._device)
            images, labels = (tensor[chosen] for tensor in self._resident)
            if self._changes and drawn:
                images = augment.on_device(images, drawn, self._changes.padding)
            return Raw(images, labels, piece.real)
        if drawn:
            pixels = augment.on_host(self._split.images, piece.indices, drawn)
        else:
            pixels = np.take(self._split.images, piece.indices, axis=0)
        images, labels = (
            torch.from_numpy(pixels),
            torch.from_numpy(np.take(self._split.labels, piece.indices)),
        )
        if self._device.type != "cpu":
            images, labels = images.pin_memory(), labels.pin_memory()
        return Raw(images, labels, piece.real)

    def _on_device(self, raw: Raw) -> Micro:
        images = raw.images.to(self._device, non_blocking=True).float()
        labels = raw.labels.to(self._device, non_blocking=True)
        return Micro(images.sub_(self._mean).div_(self._std), labels, raw.real)
