"""Stopping before the end, because the job's time is nearly over or a signal requests it.

All ranks stop after the same step. JOBGEN_DEADLINE is the latest time to begin a save, in seconds since the
epoch.
"""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

import torch
from torch import distributed

from . import signals
from .errors import BadInput

NOTHING, DEADLINE, SIGNAL = range(3)  # votes; the maximum over all ranks counts


class Reason(NamedTuple):
    """The reason for a stop: `kind` is deadline or signal, `text` is for messages."""

    kind: str
    text: str


REASONS = {
    DEADLINE: Reason("deadline", "the job's time is nearly over"),
    SIGNAL: Reason("signal", "a signal requested it"),
}


class StopVote:
    """The votes of all ranks at each step. The process group must be initialised."""

    def __init__(self, env: Mapping[str, str], patience: timedelta) -> None:
        self._deadline = _deadline(env)
        self._vote = torch.zeros(1, dtype=torch.int32)
        self._work: distributed.Work | None = None
        # On the host, for every device: a vote must not wait for pending work of the device.
        alone = distributed.get_world_size() == 1
        self._group = None if alone else distributed.new_group(backend="gloo", timeout=patience)

    def after_step(self, seconds: float, now: bool) -> Reason | None:
        """Return the reason for all ranks to stop here, or None; it is the same on all ranks.

        Called on all ranks after each step. seconds: time until a save after the next step would be done,
        in addition to the deadline's own margin. The votes are collected during the next step, so the result
        is one step late, unless `now` is set.
        """
        reason = self._collect()
        if reason is None:
            self._post(seconds)
            reason = self._collect() if now else None
        return reason

    def _post(self, seconds: float) -> None:
        self._vote[0] = NOTHING
        if signals.any_signal():
            self._vote[0] = SIGNAL
        elif time.time() + seconds >= self._deadline:
            self._vote[0] = DEADLINE
        if self._group is not None:
            self._work = distributed.all_reduce(
                self._vote, distributed.ReduceOp.MAX, group=self._group, async_op=True
            )

    def _collect(self) -> Reason | None:
        if self._work is not None:
            self._work.wait()
            self._work = None
        return REASONS.get(int(self._vote[0]))


def _deadline(env: Mapping[str, str]) -> float:
    text = env.get("JOBGEN_DEADLINE", "")
    try:
        return float(text) if text else float("inf")
    except ValueError:
        raise BadInput(f"JOBGEN_DEADLINE={text!r} must be seconds since the epoch") from None
