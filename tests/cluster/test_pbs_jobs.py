"""Rendered PBS scripts, submitted with qsub to the test cluster: what each rank saw, with ssh and without."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support import jobs
from support.cluster import CLUSTER_DIR, Cluster, Job
from support.jobs import ENVIRONMENT, HOSTILE, PROBE
from support.mpich import mpich_bin

# The preflight has tests of its own, and takes seconds.
TWO_BY_TWO = (
    *(
        "--nodes",
        "2",
        "--ranks-per-node",
        "2",
        "--accelerator",
        "cpu",
        "--cpus-per-rank",
        "3",
        "--no-preflight",
    ),
)
ODD = 'it\'s a "run" $(touch canary)'

NO_SSH = 'echo "ssh was called: $*" >&2\nexit 99'
# Torque's: no shell reads the words, nothing of the environment gets there, and the status is lost.
PBSDSH = """
[[ $1 == -h && $# -ge 3 && -n $PBS_JOBID ]] || exit 1
grep -qxF -e "$2" "$PBS_NODEFILE" || exit 1
printf -v line '%q ' exec env -i HOME="$HOME" USER=root PATH=/bin:/usr/bin PBS_JOBID="$PBS_JOBID" "${@:3}"
env PATH=/usr/bin:/bin ssh -n "$2" "$line </dev/null" || true
exit 0
"""

# Name: the options; "torque" stands for the dialect, its pbsdsh and no pbs_tmrsh, "ssh" for neither of
# them. Everywhere else ssh fails loudly. Debian's mpirun where the name says so, else the wheel's.
LAUNCHES = {
    "mpirun": ["--launcher", "mpirun"],
    "mpirun debian": ["--launcher", "mpirun"],
    "mpirun scheduler": ["--launcher", "mpirun", "--remote", "scheduler"],
    "mpirun ssh": ["--launcher", "mpirun"],
    "mpirun ssh debian": ["--launcher", "mpirun", "--remote", "ssh"],
    "mpirun torque": ["--launcher", "mpirun", "--dialect", "torque"],
    "mpirun torque debian": ["--launcher", "mpirun", "--dialect", "torque"],
    "mpich": ["--launcher", "mpirun", "--mpi", "mpich"],
    "mpich ssh": ["--launcher", "mpirun", "--mpi", "mpich"],
    "torchrun": ["--launcher", "torchrun"],
    "torchrun ssh": ["--launcher", "torchrun"],
    "torchrun torque": ["--launcher", "torchrun", "--dialect", "torque"],
    "deepspeed": ["--launcher", "deepspeed"],
    "deepspeed torque": ["--launcher", "deepspeed", "--dialect", "torque"],
    "deepspeed pdsh ssh": ["--launcher", "deepspeed", "--remote", "ssh"],
}


def path_of(cluster: Cluster, directory: Path, name: str) -> str:
    """The PATH of a launch."""
    words = name.split()
    path = [part for part in cluster.env["PATH"].split(os.pathsep) if part != str(CLUSTER_DIR)]
    if "debian" in words:
        path = jobs.debian_path(directory / "debian").split(os.pathsep)
    if "mpich" in words:
        path.insert(0, str(mpich_bin()))
    if "torque" in words:
        path.insert(0, jobs.path_with(directory / "torque", pbsdsh=PBSDSH))
    elif "ssh" not in words:
        path.insert(0, str(CLUSTER_DIR))  # pbs_tmrsh
    if "ssh" not in words:
        path.insert(0, jobs.path_with(directory / "no-ssh", ssh=NO_SSH))
    return os.pathsep.join(path)


def submit(cluster: Cluster, directory: Path, script: str, env: Mapping[str, str] | None = None) -> Job:
    return cluster.wait(cluster.qsub(script, directory, env=env))


def probing(directory: Path, act: str = "") -> list[str]:
    """Options that tell the probe where to write, which is ``directory``/seen."""
    (directory / "seen").mkdir(exist_ok=True)
    return jobs.env_options({"PROBE_DIR": directory / "seen", "PROBE_ACT": act})


@pytest.mark.parametrize("name", LAUNCHES)
def test_every_rank_knows_its_place_and_gets_all_that_was_given(
    pbs_cluster: Cluster, tmp_path: Path, name: str
) -> None:
    runs = tmp_path / ("runs" if "pdsh" in name else ODD)
    carried = {
        "PYTHONPATH": f"/a b/$(touch {jobs.CANARY})/%h",
        "LD_LIBRARY_PATH": f'/"x`touch {jobs.CANARY}`',
    }
    carried["PATH"] = f"{path_of(pbs_cluster, tmp_path, name)}:/a b/$(touch {jobs.CANARY})/%h"
    script = jobs.render(
        *("pbs", *TWO_BY_TWO, *LAUNCHES[name], "--run-dir", runs.name),
        *(*probing(tmp_path), *jobs.env_options(ENVIRONMENT)),
        program=[PROBE, *HOSTILE],
    )
    job = submit(pbs_cluster, tmp_path, script, env=carried)
    assert job.ok, job.output
    directory = jobs.run_dir(runs)
    hosts = jobs.hosts_in(directory)
    ranks = jobs.ranks_in(tmp_path / "seen")
    assert [slots for _, slots in hosts] == [2, 2]
    jobs.check_world(ranks, [host for host, _ in hosts], 2)
    jobs.check_arrival(ranks, HOSTILE, {**ENVIRONMENT, **carried, "OMP_NUM_THREADS": "3"}, tmp_path)
    jobs.check_untouched(tmp_path, runs, directory, pbs_cluster.home, Path("/"))
    jobs.check_files(directory)
    assert f"files in {directory}" in job.output
    assert re.search(rf"job {job.id}.head finished after \d+ s", job.output)


@pytest.mark.parametrize("name", ["mpirun", "mpirun debian", "mpirun ssh", "mpirun ssh debian", "mpich"])
def test_three_nodes_though_no_node_but_the_first_may_start_others(
    pbs_cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """A radix of 1 would make a chain of the daemons, as some hundreds of nodes do without it."""
    chain = jobs.env_options(
        {"OMPI_MCA_routed_radix": 1, "PRTE_MCA_routed_radix": 1, "PRTE_MCA_prte_routed_radix": 1}
    )
    script = jobs.render(
        *(
            "pbs",
            "--nodes",
            "3",
            "--ranks-per-node",
            "1",
            "--accelerator",
            "cpu",
            "--no-preflight",
            *LAUNCHES[name],
        ),
        *(*probing(tmp_path), *chain),
        program=[PROBE],
    )
    job = submit(pbs_cluster, tmp_path, script, env={"PATH": path_of(pbs_cluster, tmp_path, name)})
    assert job.ok, job.output
    jobs.check_world(jobs.ranks_in(tmp_path / "seen"), pbs_cluster.nodes, 1)


# ------------------------------------------------------------------------------------------ the node file
# These run the script on a node as PBS would, with a node file of our own.


def run_with_node_file(
    cluster: Cluster, directory: Path, script: str, hosts: Sequence[str]
) -> tuple[int, str]:
    (directory / "job.sh").write_text(script)
    (directory / "nodes").write_text("".join(f"{host}\n" for host in hosts))
    env = {"PBS_JOBID": "77.head", "PBS_NODEFILE": str(directory / "nodes"), "PBS_O_WORKDIR": str(directory)}
    done = cluster.exec("node1", ["bash", "job.sh"], cwd=directory, env=env, check=False, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "hosts",
    [
        ["node1", "node2"],
        ["node1"] * 3 + ["node2"] * 3,
        ["node1", "node2"] * 4,
        ["node1", "", "node2", "node1", "node2"],
    ],
)
def test_a_host_counts_once_however_often_it_is_listed(
    pbs_cluster: Cluster, tmp_path: Path, hosts: Sequence[str]
) -> None:
    script = jobs.render("pbs", *TWO_BY_TWO, "--launcher", "mpirun", *probing(tmp_path), program=[PROBE])
    status, output = run_with_node_file(pbs_cluster, tmp_path, script, hosts)
    assert status == 0, output
    jobs.check_world(jobs.ranks_in(tmp_path / "seen"), ["node1", "node2"], 2)


@pytest.mark.parametrize(("hosts", "count"), [(["node1"] * 4, 1), (["node1", "node2", "node3"], 3), ([], 0)])
def test_a_node_file_with_another_number_of_hosts(
    pbs_cluster: Cluster, tmp_path: Path, hosts: Sequence[str], count: int
) -> None:
    script = jobs.render("pbs", *TWO_BY_TWO, "--launcher", "mpirun", *probing(tmp_path), program=[PROBE])
    status, output = run_with_node_file(pbs_cluster, tmp_path, script, hosts)
    assert status == 70
    assert re.search(rf"the allocation has {count} hosts \(.*\), but 2 were asked for", output)
    assert not jobs.ranks_in(tmp_path / "seen")


# Slurm's qsub cannot ask for different shares: the job is of three whole nodes, and its node file is ours.
MIXED = ("--nodes", "1x4+2x2", "--accelerator", "cpu", "--cpus-per-rank")
SHARES = ("node1", "node2", "node2", "node3", "node1", "node3", "node2", "node2")


def submit_mixed(
    cluster: Cluster, directory: Path, script: str, hosts: Sequence[str] = SHARES, path: str = ""
) -> Job:
    (directory / "mixed.sh").write_text(script)
    (directory / "nodes").write_text("".join(f"{host}\n" for host in hosts))
    wrapper = (
        "#!/bin/bash\n#PBS -l nodes=3:ppn=4\n#PBS -j oe\n"
        f"PBS_NODEFILE={directory}/nodes PBS_O_WORKDIR={directory} exec bash {directory}/mixed.sh\n"
    )
    return submit(cluster, directory, wrapper, {"PATH": path} if path else None)


@pytest.mark.parametrize(
    "name",
    [
        "mpirun",
        "mpirun debian",
        "mpirun ssh",
        "mpich",
        "torchrun",
        "torchrun torque",
        "deepspeed",
        "deepspeed pdsh ssh",
    ],
)
def test_nodes_that_differ_have_the_ranks_that_were_asked_for(
    pbs_cluster: Cluster, tmp_path: Path, name: str
) -> None:
    cores = 2 if "torque" in name else 1  # Torque lists a host once a core
    script = jobs.render(
        *("pbs", *MIXED, cores, "--no-preflight", *LAUNCHES[name], *probing(tmp_path)), program=[PROBE]
    )
    path = path_of(pbs_cluster, tmp_path, name)
    job = submit_mixed(pbs_cluster, tmp_path, script, SHARES * cores, path)
    assert job.ok, job.output
    ranks = jobs.ranks_in(tmp_path / "seen")
    seen = [(rank.host, rank.number("LOCAL_RANK"), rank.number("LOCAL_WORLD_SIZE")) for rank in ranks]
    each = {"node1": 2, "node2": 4, "node3": 2}
    assert seen == [(host, local, count) for host, count in each.items() for local in range(count)]
    assert [rank.number("RANK") for rank in ranks] == list(range(8))
    assert {rank.number("WORLD_SIZE") for rank in ranks} == {8}
    jobs.check_files(jobs.run_dir(tmp_path / "runs"))


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun", "deepspeed"])
def test_a_training_on_nodes_that_differ(pbs_cluster: Cluster, tmp_path: Path, launcher: str) -> None:
    """With the preflight, and each rank on its share of its node."""
    script = jobs.render(
        *("pbs", *MIXED, 1, "--launcher", launcher, "--cpu-bind", "numa"),
        program=["--task", "digits", "--epochs", "1"],
    )
    job = submit_mixed(pbs_cluster, tmp_path, script)
    assert job.ok, job.output
    assert jobs.status_of(jobs.run_dir(tmp_path / "runs"))["state"] == "finished"


@pytest.mark.parametrize(
    ("hosts", "got"),
    [(["node1", "node2", "node3"] * 2, "3x2"), (SHARES[:-1], "2x2+1x3"), (SHARES[:2], "2x1")],
)
def test_nodes_that_differ_otherwise(
    pbs_cluster: Cluster, tmp_path: Path, hosts: Sequence[str], got: str
) -> None:
    script = jobs.render("pbs", *MIXED, 1, "--launcher", "mpirun", *probing(tmp_path), program=[PROBE])
    status, output = run_with_node_file(pbs_cluster, tmp_path, script, hosts)
    assert status == 70
    assert f"the allocation is {got} (nodes x ranks: node1 " in output
    assert "but 2x2+1x4 was asked for" in output
    assert not jobs.ranks_in(tmp_path / "seen")


# ------------------------------------------------------------------------------------------ what ends badly

# Without a shell between the nodes there is no start; the status of a far rank is the job's.
ENDS = [
    ("mpirun", "exit:3:7", 7),
    ("mpirun debian", "exit:3:7", 7),
    ("mpirun torque", "exit:3:7", 7),
    ("mpirun", "kill:3", 137),
    ("torchrun", "exit:3:7", 7),
    ("torchrun torque", "exit:3:7", 7),
    ("deepspeed", "exit:3:7", 7),
    ("deepspeed torque", "kill:3", 137),
]


@pytest.mark.parametrize(("name", "act", "status"), ENDS)
def test_the_status_of_a_far_rank_is_the_job_s(
    pbs_cluster: Cluster, tmp_path: Path, name: str, act: str, status: int
) -> None:
    script = jobs.render("pbs", *TWO_BY_TWO, *LAUNCHES[name], *probing(tmp_path, act), program=[PROBE])
    job = submit(pbs_cluster, tmp_path, script, env={"PATH": path_of(pbs_cluster, tmp_path, name)})
    assert (job.exit_code, job.state) == (status, "FAILED"), job.output
    assert f"failed with status {status} after" in job.output


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_the_scheduler_s_way_is_missing(pbs_cluster: Cluster, tmp_path: Path, launcher: str) -> None:
    script = jobs.render(
        "pbs",
        *TWO_BY_TWO,
        "--launcher",
        launcher,
        "--remote",
        "scheduler",
        *probing(tmp_path),
        program=[PROBE],
    )
    job = submit(pbs_cluster, tmp_path, script, env={"PATH": path_of(pbs_cluster, tmp_path, "ssh")})
    assert job.exit_code == 71
    assert "cannot find pbs_tmrsh on PATH" in job.output
