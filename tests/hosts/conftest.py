"""Fixtures of the laptop; the cluster behind it is the Slurm that other tests use."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cluster import NEW, OLD, folder_of, shared_cluster
from support.hosts import Login
from support.laptop import Lab, Laptop, User
from support.pbs import PbsCluster
from support.pbs_login import pbs_login
from support.require import need_cluster, need_command


@pytest.fixture(scope="session")
def lab(session_dir: Path) -> Iterator[Lab]:
    """A Slurm, its login nodes, a jump host and a laptop. It is the Slurm of this machine, whose shells and rsync the
    system of Slurm 24.11 does not have."""
    need_cluster(OLD)
    need_command("iptables", "rsync")
    with shared_cluster(folder_of(session_dir, OLD), OLD) as cluster:
        lab = Lab(cluster)
        lab.up()
        yield lab


@pytest.fixture
def new_lab(session_dir: Path) -> Iterator[Lab]:
    """The same in the system of Slurm 24.11, whose only login shell is bash."""
    need_cluster(NEW)
    with shared_cluster(folder_of(session_dir, NEW), NEW) as cluster:
        lab = Lab(cluster)
        lab.up()
        yield lab


@pytest.fixture
def laptop(lab: Lab) -> Iterator[Laptop]:
    """The laptop, with a home directory of this test."""
    with lab.laptop() as laptop:
        yield laptop


@pytest.fixture
def user(lab: Lab) -> User:
    """A user of the cluster, whose login shell is bash."""
    return lab.user()


@pytest.fixture(params=["slurm", "openpbs", "torque"])
def login(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Login]:
    """A user of each cluster, whose login shell is bash."""
    if request.param == "slurm":
        yield Login(lab.cluster, lab.user())
    else:
        cluster: PbsCluster = request.getfixturevalue(f"{request.param}_cluster")
        with pbs_login(lab, cluster) as user:
            yield Login(cluster, user)


@pytest.fixture
def chance() -> random.Random:
    """A source of chance; its seed is printed, and is that of JOBGEN_TEST_SEED if there is one."""
    seed = os.environ.get("JOBGEN_TEST_SEED") or str(random.randrange(10**6))
    print(f"JOBGEN_TEST_SEED={seed}")
    return random.Random(seed)
