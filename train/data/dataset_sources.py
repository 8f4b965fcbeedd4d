"""Sources of the user's data sets: map-style, iterable, or any object with __len__ and batch(indices)."""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from .. import trees
from ..errors import BadInput
from .sources import Batch, Scale, Source, tensor

Collate = Callable[[list[Any]], Any]


class Batches(Protocol):
    """The two methods that every source has."""

    def __len__(self) -> int: ...

    def batch(self, indices: np.ndarray) -> Batch: ...


class Items(Source):
    """A map-style data set: samples by index, read when they are needed and put together by `collate`.

    sampler: yields the indices of an epoch, as torch's samplers do; None for all in a random order
    """

    in_python = True

    def __init__(
        self,
        samples: Any,
        collate: Collate,
        sampler: Any = None,
        scale: Scale | None = None,
        workers: int = 0,
    ) -> None:
        self._samples, self._collate, self._sampler = samples, collate, sampler
        self.scale, self.workers = scale, workers

    def detached(self) -> Source:
        made = copy.copy(self)
        made._sampler = None
        return made

    def __len__(self) -> int:
        return len(self._samples if self._sampler is None else self._sampler)

    def batch(self, indices: np.ndarray) -> Batch:
        several = getattr(self._samples, "__getitems__", None)  # of torch's data sets: all at once
        numbers = indices.tolist()
        samples = several(numbers) if several else [self._samples[i] for i in numbers]
        return self._changed(pair(self._collate(samples)), indices)

    def order(self, seed: int, epoch: int) -> np.ndarray:
        if self._sampler is None:
            return super().order(seed, epoch)
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(epoch)
        key = int(np.random.SeedSequence((seed, epoch)).generate_state(1)[0])
        with torch.random.fork_rng(devices=[]):  # the same order on all ranks and after a resume
            torch.manual_seed(key)
            if getattr(self._sampler, "generator", None) is not None:
                self._sampler.generator.manual_seed(key)
            return np.fromiter(self._sampler, np.int64)

    def indices(self) -> np.ndarray:
        return super().indices() if self._sampler is None else self.order(0, 0)


class Share(NamedTuple):
    """The samples of one of `ranks` ranks: of each step as many as sampling.steps gives it."""

    rank: int
    ranks: int
    micro: int
    accumulation: int

    def places(self, indices: np.ndarray, length: int) -> np.ndarray:
        """Return the places of samples in the shard of this rank; 0 for those of other ranks before it."""
        batch = self.ranks * self.micro * self.accumulation
        step, within = np.divmod(indices, batch)
        first = self._first(self.rank, np.minimum(batch, length - step * batch))
        places: np.ndarray = np.maximum(0, step * self.micro * self.accumulation + within - first)
        return places

    def count(self, length: int) -> int:
        """Return the number of samples of this rank in an epoch."""
        steps, rest = divmod(length, self.ranks * self.micro * self.accumulation)
        last = self._first(self.rank + 1, rest) - self._first(self.rank, rest)
        return steps * self.micro * self.accumulation + int(last)

    def _first(self, rank: int, samples: Any) -> Any:
        """Return which of the samples of a step is the first one of a rank."""
        size, larger = np.divmod(samples, self.ranks * self.accumulation)
        part = rank * self.accumulation
        return part * size + np.minimum(part, larger)


def shard(samples: Any, rank: int, ranks: int) -> Any:
    """Return the part of the data set for this rank; None if it cannot be divided.

    That of Hugging Face has other parameters, and is divided if it has as many files.
    """
    if not callable(method := getattr(samples, "shard", None)):
        return None
    if "num_shards" in inspect.signature(method).parameters:
        return method(num_shards=ranks, index=rank) if getattr(samples, "num_shards", 0) >= ranks else None
    return method(rank, ranks)


class Stream(Source):
    """An iterable data set, of which an epoch takes the first `length` samples.

    Every rank reads all samples and skips those of the others, so that results do not depend on the number of
    ranks. A data set with a method shard(rank, ranks) is divided: each rank reads the samples of its shard
    alone, and `length` is their number in all. set_epoch(epoch) of the data set is called before each epoch,
    if it exists.
    """

    sequential = in_python = True

    def __init__(
        self,
        samples: Iterable[Any],
        collate: Collate,
        length: int,
        scale: Scale | None = None,
        workers: int = 0,
    ) -> None:
        self._samples, self._collate, self._length = samples, collate, length
        self.scale, self.workers = scale, workers
        self._share: Share | None = None
        self._iterator: Iterator[Any] | None = None
        self._next, self._last = 0, None

    def __len__(self) -> int:
        return self._length

    def order(self, seed: int, epoch: int) -> np.ndarray:
        return np.arange(self._length)

    def start(self, epoch: int) -> None:
        if hasattr(self._samples, "set_epoch"):
            self._samples.set_epoch(epoch)
        self._iterator, self._next = iter(self._samples), 0

    def batch(self, indices: np.ndarray) -> Batch:
        places = indices if self._share is None else self._share.places(indices, self._length)
        return self._changed(pair(self._collate([self._sample(int(place)) for place in places])), indices)

    def divided(self, rank: int, ranks: int, micro: int, accumulation: int) -> Source:
        samples = shard(self._samples, rank, ranks) if ranks > 1 else None
        if samples is None:
            return self
        made = copy.copy(self)
        made._samples, made._share, made._iterator = samples, Share(rank, ranks, micro, accumulation), None
        return made

    def detached(self) -> Source:
        made = copy.copy(self)
        made._iterator, made._last = None, None  # what has been read to know the shapes
        return made

    def _sample(self, index: int) -> Any:
        """Return the sample with this index, or, for an index before the position, the last one read.

        An earlier sample is requested only where it is not counted; see sampling.py.
        """
        if self._iterator is None:
            self.start(0)
        assert self._iterator is not None
        while self._next <= index:
            try:
                self._last = next(self._iterator)
            except StopIteration:
                which = f"shard {self._share.rank} of " if self._share else ""
                raise BadInput(
                    f"{which}the iterable data set ended after {self._next} of its "
                    f"{self._share.count(self._length) if self._share else self._length} samples an epoch"
                ) from None
            self._next += 1
        return self._last

    @property
    def shape(self) -> Any:
        shape = super().shape
        self._iterator = None  # the epoch begins with the first sample again
        return shape


class UserSource(Source):
    """The user's own object with __len__ and batch."""

    in_python = True

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)

    def batch(self, indices: np.ndarray) -> Batch:
        return pair(self._batches.batch(indices))


def pair(batch: Any) -> Batch:
    """Return the inputs and targets of a collated batch, as trees of tensors.

    A tuple or list of two is (inputs, targets). A mapping with `labels` has these as targets, and stays whole
    as inputs. Anything else is inputs without targets.
    """
    tensors = trees.map_leaves(tensor, batch)
    if isinstance(tensors, list | tuple) and len(tensors) == 2:
        return tensors[0], tensors[1]
    if isinstance(tensors, dict) and "labels" in tensors:
        return tensors, tensors["labels"]
    return tensors, None
