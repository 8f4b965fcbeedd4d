"""Fixtures for all tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from support import old_bash
from support import warm_python as commands
from support.cluster import FIRST, NEW, SLURMS, Cluster, folder_of, shared_cluster
from support.not_installed import pytest_terminal_summary  # noqa: F401  # a hook
from support.old_bash import pytest_runtest_setup  # noqa: F401  # a hook
from support.pbs import OPENPBS, TORQUE, PbsCluster, shared_pbs
from support.require import need_cluster, need_pbs
from support.selection import need_part, pytest_addoption, pytest_collection_modifyitems  # noqa: F401  # hooks

old_bash.mount()
# No test is timed: an example may wait for the processors.
settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")

# Torch's threads sleep while they wait for each other. Where other tests use the processors they would spin most of the time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The mpirun of Open MPI 5 leaves its folder ompi.PID when it is killed. The nodes of the test clusters share /tmp, and each
# has its own process ids: a folder of this user in /tmp would fail a job of PBS with the same id, which another user runs.
folder = Path(f"/tmp/ompi-of-{os.getuid()}")
os.environ |= {"PRTE_MCA_prte_tmpdir_base": str(folder)}
with contextlib.suppress(FileExistsError):
    folder.mkdir()
    folder.chmod(0o1777)

# Who starts the tests in the background ignores these for them, and for every job that they run: bash could
# then not trap them.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(number, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Return the report in UTF-8: xdist ends the run at a failure that shows other bytes."""
    data = yield
    failed = data and data["outcome"] == "failed"
    return json.loads(json.dumps(data, ensure_ascii=False).encode(errors="replace")) if failed else data


@pytest.fixture(scope="session", autouse=True)
def session_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for the whole test session, also where several processes (xdist) share the tests."""
    base = tmp_path_factory.getbasetemp()
    commands.SESSION[:] = [base.parent if "PYTEST_XDIST_WORKER" in os.environ else base]
    return commands.SESSION[0]


@pytest.fixture(scope="session")
def slurm_cluster(session_dir: Path) -> Iterator[Cluster]:
    """Three nodes of Slurm, for this worker alone; submit with ``sbatch``."""
    need_cluster()
    with shared_cluster(folder_of(session_dir, FIRST)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def slurm24_cluster(session_dir: Path) -> Iterator[Cluster]:
    """Three nodes of Slurm 24.11."""
    need_cluster(NEW)
    with shared_cluster(folder_of(session_dir, NEW), NEW) as cluster:
        yield cluster


@pytest.fixture(params=SLURMS)
def each_slurm(request: pytest.FixtureRequest) -> Cluster:
    """One Slurm after the other."""
    cluster: Cluster = request.getfixturevalue(f"{request.param}_cluster")
    return cluster


@pytest.fixture(scope="session")
def openpbs_cluster(request: pytest.FixtureRequest) -> Iterator[PbsCluster]:
    """Three nodes of a real OpenPBS, the one of this machine."""
    need_part(request.config)
    with shared_pbs(need_pbs(OPENPBS)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def torque_cluster(request: pytest.FixtureRequest) -> Iterator[PbsCluster]:
    """Three nodes of a real Torque, the one of this machine."""
    need_part(request.config)
    with shared_pbs(need_pbs(TORQUE)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def warm_python() -> Iterator[None]:
    """Let the jobs of a module find a python first that has imported torch."""
    with commands.first(commands.server()):
        yield
