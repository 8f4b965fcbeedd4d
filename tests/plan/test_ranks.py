"""``--ranks N``: the nodes that follow, and the requests that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import jobgen

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.plan.plan import Plan, resolve
from jobgen.spec import COMMAND_LINE, SiteName

OWN = ("./solver",)
HOSTS = "a slots=4\nb slots=4\nc slots=2\n"


def plan(scheduler: str, site: str = "", **options: object) -> Plan:
    settings = {key: str(value) for key, value in options.items()}
    name = SiteName(site, COMMAND_LINE) if site else None
    return resolve(read_spec(scheduler, settings, OWN, site=name))


@pytest.mark.parametrize(
    ("scheduler", "options", "request_"),
    [
        ("slurm", {"ranks": 64, "gpus_per_node": 8}, "8 nodes of 8 ranks, 8 devices, 2 cores"),
        ("slurm", {"ranks": 64, "gpus_per_node": "a100:8"}, "8 nodes of 8 ranks, 8 devices, 2 cores"),
        ("slurm", {"ranks": 4, "gpus_per_node": 8}, "1 nodes of 4 ranks, 8 devices, 2 cores"),
        ("slurm", {"ranks": 12, "gpus_per_node": 8, "nodes": 2}, "2 nodes of 6 ranks, 8 devices, 2 cores"),
        ("slurm", {"ranks": 16, "ranks_per_node": 4, "gpus_per_node": 8}, "4 nodes of 4 ranks, 8 devices, 2 cores"),
        ("slurm", {"ranks": 64, "cpus_per_node": 32, "accelerator": "cpu"}, "2 nodes of 32 ranks, 0 devices, 1 cores"),
        ("pbs", {"ranks": 16, "cpus_per_node": 32, "cpus_per_rank": 4, "gpus_per_node": 0}, "2 nodes of 8 ranks, 0 devices, 4 cores"),
        ("local", {"ranks": 3, "accelerator": "cpu"}, "1 nodes of 3 ranks, 0 devices, 1 cores"),
        ("pbs", {"ranks": 12, "gpus_per_node": 8}, "1x4+1x8"),
        ("pbs", {"ranks": 12, "gpus_per_node": 8, "dialect": "torque"}, "1x4+1x8"),
        ("pbs", {"ranks": 48, "cpus_per_node": 32, "accelerator": "cpu"}, "1x16+1x32"),
        ("pbs", {"ranks": 8, "nodes": 3}, "1x2+2x3"),
        ("pbs", {"ranks": 16, "nodes": "2x4+1x8"}, "2x4+1x8"),
    ],
)  # fmt: skip
def test_the_nodes_follow(scheduler: str, options: dict[str, object], request_: str) -> None:
    made = plan(scheduler, **options)
    found = made.resources
    equal = f"{found.nodes} nodes of {found.ranks_per_node} ranks, {found.gpus_per_node} devices, {found.cpus.rank} cores"
    assert (found.mixed or equal) == request_
    assert found.active.world_size == options["ranks"]
    assert resolve(made.spec).resources == found  # as the commands do that read a plan again


def test_the_last_node_has_its_cores_alone() -> None:
    chunks = plan("pbs", ranks=48, cpus_per_node=32, accelerator="cpu").resources.chunks
    assert [(one.nodes, one.ranks, one.cpus) for one in chunks] == [(1, 32, 32), (1, 16, 16)]


@pytest.mark.parametrize(
    ("site", "options", "nodes", "each", "cores"),
    [
        ("perlmutter", {"ranks": 16}, 4, 4, 32),
        ("csd3", {"ranks": 64, "accelerator": "cpu"}, 1, 64, 2),
        ("csd3", {"ranks": 256, "accelerator": "cpu"}, 2, 128, 1),
        ("csd3", {"ranks": 64, "accelerator": "cpu", "cpus_per_rank": 4}, 2, 32, 4),
    ],
)  # fmt: skip
def test_the_nodes_of_a_site(
    site: str, options: dict[str, object], nodes: int, each: int, cores: int
) -> None:
    found = plan("slurm", site, account="x", **options).resources
    assert (found.nodes, found.ranks_per_node, found.cpus.rank) == (nodes, each, cores)


@pytest.mark.parametrize(
    ("scheduler", "options", "sentence"),
    [
        ("slurm", {"ranks": 64}, "the nodes follow from the ranks of one: add --gpus-per-node N, the devices of a node, or --ranks-per-node N"),
        ("slurm", {"ranks": 64, "accelerator": "cpu"}, "the nodes follow from the ranks of one: add --cpus-per-node N, the cores of a node, or --ranks-per-node N"),
        ("pbs", {"ranks": 12, "gpus_per_node": 8, "launcher": "mpirun", "mpi": "intel"}, "needs 1 node of 8 ranks and 1 of 4, but --mpi intel (command line): supports only equal nodes here; use openmpi or mpich, or the launcher deepspeed, torchrun or accelerate; use --ranks 8 or 16, or --nodes 2 for 6 a node"),
        ("pbs", {"ranks": 13, "gpus_per_node": "a100:4"}, "needs 3 nodes of 4 ranks and 1 of 1, but --gpus-per-node a100:4 (command line): is the same on each node; use --ranks 12 or 16"),
        ("slurm", {"ranks": 64, "nodes": 4, "gpus_per_node": 8}, "is 16 a node, which has 8 devices; use --nodes 8 or --ranks 32"),
        ("slurm", {"ranks": 100, "nodes": 2, "cpus_per_node": 16, "cpus_per_rank": 2, "accelerator": "cpu"}, "is 50 a node, which has cores for 8; use --nodes 13 or --ranks 16"),
        ("slurm", {"ranks": 12, "gpus_per_node": 8, "spare_nodes": 1}, "needs 1 node of 8 ranks and 1 of 4, but --spare-nodes 1 (command line): a spare node cannot replace every node; use --ranks 8 or 16, or --nodes 2 for 6 a node, or remove --spare-nodes"),
        ("slurm", {"ranks": 12, "gpus_per_node": 8, "launcher": "colossalai"}, "needs 1 node of 8 ranks and 1 of 4, but --launcher colossalai (command line): colossalai supports only equal nodes; use deepspeed, mpirun, torchrun, srun or accelerate; use --ranks 8 or 16, or --nodes 2 for 6 a node"),
        ("slurm", {"ranks": 12, "gpus_per_node": 8, "launcher": "none"}, "--launcher none starts one process, and no ranks; remove it"),
        ("slurm", {"ranks": 12, "gpus_per_node": 8, "restarts": 1}, "needs 1 node of 8 ranks and 1 of 4, but --restarts 1 (command line): Slurm ends a job with components that loses a node, unlike one of equal nodes; use --ranks 8 or 16, or --nodes 2 for 6 a node, or remove --restarts"),
        ("pbs", {"ranks": 6, "gpus_per_node": 4, "array": "0-9", "pack": 2}, "needs 1 node of 4 ranks and 1 of 2, but the points of a task need a number of equal nodes; use --ranks 4 or 8, or --nodes 2 for 3 a node"),
        ("slurm", {"ranks": 16, "nodes": 2, "ranks_per_node": 4}, "2 nodes x 4 ranks are 8; remove one of them"),
        ("slurm", {"ranks": 2, "nodes": 3}, "does not fill 3 nodes; use --nodes 2, or fewer"),
        ("pbs", {"ranks": 8, "nodes": "2x4+1x8"}, "--nodes 2x4+1x8 has 16 ranks; remove one of the two"),
        ("slurm", {"ranks": 8, "nodes": "submitted"}, "the nodes of --nodes submitted are not known; use --ranks-per-node"),
        ("slurm", {"ranks": 8, "gpus_per_node": 8, "launcher": "none"}, "--launcher none starts one process, and no ranks; remove it"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(scheduler: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(JobgenError) as caught:
        plan(scheduler, **options)
    assert str(caught.value) == f"--ranks {options['ranks']} (command line): {sentence}"


def test_cores_that_the_ranks_cannot_share_are_refused() -> None:
    with pytest.raises(
        JobgenError, match=r"^--cpus-per-node 17 .*: is divided equally among 8 ranks; use 16 or 24$"
    ):
        plan("pbs", ranks=12, gpus_per_node=8, cpus_per_node=17, launcher="mpirun")


def test_uneven_nodes_are_components_on_slurm_which_has_no_arrays_of_them() -> None:
    made = plan("slurm", ranks=12, gpus_per_node=8)
    assert [one.resources.ranks_per_node for one in made.components] == [8, 4]
    with pytest.raises(
        JobgenError,
        match=r"needs 1 node of 8 ranks and 1 of 4, but .* Slurm .*; use --ranks 8 or 16, or --nodes 2 for 6 a node$",
    ):
        plan("slurm", ranks=12, gpus_per_node=8, array="0-3")


@pytest.mark.parametrize(
    ("ranks", "hosts"),
    [(8, "a:4 b:4"), (6, "a:4 b:2"), (10, "a:4 b:4 c:2"), (11, "the hosts of the hostfile have 10 slots; use --ranks 10")],
)  # fmt: skip
def test_the_first_hosts_whose_slots_are_enough(tmp_path: Path, ranks: int, hosts: str) -> None:
    (tmp_path / "hosts").write_text(HOSTS)
    done = jobgen("local", "--hostfile", "hosts", "--ranks", ranks, "--", *OWN, cwd=tmp_path)
    assert f"job_host_list=({hosts})" in done.stdout or hosts in done.stderr


def test_explain_has_the_ranks_and_what_follows() -> None:
    done = jobgen("slurm", "--ranks", 16, "--gpus-per-node", 8, "--explain", "--", *OWN)
    assert [
        line.split()[:3] for line in done.stdout.splitlines() if line.startswith(("ranks ", "nodes "))
    ] == [
        ["nodes", "2", "--ranks"],
        ["ranks", "16", "command"],
    ]
