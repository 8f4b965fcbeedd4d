"""Checkouts of git for tests."""

import subprocess
from pathlib import Path


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    own = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)
