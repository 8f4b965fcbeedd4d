"""Who a process is, from the environment alone; real MPI is in test_train_runs.py."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from jobgen.train import ranks
from jobgen.train.addresses import first_host
from jobgen.train.errors import BadInput
from jobgen.train.ranks import Ranks
from support.require import need_package

LAUNCHER = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "n1", "MASTER_PORT": "2000"}
MEETING = {"MASTER_ADDR": "n1", "MASTER_PORT": "2000"}
OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
}
STEP = {
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_ID": "7",
    "SLURM_PROCID": "2",
    "SLURM_NTASKS": "3",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1",
    "SLURM_STEP_TASKS_PER_NODE": "2,1",
    "SLURM_STEP_NODELIST": "gpu[007-008]",
}


def discover(env: dict[str, str], local_rank: int | None = None) -> Ranks:
    return ranks.discover(env, local_rank, load_mpi=lambda: None)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param(LAUNCHER, Ranks(3, 4, 1, 4, "n1", 2000, "the launcher"), id="launcher"),
        pytest.param(
            LAUNCHER | {"LOCAL_WORLD_SIZE": "2"}, Ranks(3, 4, 1, 2, "n1", 2000, "the launcher"), id="torchrun"
        ),
        pytest.param(
            LAUNCHER | {"LOCAL_SIZE": "2"}, Ranks(3, 4, 1, 2, "n1", 2000, "the launcher"), id="deepspeed"
        ),
        pytest.param(
            LAUNCHER | {"LOCAL_SIZE": "2"} | OPENMPI,
            Ranks(3, 4, 1, 2, "n1", 2000, "the launcher"),
            id="deepspeed-started-by-mpirun-once-a-node",
        ),
        *(
            pytest.param(
                OPENMPI | MEETING | {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", mark: "1"},
                Ranks(0, 1, 0, 1, "n1", 2000, "the launcher"),
                id=f"launcher-below-mpirun-{mark}",
            )
            for mark in ("TORCHELASTIC_RUN_ID", "LOCAL_SIZE", "CROSS_RANK")
        ),
        pytest.param(OPENMPI | MEETING, Ranks(1, 2, 0, 1, "n1", 2000, "Open MPI"), id="openmpi"),
        pytest.param(
            OPENMPI | MEETING | STEP, Ranks(1, 2, 0, 1, "n1", 2000, "Open MPI"), id="openmpi-daemons-by-srun"
        ),
        pytest.param(
            {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"} | MEETING,
            Ranks(5, 8, 1, 4, "n1", 2000, "MPICH"),
            id="mpich-and-intel",
        ),
        pytest.param(
            {
                "PALS_RANKID": "5",
                "PMI_RANK": "5",
                "PMI_SIZE": "8",
                "PALS_LOCAL_RANKID": "1",
                "PALS_LOCAL_SIZE": "4",
            }
            | MEETING,
            Ranks(5, 8, 1, 4, "n1", 2000, "PALS"),
            id="pals",
        ),
        pytest.param(
            OPENMPI | MEETING | {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"},
            Ranks(1, 2, 0, 2, "n1", 2000, "the launcher"),
            id="wrapper-below-mpirun",
        ),
        pytest.param(STEP, Ranks(2, 3, 0, 1, "gpu007", 20049, "Slurm"), id="srun"),
        pytest.param(STEP | MEETING, Ranks(2, 3, 0, 1, "n1", 2000, "Slurm"), id="srun-and-rendezvous-given"),
        pytest.param(
            STEP | {"PMI_RANK": "2", "PMI_SIZE": "3"},
            Ranks(2, 3, 0, 1, "gpu007", 20049, "Slurm"),
            id="srun-pmi2",
        ),
        pytest.param(MEETING, Ranks(0, 1, 0, 1, "127.0.0.1", 2000, "one process"), id="one"),
        pytest.param(
            MEETING | {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7"},
            Ranks(0, 1, 0, 1, "127.0.0.1", 2000, "one process"),
            id="one-in-a-batch-script",
        ),
        pytest.param(
            MEETING | STEP | {"SLURM_STEP_ID": "4294967290"},
            Ranks(0, 1, 0, 1, "127.0.0.1", 2000, "one process"),
            id="one-in-an-interactive-allocation",
        ),
        pytest.param(
            {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_PORT": "2000"},
            Ranks(0, 1, 0, 1, "127.0.0.1", 2000, "the launcher"),
            id="launcher-of-one",
        ),
    ],
)
def test_each_source(env: dict[str, str], expected: Ranks) -> None:
    assert discover(env) == expected


@pytest.mark.parametrize(
    ("env", "words"),
    [
        pytest.param(
            {**LAUNCHER, "LOCAL_RANK": ""}, ["LOCAL_RANK", "RANK=3", "WORLD_SIZE=4"], id="no-local-rank"
        ),
        pytest.param({"RANK": "0"}, ["WORLD_SIZE", "MASTER_ADDR", "RANK=0"], id="rank-alone"),
        pytest.param(LAUNCHER | {"MASTER_PORT": ""}, ["MASTER_PORT"], id="no-port"),
        pytest.param(LAUNCHER | {"RANK": "4"}, ["RANK=4", "WORLD_SIZE=4"], id="rank-too-large"),
        pytest.param(LAUNCHER | {"RANK": "x"}, ["RANK='x'", "whole number"], id="no-number"),
        pytest.param(
            LAUNCHER | {"LOCAL_WORLD_SIZE": "1"}, ["LOCAL_RANK=1", "LOCAL_WORLD_SIZE=1"], id="local-size"
        ),
        pytest.param({"WORLD_SIZE": "4"}, ["WORLD_SIZE=4", "RANK", "1"], id="several-said-one-started"),
        pytest.param(
            OPENMPI | MEETING | {"WORLD_SIZE": "4"}, ["WORLD_SIZE=4", "Open MPI has 2"], id="two-sizes"
        ),
        pytest.param(STEP | {"LOCAL_RANK": "1"}, ["LOCAL_RANK=1", "Slurm has 0"], id="two-local-ranks"),
        pytest.param(OPENMPI, ["MASTER_ADDR", "mpi4py"], id="nowhere-to-meet"),
        pytest.param(
            MEETING | {"PALS_RANKID": "1", "PALS_LOCAL_RANKID": "1"},
            ["PALS", "no world size"],
            id="pals-without-size",
        ),
        pytest.param(
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"} | MEETING,
            ["Open MPI", "rank 1, but no local rank"],
            id="openmpi-without-local-rank",
        ),
        pytest.param(
            OPENMPI | MEETING | {"OMPI_COMM_WORLD_RANK": "3"}, ["rank 3 of 2"], id="openmpi-rank-too-large"
        ),
        pytest.param(
            OPENMPI | MEETING | {"OMPI_COMM_WORLD_LOCAL_RANK": "1"},
            ["local rank 1 of 1"],
            id="openmpi-local-rank-too-large",
        ),
        pytest.param(
            LAUNCHER | {"LOCAL_WORLD_SIZE": "8"},
            ["LOCAL_WORLD_SIZE=8", "WORLD_SIZE=4"],
            id="more-on-the-host-than-in-all",
        ),
        pytest.param(LAUNCHER | {"LOCAL_WORLD_SIZE": "0"}, ["LOCAL_WORLD_SIZE=0"], id="none-on-the-host"),
        pytest.param(LAUNCHER | {"MASTER_PORT": "99999"}, ["MASTER_PORT=99999", "65535"], id="port"),
        pytest.param({"MASTER_PORT": "0"}, ["MASTER_PORT=0", "65535"], id="port-0"),
        pytest.param(
            OPENMPI | MEETING | {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"},
            ["RANK=0", "WORLD_SIZE=1", "Open MPI started", "rank 1 of 2"],
            id="world-of-one-below-mpirun",
        ),
        pytest.param(
            OPENMPI | MEETING | {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"},
            ["RANK=0", "rank 1 of 2"],
            id="another-rank-than-mpirun-s",
        ),
    ],
)
def test_contradictions_say_what_was_seen(env: dict[str, str], words: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        discover(env)
    for word in words:
        assert word in str(caught.value)


def test_local_rank_option_counts_where_the_environment_is_silent_and_must_agree() -> None:
    env = {name: value for name, value in LAUNCHER.items() if name != "LOCAL_RANK"}
    assert discover(env, 2).local_rank == 2
    assert discover(LAUNCHER, 1).local_rank == 1
    with pytest.raises(BadInput, match="--local_rank=2 contradicts"):
        discover(LAUNCHER, 2)
    assert discover(MEETING, 0) == discover(MEETING, -1) == discover(MEETING)
    with pytest.raises(BadInput, match="--local_rank=3 is set but RANK is not, and one process has 0"):
        discover(MEETING, 3)


def test_mpi_is_asked_only_below_an_mpi_launcher() -> None:
    assert ranks.started_by_mpi(OPENMPI)
    assert ranks.started_by_mpi({"PMIX_RANK": "0"})
    assert not ranks.started_by_mpi({})
    assert not ranks.started_by_mpi(STEP | {"PMI_RANK": "2", "PMI_SIZE": "3"})


def test_export_leaves_nothing_to_guess() -> None:
    env: dict[str, str] = {"MASTER_PORT": "1"}
    me = Ranks(3, 4, 1, 2, "n1", 2000, "mpi4py")
    ranks.export(me, env)
    assert ranks.discover(env) == Ranks(3, 4, 1, 2, "n1", 2000, "the launcher")


@pytest.mark.parametrize(
    ("nodelist", "host"),
    [
        ("n1", "n1"),
        ("n[003-005,9],m1", "n003"),
        ("a,b", "a"),
        ("r[1-2]n[01-04]", "r1n01"),
        ("gpu-[7]", "gpu-7"),
    ],
)
def test_first_host(nodelist: str, host: str) -> None:
    assert first_host(nodelist) == host


def test_tasks_per_node() -> None:
    assert ranks.tasks_per_node("2(x3),1") == [2, 2, 2, 1]


def test_another_mpi_than_the_launcher_s_is_an_error() -> None:
    """N worlds of one rank: the launcher's variables say two, the real mpi4py sees itself alone."""
    need_package("mpi4py")
    code = (
        "import os\nfrom jobgen.train import ranks, errors\n"
        "try: ranks.discover(os.environ)\nexcept errors.BadInput as e: print(e)"
    )
    foreign = ("OMPI_", "PMI", "PRTE_", "RANK", "WORLD_SIZE", "LOCAL_RANK")
    env = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    env |= {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert "mpi4py sees 1 rank(s) but MPICH started 2" in done.stdout, done


def test_ranks_and_options_need_no_torch() -> None:
    code = (
        "import sys, jobgen.train.ranks, jobgen.train.config, jobgen.train.config.deepspeed.merge\n"
        "heavy = {'torch', 'deepspeed', 'mpi4py', 'click', 'jinja2'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"
