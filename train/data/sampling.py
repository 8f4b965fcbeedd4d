"""Which samples are mine: every sample once an epoch, over all ranks, whatever the sizes.

Each optimizer step takes the next `micro x accumulation x world_size` samples of an order that all
ranks share; that batch is cut into equal pieces, one for each forward pass of each rank. So the
batches, and the losses, are the same for 1 rank and for many. The last batch is smaller; where it
has fewer samples than there are pieces, a piece borrows one sample that does not count, because
every rank must take part in every collective operation.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np


class Piece(NamedTuple):
    """Samples of one forward pass; only the first `real` of them count."""

    indices: np.ndarray
    real: int


class Step(NamedTuple):
    """One rank's part of a step: a piece per forward pass; `total` samples count over all ranks."""

    pieces: list[Piece]
    total: int


def order(samples: int, seed: int, epoch: int) -> np.ndarray:
    """A permutation of range(samples) that depends only on seed and epoch."""
    return np.random.default_rng((seed, epoch)).permutation(samples)


def steps(order: np.ndarray, micro: int, accumulation: int, rank: int, world_size: int) -> Iterator[Step]:
    """This rank's steps over the samples of `order`, as many on every rank."""
    batch = micro * accumulation * world_size
    parts = accumulation * world_size
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        first = rank * accumulation
        yield Step([_piece(chosen, i, parts) for i in range(first, first + accumulation)], len(chosen))


def steps_per_epoch(samples: int, micro: int, accumulation: int, world_size: int) -> int:
    """Optimizer steps of one epoch, the last and smaller batch among them."""
    return -(-samples // (micro * accumulation * world_size))


def _piece(chosen: np.ndarray, part: int, parts: int) -> Piece:
    size, larger = divmod(len(chosen), parts)
    start = part * size + min(part, larger)
    real = size + (part < larger)
    return Piece(chosen[start : start + real], real) if real else Piece(chosen[:1], 0)
