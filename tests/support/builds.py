"""A wheel and a source distribution of this checkout, and the Pythons of this machine that can run them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import ROOT
from support.require import absent

_FOLDERS = ("docs", "jobgen", "templates", "train")
_FILES = (
    *("setup.cfg", "setup.py", "pyproject.toml", "MANIFEST.in", "constraints.txt"),
    *("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md"),
)
NOBODY = ("-c", "user.name=x", "-c", "user.email=x@example.org")
EPOCH = 1_700_000_000  # the date of the builds, in seconds since 1970


def build(folder: Path, umask: int = 0o022, commit: bool = False) -> Path:
    """Build both in a folder, of a copy: building leaves its traces in the tree. With ``commit`` the date is that of
    a commit, otherwise SOURCE_DATE_EPOCH."""
    source = folder / "source"
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(source)]
    clean = {name: one for name, one in os.environ.items() if name not in ("PYTHONPATH", "SOURCE_DATE_EPOCH")}
    if commit:
        for words in (("init", "-q"), ("add", "setup.py"), (*NOBODY, "commit", "-qm", "x")):
            subprocess.run(
                ["git", *words], cwd=source, env={**clean, "GIT_COMMITTER_DATE": f"{EPOCH} +0000"}, check=True
            )
    else:
        clean |= {"SOURCE_DATE_EPOCH": str(EPOCH)}
    done = subprocess.run(command, env=clean, umask=umask, capture_output=True, text=True)
    if done.returncode:
        absent(f"a wheel cannot be built here: {(done.stderr or done.stdout)[-300:]}")
    return folder / "dist"


@functools.cache
def interpreter(minor: int) -> str:
    """Return the path of Python 3.``minor``, or skip the test."""
    roots = [os.environ.get("PYENV_ROOT", ""), os.path.expanduser("~/.pyenv")]
    found = [
        str(path) for root in roots if root for path in Path(root).glob(f"versions/3.{minor}.*/bin/python")
    ]
    for path in filter(None, [shutil.which(f"python3.{minor}"), *found]):
        said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout  # a shim may fail
        if said.startswith(f"Python 3.{minor}."):
            return path
    pytest.skip(f"Python 3.{minor} is not installed")
