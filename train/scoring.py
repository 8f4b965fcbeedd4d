"""The evaluation of a model on the whole test set."""

from typing import NamedTuple

import numpy as np
import torch
from torch import distributed

from .data import sampling
from .data.feed import Feed
from .device import Device
from .engines import Evaluator


class Scores(NamedTuple):
    """The results on the whole test set.

    loss: mean loss per sample; accuracy: fraction of correct samples; per_class: accuracy by class, None for
    a class without samples
    """

    loss: float
    accuracy: float
    per_class: dict[str, float | None]


def evaluate(engine: Evaluator, split: Feed, classes: tuple[str, ...], device: Device, micro: int) -> Scores:
    """Return the scores on the split. Each sample is counted once, for any number of ranks."""
    right, seen = torch.zeros(2, len(classes), dtype=torch.int64, device=device.torch)
    loss = torch.zeros((), device=device.torch)
    with engine.evaluating():
        steps = sampling.steps(np.arange(split.size), micro, 1, *engine.share)
        for ((images, labels, real),), _ in split.batches(steps):
            logits = engine.predict(images)
            if logits is None:
                continue
            logits, labels = logits[:real].float(), labels[:real]
            loss += torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
            seen.index_add_(0, labels, torch.ones_like(labels))
            right.index_add_(0, labels, (logits.argmax(1) == labels).to(torch.int64))
    for tensor in (right, seen, loss):
        distributed.all_reduce(tensor)
    per_class = {
        name: round(r / n, 6) if n else None
        for name, r, n in zip(classes, right.tolist(), seen.tolist(), strict=True)
    }
    return Scores(loss.item() / split.size, round(int(right.sum()) / split.size, 6), per_class)
