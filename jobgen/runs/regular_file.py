"""Files of run directories, which others may have written: a FIFO or a device would block the reader."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

LARGEST = 64_000_000  # bytes; 8,000 nodes write less


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(handle, "rb")


def text(path: Path) -> str:
    """Return the first megabytes of a file as text; empty if it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(LARGEST).decode(errors="replace")
    except OSError:
        return ""
