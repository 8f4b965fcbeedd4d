"""Waiting for the end of runs. The scheduler is asked once for all runs, and not more often than LEAST."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen.runs.job_query import HostScheduler
from jobgen.runs.remote import place as places
from jobgen.runs.states import State, states

LEAST, INTERVAL = 2.0, 5.0  # s between two queries: at least, and by default
_LEAST_OF_HOSTS = 10.0  # s between two looks at the runs of a host


class Look(NamedTuple):
    """The states of all runs at one time, and the errors of schedulers that did not answer."""

    states: list[State]
    silent: dict[HostScheduler, str]
    over: bool


def has_ended(state: State) -> bool:
    """Return whether a run has ended."""
    return state.reachable and not state.live and state.state != "unknown"


def looks(
    directories: Sequence[Path], interval: float = INTERVAL, timeout: float | None = None
) -> Iterator[Look]:
    """Yield the states of runs, now and after each interval, until all have ended or the time is over.

    An ended run is not looked at again.

    Raises:
        JobgenError: the directory of a run was removed.
    """
    at = places.of_all(directories)
    deadline = None if timeout is None else time.monotonic() + timeout
    ended: dict[Path, State] = {}
    while True:
        for path in (path for path in directories if path not in ended):
            places.check_kept(path, at.get(path))
        now, answer = states([path for path in directories if path not in ended])
        found = ended | {Path(state.run): state for state in now}
        ended |= {Path(state.run): state for state in now if has_ended(state)}
        yield Look([found[path] for path in directories], answer.silent, len(ended) == len(found))
        left = None if deadline is None else deadline - time.monotonic()
        if len(ended) == len(found) or (left is not None and left <= 0):
            return
        pause = max(interval, _LEAST_OF_HOSTS if at else LEAST)
        time.sleep(pause if left is None else min(pause, left))


def wait(
    directories: Sequence[Path],
    interval: float = INTERVAL,
    timeout: float | None = None,
    on_change: Callable[[Look], object] | None = None,
) -> list[State]:
    """Wait for the end of runs and return their states; ``on_change`` gets each look that differs from the
    one before.

    Raises:
        TimeoutError: after ``timeout`` seconds a run has not ended.
    """
    last = None
    for look in looks(directories, interval, timeout):
        if on_change and look != last:
            on_change(look)
        last = look
    assert last is not None  # there is always a first look
    if not last.over:
        going = ", ".join(state.name for state in last.states if not has_ended(state))
        raise TimeoutError(f"after {timeout:g} s not ended: {going}")
    return last.states
