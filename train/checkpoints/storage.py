"""Files that are whole or not there: written, hashed and forced to the disk before anything names them."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import torch

from ..errors import BadInput

CHUNK = 1 << 22  # bytes


class Written:
    """Writes tensors below one directory, and notes what it wrote: {file: {"bytes", "sha256"}}."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.entries: dict[str, dict[str, Any]] = {}

    def save(self, state: Any, file: Path) -> None:
        """torch.save to `file`, which is on the disk when this returns."""
        with open(file, "wb") as stream:
            hashed = _Hashed(stream)
            torch.save(state, hashed)
            stream.flush()
            os.fsync(stream.fileno())
        name = file.relative_to(self._directory).as_posix()
        self.entries[name] = {"bytes": hashed.bytes, "sha256": hashed.sha256.hexdigest()}


class _Hashed:
    """What torch.save needs of a file. It writes from front to back, so the hash is made on the way."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.bytes = 0
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self.bytes += len(data)
        return self._stream.write(data)

    def flush(self) -> None:
        self._stream.flush()


def verify(directory: Path, entries: dict[str, dict[str, Any]]) -> None:
    """Raise BadInput, naming the file, if one is missing or is not what was written."""
    for name, entry in entries.items():
        file = directory / name
        try:
            size, found = file.stat().st_size, hashlib.sha256()
            if size != entry["bytes"]:
                raise BadInput(f"{file} is damaged: it has {size} bytes, but {entry['bytes']} were written")
            with open(file, "rb") as stream:
                while chunk := stream.read(CHUNK):
                    found.update(chunk)
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error.strerror}") from None
        if found.hexdigest() != entry["sha256"]:
            raise BadInput(f"{file} is damaged: its SHA-256 is not that of what was written")


def load(file: Path) -> Any:
    """What Written.save wrote, on the CPU. Only tensors and plain values: nothing in it can run code."""
    return torch.load(file, map_location="cpu", weights_only=True)


def write_json(file: Path, content: Any) -> None:
    """Like write_text, for what JSON can hold."""
    write_text(file, json.dumps(content, indent=2) + "\n")


def write_text(file: Path, text: str) -> None:
    """Put `text` in the place of the file at once: a reader sees the old one or the new one."""
    draft = file.with_name(f".{file.name}.writing")
    with open(draft, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(draft, file)
    sync_directory(file.parent)


def sync_directory(directory: Path) -> None:
    """Force the names in it to the disk: a file that was synced may still lack its name after a crash."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
