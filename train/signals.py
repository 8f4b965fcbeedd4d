"""Signals that ask the training to save and leave. No torch: they may come while it is being imported."""

import contextlib
import os
import signal
import time
from types import FrameType

ASKING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
# One kill reaches a process twice where a launcher sends it to a whole group of processes and to each.
ECHO = 1.0  # seconds

_asked_at: float | None = None


def listen() -> None:
    """Take note of the first such signal; a second one ends the process at once."""
    for number in ASKING:
        with contextlib.suppress(ValueError):  # not the main thread: an embedding program's business
            signal.signal(number, _note)


def asked() -> bool:
    """Whether one has come."""
    return _asked_at is not None


def _note(number: int, frame: FrameType | None) -> None:
    global _asked_at
    moment = time.monotonic()
    if _asked_at is None:
        _asked_at = moment
    elif moment - _asked_at > ECHO:
        os._exit(128 + number)
