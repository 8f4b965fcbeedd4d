"""When to stop before the end: the job's time is nearly over, or a signal asks for it. All ranks stop after
the same step. JOBGEN_DEADLINE, in seconds since the epoch, is when saving must begin at the latest."""

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

import torch
from torch import distributed

from . import signals
from .errors import BadInput

NOTHING, DEADLINE, SIGNAL = range(3)  # votes; the greatest of all ranks counts


class Reason(NamedTuple):
    """Why to stop: `kind` is deadline or signal."""

    kind: str
    text: str


REASONS = {
    DEADLINE: Reason("deadline", "the job's time is nearly over"),
    SIGNAL: Reason("signal", "a signal asked for it"),
}


class Stopping:
    """The votes of all ranks at each step. The process group must be there."""

    def __init__(self, env: Mapping[str, str], patience: timedelta) -> None:
        self._deadline = _deadline(env)
        self._vote = torch.zeros(1, dtype=torch.int32)
        self._pending: distributed.Work | None = None
        # On the host, whatever the device: asking must not wait for what the device has still to do.
        alone = distributed.get_world_size() == 1
        self._group = None if alone else distributed.new_group(backend="gloo", timeout=patience)

    def after_step(self, needed: float, now: bool) -> Reason | None:
        """Why all ranks stop here, the same on each; called on all ranks after each step.

        needed: seconds until a save would be done if not now, beyond the deadline's own margin. What the
        ranks say meets while the next step runs, so a step later than it could, unless it is wanted now.
        """
        agreed = self._collect()
        if agreed is None:
            self._post(needed)
            agreed = self._collect() if now else None
        return agreed

    def _post(self, needed: float) -> None:
        self._vote[0] = NOTHING
        if signals.asked():
            self._vote[0] = SIGNAL
        elif time.time() + needed >= self._deadline:
            self._vote[0] = DEADLINE
        if self._group is not None:
            self._pending = distributed.all_reduce(
                self._vote, distributed.ReduceOp.MAX, group=self._group, async_op=True
            )

    def _collect(self) -> Reason | None:
        if self._pending is not None:
            self._pending.wait()
            self._pending = None
        return REASONS.get(int(self._vote[0]))


def _deadline(env: Mapping[str, str]) -> float:
    text = env.get("JOBGEN_DEADLINE", "")
    try:
        return float(text) if text else float("inf")
    except ValueError:
        raise BadInput(f"JOBGEN_DEADLINE={text!r} must be seconds since the epoch") from None
