"""Wait until something holds."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path


def wait_until(
    condition: Callable[[], object], seconds: float, hint: Callable[[], object] = lambda: True
) -> bool:
    """Return whether it holds within so many seconds. The pauses between two looks grow to a second: most look at
    a job by commands of its scheduler, which took a tenth of the time of all tests. With a hint, which costs less,
    there is a look once it holds, and every four seconds."""
    begin = looked = time.monotonic()
    while (past := time.monotonic() - begin) < seconds:
        if hint() or time.monotonic() - looked > 4:
            looked = time.monotonic()
            if condition():
                return True
        time.sleep(min(max(past / 4, 0.2), 1))
    return bool(condition())


def is_noted(folder: Path, pattern: str) -> bool:
    """Return whether the pattern is in the last lines of the latest file of a folder, in which a scheduler notes
    the jobs that end."""
    latest = max(folder.glob("*"), default=None)
    if latest is None:
        return False
    with latest.open("rb") as file:
        file.seek(max(0, latest.stat().st_size - (1 << 16)))
        return re.search(pattern.encode(), file.read()) is not None


def wait_for(condition: Callable[[], object], seconds: float = 200) -> None:
    """Wait until it holds, which must be in time."""
    assert wait_until(condition, seconds)
