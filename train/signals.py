"""Signals that request the training to save and exit.

Does not import torch, because a signal may arrive during that import.
"""

import contextlib
import os
import signal
import time
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
# A launcher may send one signal to a group of processes and also to each process of the group.
ECHO = 1.0  # seconds

_first_time: float | None = None


def listen() -> None:
    """Record the first of these signals. A second one ends the process at once."""
    for number in SIGNALS:
        with contextlib.suppress(ValueError):  # not the main thread: left to the embedding program
            signal.signal(number, _note)


def any_signal() -> bool:
    """Return whether a signal has arrived."""
    return _first_time is not None


def _note(number: int, frame: FrameType | None) -> None:
    global _first_time
    moment = time.monotonic()
    if _first_time is None:
        _first_time = moment
    elif moment - _first_time > ECHO:
        os._exit(128 + number)
