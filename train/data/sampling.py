"""Distribution of the samples over the ranks: every sample once per epoch, for any sizes.

Each optimizer step takes the next `micro x accumulation x world_size` samples of an order that is the same on
all ranks. This batch is divided into equal pieces, one for each forward pass of each rank. The batches and
the losses are therefore the same for any number of ranks. The last batch is smaller. If it has fewer samples
than there are pieces, a piece contains one borrowed sample that is not counted, because every rank must take
part in every collective operation.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np


class Piece(NamedTuple):
    """The samples of one forward pass; only the first `real` of them are counted."""

    indices: np.ndarray
    real: int


class Step(NamedTuple):
    """One rank's part of an optimizer step.

    pieces: one for each forward pass; total: number of samples that are counted over all ranks
    """

    pieces: list[Piece]
    total: int


def order(samples: int, seed: int, epoch: int) -> np.ndarray:
    """Return a permutation of range(samples) that depends only on seed and epoch."""
    return np.random.default_rng((seed, epoch)).permutation(samples)


def steps(order: np.ndarray, micro: int, accumulation: int, rank: int, world_size: int) -> Iterator[Step]:
    """Yield this rank's steps over the samples of `order`. Their number is the same on every rank."""
    batch = micro * accumulation * world_size
    parts = accumulation * world_size
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        first = rank * accumulation
        yield Step([_piece(chosen, i, parts) for i in range(first, first + accumulation)], len(chosen))


def steps_per_epoch(samples: int, micro: int, accumulation: int, world_size: int) -> int:
    """Return the number of optimizer steps of one epoch, including the last, smaller batch."""
    return -(-samples // (micro * accumulation * world_size))


def _piece(chosen: np.ndarray, part: int, parts: int) -> Piece:
    size, larger = divmod(len(chosen), parts)
    start = part * size + min(part, larger)
    real = size + (part < larger)
    return Piece(chosen[start : start + real], real) if real else Piece(chosen[:1], 0)
