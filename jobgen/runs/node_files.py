"""Reader of the files that nodes write in an attempt: the beginning and end of ranks, and their output.

``statuses`` has a line for each rank that ended; the script writes it at its end. ``nodes/S/HOST.ranks`` has
the lines of one host, written while its ranks run. Next to it is ``HOST.log``, the output of all its ranks,
or a ``rank-R.log`` for each. Folder S holds the hosts whose first rank is one of the 400 from S * 400 on.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from jobgen.runs import regular_file

_RANKS = 400  # per folder
_WINDOW, _FARTHEST = 1 << 14, 1 << 26  # bytes at the end of a log that are read at first, and at most
_CHUNK = 1 << 16
_LINE = r"([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,12}(?:\.[0-9]{1,9})?) (\S+)\n"  # only a whole line matches
_STATUS = re.compile(f"^{_LINE}", re.MULTILINE)
_NOTE = re.compile(f"^(began|ended) {_LINE}", re.MULTILINE)


class Rank(NamedTuple):
    """A rank in one attempt; its status is None if none was recorded. Times are seconds since 1970."""

    number: int
    host: str
    began: float | None
    ended: float | None
    status: int | None


class Log(NamedTuple):
    """The file with the output of a rank: the lines that begin with ``prefix``, or all lines."""

    path: Path
    prefix: bytes = b""


def ranks(attempt: Path, complete: bool = False) -> tuple[Rank, ...]:
    """Return the ranks by number; if ``statuses`` is ``complete``, no other file is read."""
    text = {rank.number: rank for rank in _statuses(attempt)}
    if not (text and complete):
        text = _noted(attempt) | text
    return tuple(text[number] for number in sorted(text))


def _statuses(attempt: Path) -> Iterator[Rank]:
    for number, status, ended, host in _STATUS.findall(regular_file.text(attempt / "statuses")):
        yield Rank(int(number), host, None, float(ended), int(status))


def _noted(attempt: Path) -> dict[int, Rank]:
    """Return the ranks as the hosts recorded them; for a rank that began more than once, the last time."""
    found: dict[int, Rank] = {}
    for path in (path for folder in _folders(attempt) for path in _files(folder, ".ranks")):
        for what, number, value, time, host in _NOTE.findall(regular_file.text(path)):
            before, at = found.get(int(number)), float(time)
            if before is not None and at < max(before.began or 0, before.ended or 0):
                continue
            if what == "began":
                found[int(number)] = Rank(int(number), host, at, None, None)
            else:
                found[int(number)] = Rank(int(number), host, before and before.began, at, int(value))
    return found


def times(attempt: Path) -> Iterator[float]:
    """Yield the times at which the files of the nodes were last written."""
    for path in (path for folder in _folders(attempt) for path in _files(folder, "")):
        with suppress(OSError):
            yield path.stat().st_mtime


def log_of(attempt: Path, rank: int, host: str = "") -> Log | None:
    """Return the log of a rank, which began on ``host`` (if known); None if none is kept, or not yet."""
    if (noted := _noted_in(attempt, rank, host)) is None:
        return None
    own, merged = noted.parent / f"rank-{rank}.log", noted.with_suffix(".log")
    if own.is_file():
        return Log(own)
    return Log(merged, b"%d: " % rank) if merged.is_file() else None


def _noted_in(attempt: Path, rank: int, host: str) -> Path | None:
    """Return the file that records the beginning of a rank; it is next to the rank's log."""
    known = re.fullmatch(r"[\w.-]+", host)
    folders = sorted(_folders(attempt), key=lambda folder: abs(int(folder.name) - rank // _RANKS))
    for folder in folders:
        for path in [folder / f"{host}.ranks"] if known else _files(folder, ".ranks"):
            if f"\nbegan {rank} " in f"\n{regular_file.text(path)}":
                return path
    return None


def only(data: bytes, prefix: bytes) -> bytes:
    """Return the lines that begin with a prefix, without the prefix."""
    if not prefix:
        return data
    return b"".join(line[len(prefix) :] for line in io.BytesIO(data) if line.startswith(prefix))


def tail(log: Log, lines: int = 20) -> str:
    """Return the last lines of a log of any size, even if other ranks of its node wrote many lines later."""
    window, size, found = _WINDOW, 0, b""
    with suppress(OSError), regular_file.open_file(log.path) as file:
        size = file.seek(0, os.SEEK_END)
        while True:
            at = file.seek(max(0, size - window))
            data = file.read(window)
            found = only(data.partition(b"\n")[2] if at and log.prefix else data, log.prefix)
            if at == 0 or not log.prefix or found.count(b"\n") >= lines or window >= _FARTHEST:
                break
            window *= 16
    text = found.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(text.rstrip().split("\n")[-lines:])


def last_lines(log: Log, lines: int) -> int:
    """Return where the last lines of a log begin in its file."""
    key = b"\n" + log.prefix
    with regular_file.open_file(log.path) as file:
        end = at = file.seek(0, os.SEEK_END)
        beyond = b""  # what a key that begins in one chunk needs of the next one
        while lines and at:
            start = max(0, at - _CHUNK)
            file.seek(start)
            data = file.read(at - start) + beyond
            place = len(data)
            while lines and (place := data.rfind(key, 0, place)) >= 0:
                begin = start + place + 1
                lines -= begin < end
            if not lines:
                return begin
            at, beyond = start, data[: len(key) - 1]
    return at


def _folders(attempt: Path) -> list[Path]:
    try:
        names = [name for name in os.listdir(attempt / "nodes") if name.isascii() and name.isdecimal()]
    except OSError:
        return []
    return [attempt / "nodes" / name for name in sorted(names, key=int)]


def _files(folder: Path, ending: str) -> list[Path]:
    try:
        return [folder / name for name in sorted(os.listdir(folder)) if name.endswith(ending)]
    except OSError:
        return []
