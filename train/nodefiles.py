"""Files that all ranks of a node share: one file per node, FOLDER/S/HOST.SUFFIX.

S is the number of a group of PER_FOLDER ranks, so that no folder gets too many entries. The files of an
attempt that the job script itself writes have the same layout.

Each append is one write() to a file opened with O_APPEND, and all writers of a file run on the same node.
Blocks of different writers therefore never mix, even on a network file system.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PER_FOLDER = 400


def place(folder: Path, rank: int, local_rank: int, name: str) -> Path:
    """Return the path of the file of the node on which this rank runs."""
    return folder / str(max(rank - local_rank, 0) // PER_FOLDER) / name


def append(file: Path, text: str) -> None:
    """Append `text` to `file`. Create the file and its folder if they do not exist."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def files(folder: Path) -> Iterator[Path]:
    """Yield the files in the order of ranks. A listing makes a network file system look for new files."""
    for part in entries(folder):
        yield from entries(part)


def entries(folder: Path) -> list[Path]:
    """Return the paths in one folder, in numerical order; [] if it does not exist."""
    with contextlib.suppress(OSError):
        return [folder / name for name in sorted(os.listdir(folder), key=lambda name: (len(name), name))]
    return []


def objects(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, one per line. Incomplete lines are skipped."""
    lines: list[bytes] = []
    with contextlib.suppress(OSError):
        lines = file.read_bytes().splitlines()
    for line in lines:
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                yield value
