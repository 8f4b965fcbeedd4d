"""The SHA-256 of local files, with a cache: a file that has not changed is read once."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO, NamedTuple, Protocol

from jobgen.errors import JobgenError, shown
from jobgen.runs.code import kinds

_CHUNK = 1 << 20  # bytes
# A file that was changed this short a time before it was read may change again without another time stamp.
_UNSURE = 2_000_000_000  # ns
_FORMAT = 1


class Progress(Protocol):
    """A count of the items of some long work that are done, and of all."""

    done: int
    total: int


class Count:
    """A progress that nobody sees."""

    done = total = 0


class Digest(NamedTuple):
    """The SHA-256 of a file, and whether it is a private key."""

    sha256: str
    key: bool


def digests(root: str, files: Sequence[tuple[str, str, os.stat_result]], progress: Progress) -> list[Digest]:
    """Return the digests of files of ``root``. Each has its path in the code, that of its content, and its
    status.

    Raises:
        JobgenError: a file cannot be read, or has been replaced by something else.
    """
    known, new, now = _cached(root), {}, time.time_ns()
    found = []
    progress.total = len(files)
    for path, source, status in files:
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        entry = known.get(path)
        if entry is not None and entry[:4] == stamp:
            digest = Digest(entry[4], entry[5])
        else:
            digest = _read(source, path)
        if max(status.st_mtime_ns, status.st_ctime_ns) < now - _UNSURE:
            new[path] = [*stamp, *digest]
        found.append(digest)
        progress.done += 1
    if new != known:
        _store(root, new)
    return found


def opened(full: str, path: str) -> int:
    """Return a descriptor of a regular file, which is no link.

    Raises:
        JobgenError: it cannot be read.
    """
    try:
        handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise JobgenError(f"the code cannot be sent: {shown(path)}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise JobgenError(f"the code cannot be sent: {shown(path)} is no regular file any more")
    return handle


def sha256_of(file: BinaryIO) -> str:
    """Return the SHA-256 of what is left of a file."""
    found = hashlib.sha256()
    while data := file.read(_CHUNK):
        found.update(data)
    return found.hexdigest()


def _read(full: str, path: str) -> Digest:
    with open(opened(full, path), "rb") as file:
        is_key = kinds.is_key(file.read(kinds.HEAD))
        file.seek(0)
        return Digest(sha256_of(file), is_key)


def _file(root: str) -> str:
    """Return the path of the cache for a folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
    return os.path.join(cache, "jobgen", "digests", f"{name}.json")


def _cached(root: str) -> dict[str, list]:  # type: ignore[type-arg]  # entries of JSON
    try:
        with open(_file(root), encoding="ascii") as file:
            data = json.load(file)
        if data["format"] != _FORMAT or data["root"] != root:
            return {}
        files = data["files"]
        return files if all(len(entry) == 6 for entry in files.values()) else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _store(root: str, files: dict[str, list]) -> None:  # type: ignore[type-arg]  # entries of JSON
    """Replace the cache; without a place for it, files are read again the next time."""
    target = _file(root)
    with suppress(OSError):
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=os.path.dirname(target))
        try:
            with open(handle, "w", encoding="ascii") as file:
                json.dump({"format": _FORMAT, "root": root, "files": files}, file)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
