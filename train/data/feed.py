"""Batches for the engine: the samples of a source on their way to the device.

Images keep the type in which they were read, mostly uint8, until they are on the device, which normalises
them. Without workers, all images are in device memory. With workers, they stay in host memory, and threads
select, augment and pin the batches in advance, in the order of the loop. Threads share the arrays, and
copying releases the GIL. Only samples that Python code makes are prepared in processes; see processes.py.
"""

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar

import torch
from torch import distributed

from .. import trees
from ..accelerators import ACCELERATORS
from ..loss_functions import tokens
from ..trees import Tree
from .processes import Processes
from .sampling import Piece, Step
from .sources import Batch, Source

Result = TypeVar("Result")
AHEAD = 2  # steps that each worker prepares in advance


class Micro(NamedTuple):
    """The samples of one forward pass, on the device.

    inputs, targets: trees of tensors with n rows, see trees.py
    real: only the first `real` samples are counted
    factor: of sums over tokens, see loss_functions.py; None if the unit of the loss is a sample
    """

    inputs: Tree
    targets: Tree
    real: int
    factor: torch.Tensor | None = None


class MicroBatches:
    """The micro batches of a step. Each is on the device only when the iteration, one in all, comes to it."""

    def __init__(self, count: int, micros: Iterator[Micro]) -> None:
        self._count, self._micros = count, micros

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Micro]:
        return self._micros


class Feed:
    """A source as micro batches on `device`.

    workers: number of threads, or of processes for samples that Python code makes; None for the source's
    own number, as of a DataLoader; part: returns the context in which the micro batches are prepared
    by_token: the unit of the loss is a token; all ranks then count the tokens of each step together
    seed: of the random numbers in processes; name: of the data set, for messages
    """

    def __init__(
        self,
        source: Source,
        device: torch.device,
        workers: int | None = 0,
        part: Callable[[], AbstractContextManager[None]] = nullcontext,
        by_token: bool = False,
        seed: int = 0,
        name: str = "",
    ) -> None:
        self._by_token = by_token
        workers = source.workers if workers is None else workers
        self.size, self.indices = len(source), source.indices
        self._device, self._part = device, part
        # An accelerator gets a copy of all images. The CPU uses the arrays as they are.
        self._source = source if workers or device.type == "cpu" else source.resident(device)
        self._finish = source.scale.on(device) if source.scale else lambda inputs: inputs
        self._stream = SideStream(device) if self._source is source else None
        count = min(workers, 1) if source.sequential else workers
        self._ahead = AHEAD * count
        self._pool, self._processes = None, None
        if count and source.in_python:
            self._processes = Processes(source, count, AHEAD, device.type != "cpu", seed, name)
        elif count:
            self._pool = ThreadPoolExecutor(count, "worker")

    def batches(self, steps: Iterable[Step], epoch: int = 0) -> Iterator[tuple[MicroBatches, int]]:
        """Yield the micro batches of each step, and the number of samples counted over all ranks."""
        if not self._processes:
            self._source.start(epoch)
        for prepare, step in self._preparations(self._source.located(steps), epoch):
            count = len(step.pieces)
            if self._by_token:
                prepare = self._with_factor(prepare())
            yield MicroBatches(count, self._micros(prepare, count)), step.total

    def _micros(self, prepare: Callable[[], Iterable[Micro]], count: int) -> Iterator[Micro]:
        raw: list[Iterator[Micro]] = []

        def make() -> Micro:
            raw.extend(() if raw else [iter(prepare())])
            return self._on_device(next(raw[0]))

        for _ in range(count):
            with self._part():
                micro = self._stream.run(make) if self._stream else make()
            yield micro

    def close(self) -> None:
        """End the processes, if there are any."""
        if self._processes:
            self._processes.close()

    def _preparations(
        self, steps: Iterable[Step], epoch: int
    ) -> Iterator[tuple[Callable[[], Iterable[Micro]], Step]]:
        """Yield for each step a function that returns its samples. It may use the device."""
        if self._processes:
            for batches, step in self._processes.batches(steps, epoch):
                yield functools.partial(_micros, batches, step), step
            return
        if self._pool is None:
            for step in steps:
                yield functools.partial(map, self._choose, step.pieces), step
            return
        queue: deque[tuple[Future[list[Micro]], Step]] = deque()
        for step in steps:
            queue.append((self._pool.submit(self._prepare, step), step))
            if len(queue) > self._ahead:
                first, ready = queue.popleft()
                yield first.result, ready
        for first, ready in queue:
            yield first.result, ready

    def _with_factor(self, micros: Iterable[Micro]) -> Callable[[], Iterable[Micro]]:
        """Return a function that returns the micro batches with the factor of the step.

        It is the samples of all ranks, divided by their tokens. Stages of a pipeline, which have the same
        samples, count them several times, which leaves it as it is.
        """
        micros, counts = list(micros), torch.zeros(2, dtype=torch.int64)
        for micro in micros:
            counts += torch.stack([torch.tensor(micro.real), tokens(micro.targets, micro.real).cpu()])
        counts = counts.to(self._device)
        if distributed.is_initialized() and distributed.get_world_size() > 1:
            distributed.all_reduce(counts)
        factor = counts[0] / counts[1].clamp(min=1)
        return lambda: [micro._replace(factor=factor) for micro in micros]

    def _prepare(self, step: Step) -> list[Micro]:
        return [self._choose(piece) for piece in step.pieces]

    def _choose(self, piece: Piece) -> Micro:
        batch: Any = self._source.batch(piece.indices)
        if self._device.type != "cpu":
            batch = trees.map_leaves(_pin, batch)
        inputs, targets = batch
        return Micro(inputs, targets, piece.real)

    def _on_device(self, raw: Micro) -> Micro:
        inputs, targets = (trees.move_to(tree, self._device) for tree in raw[:2])
        return raw._replace(inputs=self._finish(inputs), targets=targets)


def _micros(batches: list[Batch], step: Step) -> list[Micro]:
    pairs = zip(batches, step.pieces, strict=True)
    return [Micro(inputs, targets, piece.real) for (inputs, targets), piece in pairs]


def _pin(leaf: Any) -> Any:
    host = isinstance(leaf, torch.Tensor) and leaf.device.type == "cpu"
    return leaf.pin_memory() if host else leaf


class SideStream:
    """A stream of the device in which batches are prepared beside the computation.

    The host is ahead of the device: it asks for the next samples while the device still computes the last
    step. In the stream of the computation, their preparation would wait for the end of that step. On a device
    without streams, all work is done in order.
    """

    def __init__(self, device: torch.device) -> None:
        streams = any(row.streams for row in ACCELERATORS.values() if row.type == device.type)
        self._module = torch.get_device_module(device) if streams else None
        self._side: Any = None
        if self._module:
            self._side = self._module.Stream()
            self.follow()  # of data that are on the device already

    def follow(self) -> None:
        """Let later work in the stream wait for the computation up to here."""
        if self._module:
            self._side.wait_stream(self._module.current_stream())

    def run(self, make: Callable[[], Result]) -> Result:
        """Return make(), whose work is done in the stream. The computation that follows waits for it.

        make does not wait for the computation: it must not use what that has written.
        """
        if not self._module:
            return make()
        with self._module.stream(self._side):
            result = make()
        now = self._module.current_stream()
        now.wait_stream(self._side)
        for leaf in trees.leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.device.type != "cpu":
                leaf.record_stream(now)  # its memory is reused only after the computation
        return result
