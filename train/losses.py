"""The losses of an epoch: kept on the device until they are reported, and added up over the ranks then."""

import time
from typing import NamedTuple

import torch
from torch import distributed

from .checkpoints import Progress


class Place(NamedTuple):
    """The step that a report was posted after."""

    epoch: int
    step: int
    in_epoch: int
    lr: float
    gradient_norm: float | None
    seconds: float


class _Posted(NamedTuple):
    place: Place
    summed: torch.Tensor
    work: distributed.Work
    steps: int  # since the report before
    samples: int
    rate: float


class Losses:
    """The losses of an epoch. Those not reported yet stay on the device, and with this rank."""

    def __init__(self, at: Progress) -> None:
        self.reported, self.since, self.samples = at.epoch_loss, at.since_log, at.samples
        self._reported_at = time.monotonic()
        self._posted: _Posted | None = None

    def add(self, loss: torch.Tensor, samples: int) -> None:
        self.since.append(loss)
        self.samples += samples

    def post(self, place: Place) -> None:
        """Add up what all ranks have lost since the last report, while the next step runs: no rank should
        wait for another only to report."""
        now = time.monotonic()
        summed = torch.stack(self.since).sum()
        work = distributed.all_reduce(summed, async_op=True)
        rate = self.samples / (now - self._reported_at)
        self._posted = _Posted(place, summed, work, len(self.since), self.samples, rate)
        self._reported_at = now

    def collect(self) -> tuple[Place, float, float] | None:
        """Where it was posted, mean loss of the samples since the report before, and samples a second; None
        if nothing was posted."""
        if self._posted is None:
            return None
        place, summed, work, steps, samples, rate = self._posted
        work.wait()
        loss = summed.item() / samples
        self.reported += loss * samples
        self.since, self.samples, self._posted = self.since[steps:], self.samples - samples, None
        return place, loss, rate
