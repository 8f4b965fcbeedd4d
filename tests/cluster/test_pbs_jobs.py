"""Rendered PBS scripts on a real OpenPBS and a real Torque, whose nodes no ssh connects: what each rank saw.

What only a node file or an ssh can show is done on the nodes of the Slurm cluster, with a node file of our own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import jobs
from support.cluster import Cluster
from support.jobs import ENVIRONMENT, HOSTILE, PROBE
from support.pbs import PbsCluster
from support.story import path_for
from support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("warm_python")

# The preflight has tests of its own, and takes seconds.
CPU = ("--accelerator", "cpu", "--no-preflight")
TWO_BY_TWO = ("--nodes", "2", "--ranks-per-node", "2", *CPU, "--cpus-per-rank", "3")
ODD = 'it\'s a "run" $(touch canary)'

LAUNCHES = {
    "mpirun4": ["--launcher", "mpirun"],
    "mpirun5": ["--launcher", "mpirun"],
    "mpich": ["--launcher", "mpirun", "--mpi", "mpich"],
    "torchrun": ["--launcher", "torchrun"],
    "deepspeed": ["--launcher", "deepspeed"],
}


@pytest.fixture(params=["openpbs", "torque"])
def cluster(request: pytest.FixtureRequest) -> PbsCluster:
    found: PbsCluster = request.getfixturevalue(f"{request.param}_cluster")
    return found


def probing(folder: Path) -> list[str]:
    """Options that tell the probe where to write, which is ``folder``/seen."""
    (folder / "seen").mkdir(exist_ok=True)
    (folder / "seen").chmod(0o777)
    return jobs.env_options({"PROBE_DIR": folder / "seen"})


def path_file(folder: Path, launch: str, **more: str) -> list[str]:
    """An option that sets PATH, which decides whose mpirun it is, and other variables."""
    lines = [f"export PATH={shlex.quote(path_for(launch, folder))}:$PATH"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in more.items()]
    (folder / "path.sh").write_text("\n".join(lines) + "\n")
    return ["--source", str(folder / "path.sh")]


@pytest.mark.parametrize("launch", LAUNCHES)
def test_every_rank_knows_its_place_and_gets_all_that_was_given(cluster: PbsCluster, launch: str) -> None:
    folder = cluster.folder(launch)
    runs = folder / ODD
    carried = {
        "PYTHONPATH": f"/a b/$(touch {jobs.CANARY})/%h",
        "LD_LIBRARY_PATH": f'/"x`touch {jobs.CANARY}`',
    }
    script = jobs.render(
        *(*cluster.words, *TWO_BY_TWO, *LAUNCHES[launch], "--runs-dir", runs.name),
        *(*path_file(folder, launch, **carried), *probing(folder), *jobs.env_options(ENVIRONMENT)),
        program=[PROBE, *HOSTILE],
    )
    job = cluster.wait(cluster.submit(script, folder))
    assert job.ok, job.output
    directory = jobs.run_dir(runs)
    hosts = jobs.hosts_in(directory)
    ranks = jobs.ranks_in(folder / "seen")
    assert [slots for _, slots in hosts] == [2, 2]
    jobs.check_world(ranks, [host for host, _ in hosts], 2)
    jobs.check_arrival(ranks, HOSTILE, {**ENVIRONMENT, **carried, "OMP_NUM_THREADS": "3"}, folder)
    jobs.check_untouched(folder, runs, directory, cluster.home, Path("/"))
    assert f"files in {directory}" in job.output
    assert re.search(rf"job {job.id} finished after \d+ s", job.output)


def test_as_many_nodes_as_the_submission_says(cluster: PbsCluster) -> None:
    folder = cluster.folder("submitted")
    launch = {"openpbs": "torchrun", "torque": "mpirun5"}[cluster.name]
    script = jobs.render(
        *(*cluster.words, "--nodes", "submitted", "--ranks-per-node", "2", *CPU, *LAUNCHES[launch]),
        *(*path_file(folder, launch), *probing(folder)),
        program=[PROBE],
    )
    [told] = re.findall(r"^# Submit it with: qsub (.*) FILE$", script, re.MULTILINE)
    job = cluster.wait(cluster.submit(script, folder, *told.replace("N:", "2:").split()))
    assert job.ok, job.output
    hosts = jobs.hosts_in(jobs.run_dir(folder / "runs"))
    assert [slots for _, slots in hosts] == [2, 2]
    jobs.check_world(jobs.ranks_in(folder / "seen"), [host for host, _ in hosts], 2)


@pytest.mark.parametrize("odd", ['it\'s \\ "a, b"', "a, b; $(c)"])
def test_the_next_attempt_gets_the_values_of_the_first(cluster: PbsCluster, odd: str) -> None:
    folder = cluster.folder("values")
    program = 'printf "%s\\n" "$ODD" >> seen; (($(wc -l < seen) > 1)) || exit 75'
    script = jobs.render(
        *(*cluster.words, "--nodes", "1", *CPU, "--launcher", "mpirun", "--requeue", "1"),
        *path_file(folder, "mpirun5"),
        program=["bash", "-c", program],
    )
    first = cluster.submit(script, folder, "-V", env={"ODD": odd})
    if ",ODD=" not in cluster.facts(first)["Variable_List"]:
        pytest.skip(
            "qsub -V of OpenPBS 23.06.06 passes no variables: https://github.com/openpbs/openpbs/pull/2602"
        )
    job = cluster.wait(first)
    assert "attempt 1 of 2; the next one is" in job.output, job.output
    wait_for(lambda: (folder / "seen").read_text() == f"{odd}\n{odd}\n")


def test_the_memory_of_a_node_limits_no_process_to_less(cluster: PbsCluster) -> None:
    """Torque's pmem would be the limit of each process, which may use the memory of all cores of its rank."""
    folder = cluster.folder("memory")
    script = jobs.render(
        *(
            *cluster.words,
            *TWO_BY_TWO,
            "--mem",
            "300M",
            "--launcher",
            "mpirun",
            *path_file(folder, "mpirun5"),
        ),
        program=["bash", "-c", "ulimit -d >> limits"],
    )
    job = cluster.wait(cluster.submit(script, folder))
    assert job.ok, job.output
    limits = (folder / "limits").read_text().split()
    assert len(limits) == 4
    assert all(one == "unlimited" or int(one) >= 300 * 1024 for one in limits), limits


def test_a_request_of_ones_own_is_the_only_one(cluster: PbsCluster) -> None:
    folder = cluster.folder("own")
    own = {"openpbs": "-l select=2:ncpus=2:mpiprocs=2", "torque": "-l nodes=2:ppn=4"}[cluster.name]
    script = jobs.render(
        *(*cluster.words, f"--directive={own}", *CPU, "--launcher", "mpirun"),
        *(*path_file(folder, "mpirun5"), *probing(folder)),
        program=[PROBE],
    )
    job = cluster.wait(cluster.submit(script, folder))
    assert job.ok, job.output
    hosts = jobs.hosts_in(jobs.run_dir(folder / "runs"))
    each = {"openpbs": 2, "torque": 4}[cluster.name]
    assert [slots for _, slots in hosts] == [each, each]
    jobs.check_world(jobs.ranks_in(folder / "seen"), [host for host, _ in hosts], each)


@pytest.mark.parametrize("launch", ["mpirun4", "mpirun5", "mpich"])
def test_three_nodes_though_no_node_but_the_first_may_start_others(
    openpbs_cluster: PbsCluster, launch: str
) -> None:
    """A radix of 1 would make a chain of the daemons, as some hundreds of nodes do without it."""
    folder = openpbs_cluster.folder(launch)
    chain = jobs.env_options(
        {"OMPI_MCA_routed_radix": 1, "PRTE_MCA_routed_radix": 1, "PRTE_MCA_prte_routed_radix": 1}
    )
    script = jobs.render(
        *(*openpbs_cluster.words, "--nodes", "3", "--ranks-per-node", "1", *CPU, *LAUNCHES[launch]),
        *(*path_file(folder, launch), *probing(folder), *chain),
        program=[PROBE],
    )
    job = openpbs_cluster.wait(openpbs_cluster.submit(script, folder))
    assert job.ok, job.output
    hosts = [host for host, _ in jobs.hosts_in(jobs.run_dir(folder / "runs"))]
    assert set(hosts) == set(openpbs_cluster.nodes)
    jobs.check_world(jobs.ranks_in(folder / "seen"), hosts, 1)


# ------------------------------------------------------------------------------------- nodes that differ

MIXED = ("--nodes", "1x4+2x2", "--accelerator", "cpu", "--cpus-per-rank", "1")
# Torque may put two parts of a request on one node: here no other part fits beside the first one.
SHARES = {
    "openpbs": (MIXED, [2, 2, 4]),
    "torque": (("--nodes", "1x4+1x2", "--accelerator", "cpu", "--cpus-per-rank", "2"), [2, 4]),
}


@pytest.mark.parametrize(
    ("name", "launch"),
    [
        ("openpbs", "mpirun4"),
        ("openpbs", "mpich"),
        ("openpbs", "deepspeed"),
        ("torque", "mpirun4"),
        ("torque", "mpirun5"),
        ("torque", "torchrun"),
    ],
)
def test_nodes_that_differ_have_the_ranks_that_were_asked_for(
    request: pytest.FixtureRequest, name: str, launch: str
) -> None:
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    folder = cluster.folder(launch)
    mixed, shares = SHARES[cluster.name]
    script = jobs.render(
        *(*cluster.words, *mixed, "--no-preflight", *LAUNCHES[launch]),
        *(*path_file(folder, launch), *probing(folder)),
        program=[PROBE],
    )
    job = cluster.wait(cluster.submit(script, folder))
    assert job.ok, job.output
    each = jobs.hosts_in(jobs.run_dir(folder / "runs"))
    assert sorted(count for _, count in each) == shares
    ranks = jobs.ranks_in(folder / "seen")
    seen = [(rank.host, rank.number("LOCAL_RANK"), rank.number("LOCAL_WORLD_SIZE")) for rank in ranks]
    assert seen == [(host, local, count) for host, count in each for local in range(count)]
    assert [rank.number("RANK") for rank in ranks] == list(range(sum(shares)))
    assert {rank.number("WORLD_SIZE") for rank in ranks} == {sum(shares)}


COMPONENTS = """
[resources]
cpus_per_rank = 1
[[component]]
ranks_per_node = {}
gpus_per_node = 0
{}
[[component]]
nodes = {}
gpus_per_node = 2
"""
# Cores of the first component, and the shares; on Torque both do not fit on one node.
PARTS = {"openpbs": ((1, "cpus_per_rank = 4", 2), [1, 2, 2]), "torque": ((7, "", 1), [2, 7])}


@pytest.mark.parametrize("name", PARTS)
def test_components_are_chunks(request: pytest.FixtureRequest, name: str) -> None:
    """Each with its cores and devices. Torque lists them in any order, mostly the last one first."""
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    folder = cluster.folder("components")
    numbers, shares = PARTS[name]
    (folder / "job.toml").write_text(COMPONENTS.format(*numbers))
    script = jobs.render(
        *(*cluster.words, "--job", folder / "job.toml", *LAUNCHES["mpirun4"]),
        *(*path_file(folder, "mpirun4"), *probing(folder)),
        program=[PROBE],
    )
    job = cluster.wait(cluster.submit(script, folder))
    assert job.ok, job.output
    slots = [number for _, number in jobs.hosts_in(jobs.run_dir(folder / "runs"))]
    assert slots == shares or (name == "torque" and sorted(slots) == shares)
    ranks = jobs.ranks_in(folder / "seen")
    seen = [(rank.number("LOCAL_RANK"), rank.number("LOCAL_WORLD_SIZE")) for rank in ranks]
    assert seen == [(local, share) for share in slots for local in range(share)]
    threads = [4, 1, 1, 1, 1] if name == "openpbs" else [1] * 9
    assert [rank.number("OMP_NUM_THREADS") for rank in ranks] == threads


def test_a_training_on_nodes_that_differ(openpbs_cluster: PbsCluster) -> None:
    """With the preflight, and each rank on its share of its node."""
    folder = openpbs_cluster.folder("training")
    script = jobs.render(
        *(
            *openpbs_cluster.words,
            "--nodes",
            "1x2+1x1",
            *MIXED[2:],
            "--launcher",
            "mpirun",
            "--cpu-bind",
            "numa",
        ),
        *path_file(folder, "mpirun5"),
        program=["--task", "digits", "--epochs", "1"],
    )
    script = jobs.with_preflight_limit(script, 110)  # ranks that import torch on a busy machine
    job = openpbs_cluster.wait(openpbs_cluster.submit(script, folder))
    assert job.ok, job.output
    assert jobs.status_of(jobs.run_dir(folder / "runs"))["state"] == "finished"


# ------------------------------------------------------------------------------------------ the node file
# These run the script on a node as PBS would, with a node file of our own; the other nodes are reached by ssh.


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
    slurm_cluster: Cluster, tmp_path: Path, hosts: Sequence[str]
) -> None:
    script = jobs.render("pbs", *TWO_BY_TWO, "--launcher", "mpirun", *probing(tmp_path), program=[PROBE])
    status, output = run_with_node_file(slurm_cluster, tmp_path, script, hosts)
    assert status == 0, output
    jobs.check_world(jobs.ranks_in(tmp_path / "seen"), ["node1", "node2"], 2)


@pytest.mark.parametrize(("hosts", "count"), [(["node1"] * 4, 1), (["node1", "node2", "node3"], 3), ([], 0)])
def test_a_node_file_with_another_number_of_hosts(
    slurm_cluster: Cluster, tmp_path: Path, hosts: Sequence[str], count: int
) -> None:
    script = jobs.render("pbs", *TWO_BY_TWO, "--launcher", "mpirun", *probing(tmp_path), program=[PROBE])
    status, output = run_with_node_file(slurm_cluster, tmp_path, script, hosts)
    assert status == 70
    assert re.search(rf"the allocation has {count} hosts \(.*\), but 2 were requested", output)
    assert not jobs.ranks_in(tmp_path / "seen")


LISTED = ("node1", "node2", "node2", "node3", "node1", "node3", "node2", "node2")


@pytest.mark.parametrize(
    ("hosts", "got"),
    [(["node1", "node2", "node3"] * 2, "3x2"), (LISTED[:-1], "2x2+1x3"), (LISTED[:2], "2x1")],
)
def test_nodes_that_differ_otherwise(
    slurm_cluster: Cluster, tmp_path: Path, hosts: Sequence[str], got: str
) -> None:
    script = jobs.render("pbs", *MIXED, "--launcher", "mpirun", *probing(tmp_path), program=[PROBE])
    status, output = run_with_node_file(slurm_cluster, tmp_path, script, hosts)
    assert status == 70
    assert f"the allocation is {got} (nodes x ranks: node1 " in output
    assert "but 2x2+1x4 was requested" in output
    assert not jobs.ranks_in(tmp_path / "seen")


SSH = {
    "mpirun": ["--launcher", "mpirun"],
    "mpirun-debian": ["--launcher", "mpirun", "--remote", "ssh"],
    "mpich": ["--launcher", "mpirun", "--mpi", "mpich"],
    "torchrun": ["--launcher", "torchrun"],
    "deepspeed": ["--launcher", "deepspeed", "--remote", "ssh"],  # by pdsh
}


@pytest.mark.parametrize("launch", SSH)
def test_ssh_is_the_way_where_pbs_has_none(slurm_cluster: Cluster, tmp_path: Path, launch: str) -> None:
    """And the order of the hosts is that of the node file, also where they differ."""
    script = jobs.render(
        *("pbs", *MIXED, "--no-preflight", *SSH[launch], *probing(tmp_path)),
        *("--source", _path_file(slurm_cluster, tmp_path, launch)),
        program=[PROBE],
    )
    status, output = run_with_node_file(slurm_cluster, tmp_path, script, LISTED)
    assert status == 0, output
    ranks = jobs.ranks_in(tmp_path / "seen")
    assert [rank.host for rank in ranks] == ["node1"] * 2 + ["node2"] * 4 + ["node3"] * 2


def _path_file(cluster: Cluster, directory: Path, launch: str) -> Path:
    (directory / "path.sh").write_text(f"export PATH={jobs.path_of(cluster, directory, launch)}\n")
    return directory / "path.sh"


@pytest.mark.parametrize("launcher", ["mpirun", "torchrun"])
def test_the_scheduler_s_way_is_missing(slurm_cluster: Cluster, tmp_path: Path, launcher: str) -> None:
    script = jobs.render(
        *("pbs", *TWO_BY_TWO, "--launcher", launcher, "--remote", "scheduler", *probing(tmp_path)),
        program=[PROBE],
    )
    status, output = run_with_node_file(slurm_cluster, tmp_path, script, ["node1", "node2"])
    assert status == 71
    assert "cannot find pbs_tmrsh on PATH" in output


def test_the_rendezvous_is_at_an_interface_of_the_first_host_that_takes_part(cluster: PbsCluster) -> None:
    """On OpenPBS it is not the host of the script. The job has all nodes: which of them two would be, depends on other jobs."""
    folder = cluster.folder("address")
    options = [*path_file(folder, "deepspeed"), "--launcher", "deepspeed", "--exclude", cluster.nodes[0]]
    options += ["--master-addr", "interface:eth0"]
    program = ["bash", "-c", "echo rendezvous of $RANK at $MASTER_ADDR on $(hostname)"]
    script = jobs.render(*cluster.words, *TWO_BY_TWO, "--nodes", "3", *options, program=program)
    done = cluster.wait(cluster.submit(script, folder))
    assert done.ok, done.output
    found = re.findall(r"^rendezvous of (\d) at ([\d.]+) on (\S+)$", done.output, re.M)
    allocated = [host for host, _ in jobs.hosts_in(jobs.run_dir(folder / "runs"))]
    hosts = [host for host in allocated if host != cluster.nodes[0]]
    own = cluster.exec(hosts[0], ["hostname", "-I"]).stdout.split()
    assert sorted(found) == [(str(rank), own[0], hosts[rank // 2]) for rank in range(4)]
