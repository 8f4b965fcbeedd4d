"""The archive that travels: links, which stand for the files, and the objects that the host lacks.

It is written into a pipe while ssh reads it, in the GNU format, which each tar reads.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shlex
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any, BinaryIO

from jobgen.errors import JobgenError, shown
from jobgen.runs.code.digests import Progress, opened
from jobgen.runs.code.selection import File, Selection

_LEVEL = 6  # of gzip
_BATCH = 100  # files that one chmod makes executable


class Archive:
    """An archive; ``count`` are the bytes that were read from it."""

    def __init__(
        self, code: Selection, objects: Sequence[File], compressed: bool, progress: Progress
    ) -> None:
        self._code, self._objects, self._compressed, self._progress = code, objects, compressed, progress
        self._error: JobgenError | None = None
        self._bytes = 0  # of objects
        self.count = 0

    @contextmanager
    def reader(self) -> Iterator[BinaryIO]:
        """Yield the end of a pipe into which a thread writes the archive.

        Raises:
            JobgenError: a file has changed meanwhile; the archive then ends before its end.
        """
        source, target = os.pipe()
        thread = Thread(target=self._write, args=(target,))
        thread.start()
        try:
            with open(source, "rb", buffering=0) as file:
                yield file
        finally:
            thread.join()
            if self._error is not None:
                raise self._error

    def _write(self, target: int) -> None:
        try:
            with open(target, "wb", buffering=0) as pipe:
                counter = _Counter(pipe)
                try:
                    if not self._compressed:
                        self._add_all(counter)
                    else:
                        with gzip.GzipFile("", "wb", _LEVEL, counter, mtime=0) as file:
                            self._add_all(file)
                finally:
                    self.count = counter.count
        except BrokenPipeError:
            pass  # the host has answered already, or the connection has ended
        except JobgenError as error:
            self._error = error

    def _add_all(self, file: Any) -> None:
        with tarfile.open(
            mode="w|", fileobj=file, format=tarfile.GNU_FORMAT, errors="surrogateescape"
        ) as tar:
            start = () if self._code.start == "." else (self._code.start,)
            for path in (*self._code.folders, *start):
                tar.addfile(_member(f"tree/{path}", tarfile.DIRTYPE))
            for one in self._code.files:
                above = "../" * (one.path.count("/") + 3)
                tar.addfile(_member(f"tree/{one.path}", tarfile.SYMTYPE, f"{above}{_object(one)}"))
            for path, target in self._code.links:
                tar.addfile(_member(f"links/{path}", tarfile.SYMTYPE, target))
            _add_text(tar, "executable", _chmod([one.path for one in self._code.files if one.executable]))
            for one in self._objects:
                self._add_object(tar, one)

    def _add_object(self, tar: tarfile.TarFile, one: File) -> None:
        member = _member(_object(one), tarfile.REGTYPE)
        member.size = one.size
        with _Checked(opened(one.source, one.path), one) as file:
            tar.addfile(member, file)
            file.check()
        self._bytes += one.size
        self._progress.done = self._bytes >> 10


class _Checked(io.FileIO):
    """The content of a file, whose digest must be the one that is known."""

    def __init__(self, handle: int, file: File) -> None:
        super().__init__(handle, "rb")
        self._file, self._sha256 = file, hashlib.sha256()

    def read(self, size: int | None = -1, /) -> bytes:
        data = b""
        while len(data) < (size or 0) and (more := super().read((size or 0) - len(data))):
            data += more
        if len(data) < (size or 0):
            raise self._changed()
        self._sha256.update(data)
        return data

    def check(self) -> None:
        """Check the digest of what was read."""
        if self._sha256.hexdigest() != self._file.sha256:
            raise self._changed()

    def _changed(self) -> JobgenError:
        return JobgenError(f"{shown(self._file.path)} has changed while the code was sent; submit again")


class _Counter:
    """A writer that counts the bytes."""

    def __init__(self, file: Any) -> None:
        self._file, self.count = file, 0

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            written = self._file.write(rest)
            self.count += written
            rest = rest[written:]
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is kept back."""


def _object(file: File) -> str:
    return f"objects/{file.sha256[:2]}/{file.sha256[2:]}"


def _member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = kind, target, 0o600 if kind == tarfile.REGTYPE else 0o700
    return member


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    member = _member(name, tarfile.REGTYPE)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def _chmod(paths: Sequence[str]) -> str:
    """Return lines of sh that make files executable."""
    batches = (paths[at : at + _BATCH] for at in range(0, len(paths), _BATCH))
    return "".join(f"chmod u+x {shlex.join(f'./{path}' for path in batch)}\n" for batch in batches)
