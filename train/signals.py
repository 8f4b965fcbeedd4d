"""Signals that request the training to save and exit.

Does not import torch, because a signal may arrive during that import.
"""

import contextlib
import os
import signal
import time
from types import FrameType

ASKING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
# A launcher may send one signal to a group of processes and also to each process of the group.
ECHO = 1.0  # seconds

_asked_at: float | None = None


def listen() -> None:
    """Record the first of these signals. A second one ends the process at once."""
    for number in ASKING:
        with contextlib.suppress(ValueError):  # not the main thread: left to the embedding program
            signal.signal(number, _note)


def asked() -> bool:
    """Return whether a signal has arrived."""
    return _asked_at is not None


def _note(number: int, frame: FrameType | None) -> None:
    global _asked_at
    moment = time.monotonic()
    if _asked_at is None:
        _asked_at = moment
    elif moment - _asked_at > ECHO:
        os._exit(128 + number)
