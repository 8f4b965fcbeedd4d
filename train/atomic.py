"""Atomic writing of files."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(file: Path, content: Any) -> None:
    """Write `content` as JSON with write_text."""
    write_text(file, json.dumps(content, indent=2) + "\n")


def write_text(file: Path, text: str, forced: bool = True) -> None:
    """Replace the content of `file` atomically: a reader sees either the old or the new text.

    forced: the text is on the disk when this returns
    """
    draft = file.with_name(f".{file.name}.writing")
    with open(draft, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        if forced:
            os.fsync(stream.fileno())
    os.replace(draft, file)
    if forced:
        sync_directory(file.parent)


def apply_umask(file: Path) -> None:
    """Give a file the permissions of the user's umask: safetensors writes files that nobody else can read."""
    mask = os.umask(0o077)
    os.umask(mask)
    file.chmod(0o666 & ~mask)


def sync_directory(directory: Path) -> None:
    """Force the names in `directory` to the disk: a synced file may still lack its name after a crash."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
