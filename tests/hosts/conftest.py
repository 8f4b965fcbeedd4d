"""Fixtures of the laptop; the cluster behind it is the Slurm that other tests use."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from support.cluster import Cluster
from support.laptop import Lab, Laptop, User
from support.require import need_command


@pytest.fixture(scope="session")
def lab(slurm_cluster: Cluster) -> Lab:
    """A Slurm, its login nodes, a jump host and a laptop."""
    need_command("iptables", "rsync")
    lab = Lab(slurm_cluster)
    lab.up()
    return lab


@pytest.fixture
def laptop(lab: Lab) -> Iterator[Laptop]:
    """The laptop, with a home directory of this test."""
    with lab.laptop() as laptop:
        yield laptop


@pytest.fixture
def user(lab: Lab) -> User:
    """A user of the cluster, whose login shell is bash."""
    return lab.user()


@pytest.fixture
def chance() -> random.Random:
    """A source of chance; its seed is printed, and is that of JOBGEN_TEST_SEED if there is one."""
    seed = os.environ.get("JOBGEN_TEST_SEED") or str(random.randrange(10**6))
    print(f"JOBGEN_TEST_SEED={seed}")
    return random.Random(seed)
