"""Wait until something holds."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Return whether it holds within so many seconds. The pauses between two looks grow to a second: most look at
    a job by commands of its scheduler, which took a tenth of the time of all tests."""
    begin = time.monotonic()
    while not (holds := condition()) and (past := time.monotonic() - begin) < seconds:
        time.sleep(min(max(past / 4, 0.2), 1))
    return bool(holds)


def wait_for(condition: Callable[[], object], seconds: float = 200) -> None:
    """Wait until it holds, which must be in time."""
    assert wait_until(condition, seconds)
