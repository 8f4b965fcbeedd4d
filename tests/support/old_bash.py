"""Tests under another bash: JOBGEN_TEST_BASH names its file, which is mounted over /bin/bash for this run alone.

The test clusters that a run starts get it, too. One that runs already keeps its own bash. Where there is no such file
all tests are skipped.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess

import pytest

from support import not_installed

CLONE_NEWNS = 0x20000
_MOUNTED = "JOBGEN_TEST_BASH_MOUNTED"


def mount() -> None:
    """Mount it once, in a mount namespace of this process and of those that it starts."""
    path = os.environ.get("JOBGEN_TEST_BASH")
    if not path or not os.path.exists(path) or _MOUNTED in os.environ:
        return
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise pytest.UsageError(f"JOBGEN_TEST_BASH needs root: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "--bind", path, os.path.realpath("/bin/bash")], check=True)
    os.environ[_MOUNTED] = "yes"


def pytest_runtest_setup() -> None:
    path = os.environ.get("JOBGEN_TEST_BASH", "")
    if path and not os.path.exists(path):
        not_installed.skip(path)


def version(path: str = "bash") -> tuple[int, int]:
    """Return the version of a bash, by default of the one that jobs get."""
    said = subprocess.run([path, "-c", 'echo "$BASH_VERSION"'], capture_output=True, text=True, check=True)
    return tuple(map(int, re.findall(r"\d+", said.stdout)[:2]))  # type: ignore[return-value]
