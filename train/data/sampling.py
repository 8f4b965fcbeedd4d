"""Distribution of the samples over the ranks: every sample once per epoch, for any sizes.

Each optimizer step takes the next `micro x accumulation x world_size` samples of an order that is the same on
all ranks. This batch is divided into equal pieces, one for each forward pass of each rank. The batches and
the losses are therefore the same for any number of ranks. The last batch is smaller, unless it is dropped. If
it leaves fewer than two samples for a piece, the piece also contains borrowed samples that are not counted:
every rank must take part in every collective operation, and BatchNorm cannot normalise a single sample.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

LEAST = 2  # samples of a forward pass, if there are that many, and --batch-size is not 1


class Piece(NamedTuple):
    """The samples of one forward pass; only the first `real` of them are counted.

    indices: an array, or what Source.located gives in place of it
    """

    indices: Any
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


def steps(
    order: np.ndarray,
    micro: int,
    accumulation: int,
    rank: int,
    world_size: int,
    skip: int = 0,
    drop_last: bool = False,
) -> Iterator[Step]:
    """Yield this rank's steps over the samples of `order`. Their number is the same on every rank.

    skip: number of steps to skip; drop_last: leave out a last step of fewer samples
    """
    batch = micro * accumulation * world_size
    parts = accumulation * world_size
    end = len(order) - len(order) % batch if drop_last else len(order)
    first = rank * accumulation
    extras = order[: min(LEAST, micro)]
    for start in range(skip * batch, end, batch):
        selection = order[start : start + batch]
        pieces = [_piece(selection, i, parts, extras) for i in range(first, first + accumulation)]
        yield Step(pieces, len(selection))


def steps_per_epoch(
    samples: int, micro: int, accumulation: int, world_size: int, drop_last: bool = False
) -> int:
    """Return the number of optimizer steps of one epoch."""
    batch = micro * accumulation * world_size
    return samples // batch if drop_last else -(-samples // batch)


def _piece(selection: np.ndarray, part: int, parts: int, extras: np.ndarray) -> Piece:
    """Return one part of the samples, filled up with samples of `extras` to at least as many as those."""
    size, larger = divmod(len(selection), parts)
    start = part * size + min(part, larger)
    real = size + (part < larger)
    indices = selection[start : start + real]
    if real < len(extras):
        others = extras[~np.isin(extras, indices)]
        indices = np.concatenate([indices, others[: len(extras) - real]])
    return Piece(indices, real)
