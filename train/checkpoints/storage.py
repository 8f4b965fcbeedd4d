"""Tensors in files: written, hashed and forced to the disk before anything names them."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch

from .files import Entries

_sync = getattr(os, "fdatasync", os.fsync)  # macOS has only the second
LARGE = 1 << 20  # bytes; for less, a thread costs more than it saves


class Written:
    """Writes tensors below one directory, and notes what it wrote: {file: {"bytes", "sha256"}}.

    failure: the file that could not be written, and why. It is noted and not raised, and nothing is written
    any more: DeepSpeed's ranks wait for each other while they save, also for one whose disk is full.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.entries: Entries = {}
        self.failure: dict[str, Any] | None = None

    def save(self, state: Any, file: Path) -> None:
        """torch.save to `file`, which is on the disk when this returns."""
        if self.failure:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with open(file, "wb") as stream, ThreadPoolExecutor(2) as threads, _without_crc32():
                hashed = _Hashed(stream, threads)
                torch.save(state, hashed)
                hashed.finish()
        except OSError as error:
            self.failed(error, file)
        else:
            name = file.relative_to(self._directory).as_posix()
            self.entries[name] = {"bytes": hashed.bytes, "sha256": hashed.sha256.hexdigest()}

    def failed(self, error: OSError, file: Path) -> None:
        """Note an error of the disk, and how much space it has now."""
        self.failure = self.failure or failure(error, file)


def failure(error: OSError, file: Path) -> dict[str, Any]:
    """What all ranks are told of an error of the disk."""
    place = next((folder for folder in file.parents if folder.exists()), Path("/"))
    try:
        free = shutil.disk_usage(place).free
    except OSError:
        free = None
    return {"file": str(file), "reason": error.strerror or str(error), "free": free}


class _Hashed:
    """What torch.save needs of a file. It writes from front to back, so the hash is made on the way: in a
    thread, while the same bytes are written; another one sends them on to the disk meanwhile.

    An error is kept until `finish`: it would have to find its way through torch's C++.
    """

    def __init__(self, stream: BinaryIO, threads: ThreadPoolExecutor) -> None:
        self._stream, self._threads = stream, threads
        self._syncing: Future[None] | None = None
        self._error: OSError | None = None
        self.bytes = 0
        self.sha256 = hashlib.sha256()

    def write(self, data: memoryview) -> int:
        self.bytes += len(data)
        if self._error is None:
            try:
                self._write(data)
            except OSError as error:
                self._error = error
        return len(data)

    def _write(self, data: memoryview) -> None:
        if len(data) < LARGE:
            self.sha256.update(data)
            self._stream.write(data)
            return
        hashing = self._threads.submit(self.sha256.update, data)
        try:
            self._stream.write(data)
        finally:
            hashing.result()  # the memory is torch's again when this returns
        if self._syncing is None or self._syncing.done():
            self._wait_for_the_disk()
            self._syncing = self._threads.submit(_sync, self._stream.fileno())

    def _wait_for_the_disk(self) -> None:
        if self._syncing:
            self._syncing.result()  # an error of the disk is told once only, so perhaps here

    def flush(self) -> None:
        pass  # `finish` does it, where an error can be raised

    def finish(self) -> None:
        """Wait until all of it is on the disk. Raises OSError, also for what went wrong before."""
        if self._error is None:
            self._stream.flush()
            self._wait_for_the_disk()
            os.fsync(self._stream.fileno())
            return
        raise self._error


@contextmanager
def _without_crc32() -> Iterator[None]:
    """torch's own checksum takes as long as the better one that is made here."""
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        yield
    finally:
        torch.serialization.set_crc32_options(before)


def load(file: Path) -> Any:
    """What Written.save wrote, on the CPU. Only tensors and plain values: nothing in it can run code."""
    return torch.load(file, map_location="cpu", weights_only=True)
