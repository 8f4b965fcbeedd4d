"""Directories and files of a run that only the user can read, or the user's group, too."""

from __future__ import annotations

import os
from pathlib import Path


def make(directory: Path, group: bool) -> None:
    """Make a directory with the mode 0700, or 0750; the bit setgid of its parent stays."""
    directory.mkdir(mode=0o700)
    if group:
        directory.chmod(directory.stat().st_mode & 0o7777 | 0o050)


def write(path: Path, data: bytes, group: bool = False, executable: bool = False) -> None:
    """Write a file with the mode 0600, or 0640; with 0100 and 0010 more if it is executable."""
    mode = (0o640 if group else 0o600) | (0o110 if executable and group else 0o100 if executable else 0)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
