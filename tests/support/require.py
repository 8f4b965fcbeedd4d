"""What a test needs of the machine: where it is absent, the test is skipped, and on CI it fails.

On a user's machine a skipped test says what to install. On CI everything is expected to be there, and a
skipped test would hide that it is not; CI services set the environment variable CI.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CLUSTER_COMMANDS = (
    "sbatch",
    "qsub",
    "slurmctld",
    "slurmd",
    "munged",
    "sshd",
    "pdsh",
    "ip",
    "nsenter",
    "unshare",
)


def on_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "false")


def absent(reason: str) -> NoReturn:
    """Skip the test for this reason, or fail it on CI."""
    if on_ci():
        pytest.fail(f"absent on CI: {reason}", pytrace=False)
    pytest.skip(reason)


def find_command(name: str) -> str | None:
    """Its path; the directory of the running Python comes first."""
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), SYSTEM_PATH])
    return shutil.which(name, path=search)


def need_command(*names: str) -> str:
    """The path of the last of these commands."""
    path = ""
    for name in names:
        found = find_command(name)
        if found is None:
            absent(f"the command {name} is not installed")
        path = found
    return path


def need_package(*names: str) -> None:
    """These top-level Python packages; they are looked up, not imported."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            absent(f"the Python package {name} is not installed")


def need_root() -> None:
    if os.geteuid() != 0:
        absent("only root can do this")


def need_cluster() -> None:
    """Whatever tests/cluster/minicluster.sh needs."""
    if not sys.platform.startswith("linux"):
        absent("the test cluster needs Linux")
    need_root()
    for name in CLUSTER_COMMANDS:
        if shutil.which(name, path=SYSTEM_PATH) is None:
            absent(f"the test cluster needs {name}: run tests/cluster/minicluster.sh install")
    if not _namespaces_allowed():
        absent("the test cluster needs namespaces, and this container may not make any")


@functools.cache
def _namespaces_allowed() -> bool:
    command = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(command, capture_output=True).returncode == 0
