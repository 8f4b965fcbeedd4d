"""Atomic writing of files, and their verification by size and SHA-256. Does not import torch."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ..errors import BadInput

CHUNK = 1 << 22  # bytes
Entries = dict[str, dict[str, Any]]  # {relative path: {"bytes": size, "sha256": hexadecimal digest}}


def verify(directory: Path, entries: Entries) -> None:
    """Raise BadInput, naming the file, if a file is missing or differs from `entries` in size or SHA-256."""
    verify_sizes(directory, entries)
    for name, entry in entries.items():
        file, found = directory / name, hashlib.sha256()
        try:
            with open(file, "rb") as stream:
                while chunk := stream.read(CHUNK):
                    found.update(chunk)
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error.strerror}") from None
        if found.hexdigest() != entry["sha256"]:
            raise BadInput(f"{file} is damaged: its SHA-256 is not that of what was written")


def verify_sizes(directory: Path, entries: Entries) -> None:
    """Raise BadInput, naming the file, if one is missing or has another size. Contents are not read."""
    for name, entry in entries.items():
        file = directory / name
        try:
            size = file.stat().st_size
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error.strerror}") from None
        if size != entry["bytes"]:
            raise BadInput(f"{file} is damaged: it has {size} bytes, but {entry['bytes']} were written")


def share(entries: Entries, rank: int, ranks: int) -> Entries:
    """Return the entries that `rank` verifies: about the same number of bytes on each rank."""
    by_size = sorted(entries.items(), key=lambda item: (-item[1]["bytes"], item[0]))
    return dict(by_size[rank::ranks])


def write_json(file: Path, content: Any) -> None:
    """Write `content` as JSON with write_text."""
    write_text(file, json.dumps(content, indent=2) + "\n")


def write_text(file: Path, text: str) -> None:
    """Replace the content of `file` atomically: a reader sees either the old or the new text."""
    draft = file.with_name(f".{file.name}.writing")
    with open(draft, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(draft, file)
    sync_directory(file.parent)


def sync_directory(directory: Path) -> None:
    """Force the names in `directory` to the disk: a synced file may still lack its name after a crash."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
