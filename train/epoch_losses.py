"""The losses of an epoch: kept on the device, and added up over the ranks only when they are reported."""

import time
from typing import NamedTuple

import torch
from torch import distributed

from .checkpoints import Progress
from .loss_functions import LossSum


class Place(NamedTuple):
    """The step after which a report was posted."""

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
    steps: int  # since the previous report
    samples: int
    rate: float


class Losses:
    """The losses of an epoch. Losses that are not reported yet stay on the device of this rank."""

    def __init__(self, at: Progress) -> None:
        self.reported, self.since, self.samples = at.epoch_loss, at.since_log, at.samples
        self._reported_at = time.monotonic()
        self._posted: _Posted | None = None

    def add(self, loss: LossSum, samples: int) -> None:
        self.since.append(loss)
        self.samples += samples

    def restart_clock(self) -> None:
        """Leave the time before this call, such as that of an evaluation, out of the next report's rate."""
        self._reported_at = time.monotonic()

    def post(self, place: Place) -> None:
        """Start the sum of the losses of all ranks since the last report.

        It runs during the next step, so that no rank waits for another one only to report.
        """
        now = time.monotonic()
        summed = torch.stack(self.since).sum()
        work = distributed.all_reduce(summed, async_op=True)
        rate = self.samples / (now - self._reported_at)
        self._posted = _Posted(place, summed, work, len(self.since), self.samples, rate)
        self._reported_at = now

    def collect(self) -> tuple[Place, float, float] | None:
        """Return the posted report: its place, the mean loss per sample and the samples per second.

        Both are for the samples since the previous report. Return None if nothing was posted.
        """
        if self._posted is None:
            return None
        place, summed, work, steps, samples, rate = self._posted
        work.wait()
        loss = summed.item() / samples
        self.reported += loss * samples
        self.since, self.samples, self._posted = self.since[steps:], self.samples - samples, None
        return place, loss, rate
