"""Batches for the engine: the samples of a split on their way to the device.

Images keep the type in which they were read, mostly uint8, until they are on the device, which normalises
them. Without workers, the whole split is in device memory. With workers, it stays in host memory, and threads
select, augment and pin the batches in advance, in the order of the loop. Threads are used, not processes:
they live as long as the run, share the arrays and avoid a fork under MPI. Copying releases the GIL.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch

from ..engines.base import Micro
from . import augment
from .augment import Augmentation
from .dataset import Data, Split
from .sampling import Piece, Step

AHEAD = 2  # steps that each worker prepares in advance


class Raw(NamedTuple):
    """The samples of one forward pass before normalisation, in device or host memory. real: see Micro."""

    images: torch.Tensor
    labels: torch.Tensor
    real: int


class Feed:
    """A split as micro batches on `device`.

    workers: number of threads; changes: augmentation of the images; seed: seed of the augmentation
    """

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
        # An accelerator gets a copy of the split. The CPU uses the arrays as they are.
        self._resident = None
        if not workers and device.type != "cpu":
            self._resident = (
                torch.tensor(split.images, device=device),
                torch.tensor(split.labels, device=device),
            )

    def batches(self, steps: Iterable[Step], epoch: int = 0) -> Iterator[tuple[list[Micro], int]]:
        """Yield the micro batches of each step, and the number of samples counted over all ranks."""
        for raw, total in self._prepared(steps, epoch):
            yield [self._on_device(each) for each in raw], total

    def _prepared(self, steps: Iterable[Step], epoch: int) -> Iterator[tuple[list[Raw], int]]:
        if self._pool is None:
            for step in steps:
                yield self._prepare(step, epoch), step.total
            return
        waiting: deque[tuple[Future[list[Raw]], int]] = deque()
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
