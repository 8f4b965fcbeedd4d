"""What a test needs of the machine: where it is absent, the test is skipped, and on CI it fails.

On a user's machine a skipped test says what to install. On CI everything is expected to be there, and a
skipped test would hide that it is not; CI services set the environment variable CI. What no package installs
may be absent there, too: such tests are skipped, and counted at the end of the run.
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

from support import not_installed
from support.cluster import FIRST, SYSTEMS
from support.pbs import USER, Kind, PbsCluster

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CLUSTER_COMMANDS = (*("sbatch", "slurmctld", "slurmd", "munged", "sshd", "pdsh", "ip", "nsenter", "unshare"),)


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


def need_cluster(version: str = FIRST) -> None:
    """Whatever tests/cluster/minicluster.sh needs. Only the system of another Slurm may be absent on CI."""
    if not os.path.isdir(SYSTEMS[version] or "/"):
        not_installed.skip(f"Slurm {version}")
    if not sys.platform.startswith("linux"):
        absent("the test cluster needs Linux")
    need_root()
    for name in CLUSTER_COMMANDS:
        if shutil.which(name, path=SYSTEM_PATH) is None:
            absent(f"the test cluster needs {name}: run tests/cluster/minicluster.sh install")
    if not _namespaces_allowed():
        absent("the test cluster needs namespaces, and this container may not make any")


def need_pbs(kind: Kind) -> PbsCluster:
    """A real OpenPBS or Torque, whose jobs can read this checkout and the Python that runs the tests."""
    if not kind.installed.exists():
        not_installed.skip(kind.title)
    need_root()
    if not _namespaces_allowed():
        absent(f"{kind.title} needs namespaces, and this container may not make any")
    need_readable(Path(__file__), Path(sys.executable), Path(sys.prefix))
    return PbsCluster(kind)


def need_readable(*places: Path) -> None:
    """By the user whose jobs the PBS clusters run. On CI the way is opened; on a user's machine that is for the user."""
    for place in places:
        closed = [folder for folder in place.resolve().parents if not folder.stat().st_mode & 0o001]
        if closed and not on_ci():
            absent(f"jobs of the user {USER} cannot reach {place}: chmod o+x {' '.join(map(str, closed))}")
        for folder in closed:
            folder.chmod(folder.stat().st_mode | 0o001)


def user_cache() -> Path:
    """Return the folder of what the tests make once on a machine."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "jobgen")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@functools.cache
def _namespaces_allowed() -> bool:
    command = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(command, capture_output=True).returncode == 0
