"""Standard input, output and error of the command line: in UTF-8, and nothing is lost without a message."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable

from jobgen.errors import LOST, READER_GONE, visible


class _OutputError(Exception):
    """Standard output cannot be written. Not an OSError, which a command might take for that of a file."""


class _Output(io.FileIO):
    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            raise _OutputError(error.errno) from None


class _Safe(io.TextIOWrapper):
    """Text for a terminal: what a scheduler or a file says cannot move its cursor or change its title."""

    def write(self, text: str) -> int:
        return super().write(visible(text, kept="\n\t\r"))


class _Messages(io.FileIO):
    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError:
            return len(memoryview(data))  # type: ignore[arg-type]  # the exit status remains


def guarded(work: Callable[[], int]) -> int:
    """Return the status of a command, or another one if its output could not be written."""
    _open_missing()
    lines = bool(sys.stdout and sys.stdout.line_buffering)
    out = io.BufferedWriter(_Output(1, "w", closefd=False))
    messages = io.BufferedWriter(_Messages(2, "w", closefd=False))
    sys.stdout = io.TextIOWrapper(out, "utf-8", "surrogateescape", line_buffering=lines)
    sys.stderr = _Safe(messages, "utf-8", "backslashreplace", line_buffering=True)
    try:
        status = work()
        sys.stdout.flush()
        return status
    except _OutputError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still in buffers
        [number] = error.args
        if number == errno.EPIPE:
            return READER_GONE
        reason = "it is closed" if number == errno.EBADF else os.strerror(number)
        print(f"jobgen: standard output cannot be written: {reason}", file=sys.stderr)
        return LOST


def _open_missing() -> None:
    """Open what the shell has closed, so that no file gets its number. Reading or writing it is an error."""
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)  # the lowest number that is free
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
