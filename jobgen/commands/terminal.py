"""Colours (https://no-color.org) and a progress line on terminals."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeVar

if TYPE_CHECKING:
    from threading import Event

_T = TypeVar("_T")
_FROM, _EVERY = 1.0, 0.2  # s of work before the line appears, and between two changes of it
Paint = Callable[[str, str, int], str]  # gives the state that a line has at a place its colour
_ERASE = "\r\x1b[K"
_COLOURS = {
    "running": 36,
    "ending": 36,
    "finished": 32,
    **dict.fromkeys(("failed", "timeout", "out of memory", "node failed", "lost"), 31),
    **dict.fromkeys(("resumable", "cancelled", "preempted", "held", "suspended"), 33),
}


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream, which may be closed (None), is a terminal that can move its cursor."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """Return the columns of the terminal, at most 160; 100 if standard output is none."""
    return min(160, shutil.get_terminal_size((100, 24)).columns)


def painter(stream: TextIO | None) -> Paint:
    """Return the function that colours states for a stream."""
    return coloured if is_terminal(stream) and not os.environ.get("NO_COLOR") else plain


def plain(line: str, state: str, at: int) -> str:
    return line


def coloured(line: str, state: str, at: int) -> str:
    """Return a line in which the state at a place has its colour."""
    end = at + len(state)
    colour = _COLOURS.get(state)
    return line if colour is None else f"{line[:at]}\x1b[{colour}m{line[at:end]}\x1b[0m{line[end:]}"


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table as lines."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


class Counter:
    """A count of the items of some long work that are done, and of all."""

    done = total = 0

    def of(self, items: Collection[_T]) -> Iterator[_T]:
        """Yield the items and count them."""
        self.total = len(items)
        for item in items:
            yield item
            self.done += 1


@contextmanager
def progress(what: str, shown: bool = True) -> Iterator[Counter]:
    """Show a line about work that takes more than a second, and erase it at the end; show nothing if standard
    error is no terminal."""
    counter = Counter()
    if not (shown and is_terminal(sys.stderr)):
        yield counter
        return
    from threading import Event, Thread

    over = Event()
    thread = Thread(target=_draw, args=(what, counter, over))
    thread.start()
    try:
        yield counter
    finally:
        over.set()
        thread.join()


def _draw(what: str, counter: Counter, over: Event) -> None:
    began, pause = time.monotonic(), _FROM
    while not over.wait(pause):
        count = f" {counter.done} of {counter.total}," if counter.total else ""
        line = f"jobgen: {what}:{count} {time.monotonic() - began:.0f} s"
        _write(f"{_ERASE}{line[: shutil.get_terminal_size().columns - 1]}")
        pause = _EVERY
    if pause == _EVERY:
        _write(_ERASE)


def _write(text: str) -> None:
    sys.stderr.buffer.write(text.encode())  # as text, control sequences are escaped
    sys.stderr.flush()
