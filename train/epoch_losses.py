"""The losses of an epoch: kept on the device, and added up over the ranks only when they are reported."""

import math
import time
from typing import NamedTuple

import torch
from torch import distributed

from .checkpoints import Progress
from .data.feed import SideStream
from .loss_functions import LossSum


class Place(NamedTuple):
    """The step after which a report was posted.

    gradient_norm: may be on the device until the report is collected
    """

    epoch: int
    step: int
    in_epoch: int
    lr: float
    gradient_norm: torch.Tensor | float | None
    seconds: float


class _Report(NamedTuple):
    place: Place
    total: torch.Tensor
    work: distributed.Work | None
    steps: int  # since the previous report
    samples: int
    rate: float


class EpochLosses:
    """The losses of an epoch. Losses that are not reported yet stay on the device of this rank.

    stream: in which reports are read, so that they wait for their own step only
    """

    def __init__(self, at: Progress, stream: SideStream) -> None:
        self.report_total, self.since, self.samples = at.epoch_loss, at.since_log, at.samples
        self._start, self._stream = time.monotonic(), stream
        self._report: _Report | None = None

    def add(self, loss: LossSum, samples: int) -> None:
        self.since.append(loss)
        self.samples += samples

    def restart_clock(self) -> None:
        """Leave the time before this call, such as that of an evaluation, out of the next report's rate."""
        self._start = time.monotonic()

    def post(self, place: Place) -> None:
        """Start the sum of the losses of all ranks since the last report.

        It runs during the next step, so that no rank waits for another one only to report.
        """
        now = time.monotonic()
        total = torch.stack(self.since).sum()
        work = distributed.all_reduce(total, async_op=True) if distributed.get_world_size() > 1 else None
        self._stream.follow()
        rate = self.samples / (now - self._start)
        self._report = _Report(place, total, work, len(self.since), self.samples, rate)
        self._start = now

    def collect(self) -> tuple[Place, float, float] | None:
        """Return the posted report: its place, the mean loss per sample and the samples per second.

        Both are for the samples since the previous report. Return None if nothing was posted.
        """
        if self._report is None:
            return None
        place, total, work, steps, samples, rate = self._report

        def read() -> tuple[float, float | None]:
            if work:
                work.wait()
            norm = place.gradient_norm
            if isinstance(norm, torch.Tensor):  # both in one copy
                return tuple(torch.stack([total, norm.reshape(()).to(total)]).tolist())
            return total.item(), norm

        value, norm = self._stream.run(read)
        loss, place = value / samples, place._replace(gradient_norm=_finite(norm))
        self.report_total += loss * samples
        self.since, self.samples, self._report = self.since[steps:], self.samples - samples, None
        return place, loss, rate


def _finite(value: float | None) -> float | None:
    """Return `value`, or None if it is not finite, such as an overflowed norm: JSON cannot express it."""
    return value if value is not None and math.isfinite(value) else None
