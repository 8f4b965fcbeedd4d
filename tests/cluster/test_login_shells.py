"""Users with other login shells than bash: each launcher starts its ranks and asks them to save, by ssh on Slurm, by
pbs_tmrsh on OpenPBS and by pbsdsh on Torque."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from support.cluster import Cluster, shared_cluster
from support.matrix import ENDS, LAUNCHERS, Cell
from support.require import need_cluster, need_command
from support.story import AnyCluster, play_end

SHELLS = ("tcsh", "ksh", "zsh", "fish")
# Each pair of a shell and a launcher, a shell and a scheduler, a launcher and a scheduler, which all matter most for csh.
IN_CI = {
    ("tcsh", "mpirun4", "openpbs"),
    ("tcsh", "mpirun4", "slurm"),
    ("tcsh", "mpirun5", "torque"),
    ("tcsh", "mpirun5", "slurm"),
    ("tcsh", "mpich", "torque"),
    ("tcsh", "torchrun", "openpbs"),
    ("fish", "mpirun5", "openpbs"),
    ("fish", "torchrun", "slurm"),
    ("ksh", "mpirun4", "torque"),
    ("ksh", "deepspeed", "openpbs"),
    ("zsh", "mpich", "slurm"),
    ("zsh", "torchrun", "torque"),
}
PDSH_REFUSES = ("tcsh", "fish")


def cases() -> list[object]:
    every = os.environ.get("JOBGEN_MATRIX") == "all"
    return [
        pytest.param(*case, marks=pytest.mark.xdist_group(f"shells-{case[2]}"), id="-".join(case))
        for case in product(SHELLS, LAUNCHERS, ("slurm", "openpbs", "torque"))
        if case[1] != "srun" and (every or case in IN_CI)
    ]


@pytest.fixture(scope="module")
def own_slurm(session_dir: Path) -> Iterator[Cluster]:
    """Slurm of these tests alone: they change the login shell of its user."""
    need_cluster()
    with shared_cluster(session_dir / "cluster-shells") as cluster:
        yield cluster


def with_login_shell(request: pytest.FixtureRequest, scheduler: str, shell: str) -> AnyCluster:
    path = need_command(shell)
    if scheduler == "slurm":
        cluster: Cluster = request.getfixturevalue("own_slurm")
        users = cluster.root / "etc/passwd"
        users.write_text(re.sub(r"(?m)^(root:.*:).*$", rf"\g<1>{path}", users.read_text()))
        return cluster
    return replace(request.getfixturevalue(f"{scheduler}_cluster"), user=f"pbs-{shell}")


@pytest.mark.parametrize(("shell", "launcher", "scheduler"), cases())
def test_the_ranks_start_and_save(
    request: pytest.FixtureRequest, shell: str, launcher: str, scheduler: str
) -> None:
    cluster = with_login_shell(request, scheduler, shell)
    options = ("--remote", "ssh") if scheduler == "slurm" else ()
    cell = Cell(scheduler, launcher, "cancel")
    end = replace(ENDS["cancel"], options=options)
    if launcher == "deepspeed" and scheduler == "slurm" and shell in PDSH_REFUSES:
        with pytest.raises(AssertionError, match=f"in your login shell .*/{shell}: use --remote auto"):
            play_end(cluster, cell, end)
        return
    outcome = play_end(cluster, cell, end)
    assert (outcome.began, len(outcome.saved)) == (cell.ranks, cell.ranks), str(outcome)
    assert outcome.job.exit_code == 75, str(outcome)
    assert not outcome.left, str(outcome)
