"""Deadline: leaving before the job's time is over, or when a signal requests it."""

import contextlib
import os
import signal
import sys
import time
from typing import NoReturn

from torch import distributed

from .. import peers, report, signals, stop_vote
from ..errors import RESUMABLE
from .process import init
from .states import Checkpoints


class Deadline:
    """The end of the job's time (JOBGEN_DEADLINE, seconds since the epoch) and signals (TERM, USR1, USR2).

    Made on all ranks. From then on, the first signal is recorded, and a second one ends the process.
    checkpoints: their last save says how long the next one will take
    """

    def __init__(self, checkpoints: Checkpoints | None = None) -> None:
        self._me = init()
        signals.listen()
        self._vote = stop_vote.StopVote(os.environ, peers.TIMEOUT)
        self._checkpoints = checkpoints
        self._last: float | None = None  # when `reached` was called last
        self._reason: stop_vote.Reason | None = None

    @property
    def reason(self) -> str | None:
        """The reason to leave now; None before that."""
        return self._reason and self._reason.text

    def reached(self, step_seconds: float | None = None, now: bool = False) -> bool:
        """Return whether it is time to save and leave: the same on all ranks. Call it after each step.

        step_seconds: duration of the next step (default: the time since the last call). The time of a save is
        added. The ranks agree during the next step, so the answer is one step late, unless `now` is set.
        """
        moment = time.monotonic()
        if self._reason is None:
            since = moment - self._last if self._last else 0.0
            seconds = since if step_seconds is None else step_seconds
            seconds += self._checkpoints.seconds if self._checkpoints else 0.0
            self._reason = self._vote.after_step(seconds, now)
        self._last = moment
        return self._reason is not None

    def leave(self) -> NoReturn:
        """Exit with status 75, on all ranks, after a save: not finished, but can be resumed.

        A generated script that ends with this status can be submitted again, or resubmits itself.
        """
        for number in signals.SIGNALS:  # a late one must not end the shutdown of Python
            with contextlib.suppress(ValueError):  # not the main thread
                signal.signal(number, signal.SIG_IGN)
        if self._me.is_main:
            report.complain(f"leaves with status {RESUMABLE}, because {self.reason or 'the program says so'}")
        distributed.barrier()  # launchers may end all ranks when the first one exits
        distributed.destroy_process_group()
        sys.exit(RESUMABLE)
