"""Batches for the engine: the samples of a source on their way to the device.

Images keep the type in which they were read, mostly uint8, until they are on the device, which normalises
them. Without workers, all images are in device memory. With workers, they stay in host memory, and threads
select, augment and pin the batches in advance, in the order of the loop. Threads are used, not processes:
they live as long as the run, share the arrays and avoid a fork under MPI. Copying releases the GIL.
"""

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import torch

from .. import trees
from ..trees import Tree
from .sampling import Piece, Step
from .sources import Source
from .streams import SideStream

AHEAD = 2  # steps that each worker prepares in advance


class Micro(NamedTuple):
    """The samples of one forward pass, on the device.

    inputs, targets: trees of tensors with n rows, see trees.py
    real: only the first `real` samples are counted
    """

    inputs: Tree
    targets: Tree
    real: int


class Feed:
    """A source as micro batches on `device`. workers: number of threads."""

    def __init__(self, source: Source, device: torch.device, workers: int = 0) -> None:
        self.size, self.indices = len(source), source.indices
        self._device = device
        # An accelerator gets a copy of all images. The CPU uses the arrays as they are.
        self._source = source if workers or device.type == "cpu" else source.resident(device)
        self._finish = source.scale.on(device) if source.scale else lambda inputs: inputs
        self._stream = SideStream(device)
        threads = min(workers, 1) if source.sequential else workers
        self._ahead = AHEAD * threads
        self._pool = ThreadPoolExecutor(threads, "worker") if threads else None

    def batches(self, steps: Iterable[Step], epoch: int = 0) -> Iterator[tuple[list[Micro], int]]:
        """Yield the micro batches of each step, and the number of samples counted over all ranks."""
        self._source.start(epoch)
        for prepare, total in self._prepared(steps):
            yield self._stream.run(functools.partial(self._micros, prepare)), total

    def _micros(self, prepare: Callable[[], list[Micro]]) -> list[Micro]:
        return [self._on_device(raw) for raw in prepare()]

    def _prepared(self, steps: Iterable[Step]) -> Iterator[tuple[Callable[[], list[Micro]], int]]:
        """Yield for each step a function that returns its samples. It may use the device."""
        if self._pool is None:
            for step in steps:
                yield functools.partial(self._prepare, step), step.total
            return
        waiting: deque[tuple[Future[list[Micro]], int]] = deque()
        for step in steps:
            waiting.append((self._pool.submit(self._prepare, step), step.total))
            if len(waiting) > self._ahead:
                first, total = waiting.popleft()
                yield first.result, total
        for first, total in waiting:
            yield first.result, total

    def _prepare(self, step: Step) -> list[Micro]:
        return [self._choose(piece) for piece in step.pieces]

    def _choose(self, piece: Piece) -> Micro:
        batch: Any = self._source.batch(piece.indices)
        if self._device.type != "cpu":
            batch = trees.mapped(_pinned, batch)
        inputs, targets = batch
        return Micro(inputs, targets, piece.real)

    def _on_device(self, raw: Micro) -> Micro:
        inputs, targets = (trees.moved(tree, self._device) for tree in raw[:2])
        return Micro(self._finish(inputs), targets, raw.real)


def _pinned(leaf: Any) -> Any:
    host = isinstance(leaf, torch.Tensor) and leaf.device.type == "cpu"
    return leaf.pin_memory() if host else leaf
