"""Files that all ranks of a node share: one a node, FOLDER/S/HOST.SUFFIX, where S counts groups of PER_FOLDER
ranks, so that no folder grows long. The script's own files of an attempt lie in the same way.

Each append is one write() to a file opened with O_APPEND, and all who append run on one node: their blocks
never mix, on a network file system neither.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PER_FOLDER = 400


def place(folder: Path, rank: int, local_rank: int, name: str) -> Path:
    """Where the node of that rank has its file."""
    return folder / str(max(rank - local_rank, 0) // PER_FOLDER) / name


def append(file: Path, text: str) -> None:
    """Add the text at the end. Makes the file and its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def listed(folder: Path) -> Iterator[Path]:
    """The files that are there, those of the first ranks first.

    Listed, not looked up: only that has a network file system look again.
    """
    for part in inside(folder):
        yield from inside(part)


def inside(folder: Path) -> list[Path]:
    """What is in one folder, in the order of numbers; nothing if it is not there."""
    with contextlib.suppress(OSError):
        return [folder / name for name in sorted(os.listdir(folder), key=lambda name: (len(name), name))]
    return []


def objects(file: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects, one a line; a line that is not whole yet is left out."""
    lines: list[bytes] = []
    with contextlib.suppress(OSError):
        lines = file.read_bytes().splitlines()
    for line in lines:
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                yield value
