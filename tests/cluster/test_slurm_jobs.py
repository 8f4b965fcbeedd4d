"""Rendered Slurm scripts, submitted with sbatch to the test cluster: what each rank saw."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import colossalai, jobs
from support.cluster import OLD, Cluster, Job, ended
from support.jobs import ENVIRONMENT, HOSTILE, PROBE, probing
from support.mpich import mpich_bin
from support.require import need_package
from support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("warm_python")

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
PLAIN = "runs"
ODD = 'it\'s a "run" $(touch canary)'

# Name: the options, whether directories may hold any character, whose commands come first on PATH.
LAUNCHES = {
    "srun": (["--launcher", "srun"], True, ""),
    "mpirun": (["--launcher", "mpirun"], True, ""),
    "mpirun-debian": (["--launcher", "mpirun"], True, "debian"),
    "mpirun-scheduler": (["--launcher", "mpirun", "--remote", "scheduler"], True, ""),
    "mpirun-ssh": (["--launcher", "mpirun", "--remote", "ssh"], True, ""),
    "mpirun-ssh-debian": (["--launcher", "mpirun", "--remote", "ssh"], True, "debian"),
    "torchrun": (["--launcher", "torchrun"], True, ""),
    "torchrun-ssh": (["--launcher", "torchrun", "--remote", "ssh"], True, ""),
    "deepspeed": (["--launcher", "deepspeed"], True, ""),
    "deepspeed-pdsh": (["--launcher", "deepspeed", "--remote", "ssh"], False, ""),
    "colossalai": (["--launcher", "colossalai"], True, "colossalai"),
}


def submit(
    cluster: Cluster, directory: Path, script: str, *args: str, env: Mapping[str, str] | None = None
) -> Job:
    return cluster.wait(cluster.sbatch(script, directory, *args, env=env))


def path_with(first: str, cluster: Cluster, place: Path) -> str:
    """PATH with these commands before those of the cluster."""
    if first == "debian":
        return jobs.debian_path(place / "bin")
    path = cluster.env["PATH"]
    return f"{colossalai.path()}:{path}" if first == "colossalai" else path


@pytest.mark.parametrize("name", LAUNCHES)
def test_every_rank_knows_its_place_and_gets_all_that_was_given(
    each_slurm: Cluster, tmp_path: Path, name: str
) -> None:
    options, any_directory, first = LAUNCHES[name]
    workdir = tmp_path / (ODD if any_directory else "work")
    runs = workdir / (ODD if any_directory else "runs")
    runs.mkdir(parents=True)
    carried = {
        "PYTHONPATH": f"/a b/$(touch {jobs.CANARY})/%h",
        "LD_LIBRARY_PATH": f'/"x`touch {jobs.CANARY}`',
    }
    path = path_with(first, each_slurm, tmp_path)
    carried["PATH"] = f"{path}:/a b/$(touch {jobs.CANARY})/%h"
    script = jobs.render(
        *("slurm", *TWO_BY_TWO, *options, "--workdir", workdir, "--runs-dir", runs.name),
        *(*probing(tmp_path), *jobs.env_options(ENVIRONMENT)),
        program=[PROBE, *HOSTILE],
    )
    job = submit(each_slurm, tmp_path, script, env=carried)
    assert job.ok, job.output
    assert "--cpus-per-task" not in job.output
    directory = jobs.run_dir(runs)
    hosts = jobs.hosts_in(directory)
    ranks = jobs.ranks_in(tmp_path / "seen")
    assert [slots for _, slots in hosts] == [2, 2]
    jobs.check_world(ranks, [host for host, _ in hosts], 2)
    jobs.check_arrival(ranks, HOSTILE, {**ENVIRONMENT, **carried, "OMP_NUM_THREADS": "3"}, workdir)
    jobs.check_untouched(tmp_path, workdir, runs, each_slurm.home, Path("/"))
    assert str(directory) in job.output
    assert re.search(rf"job {job.id} finished after \d+ s", job.output)


ONE = ("--accelerator", "cpu", "--cpus-per-rank", "3", "--no-preflight")


@pytest.mark.parametrize("options", [TWO_BY_TWO, ONE], ids=str)
def test_accelerate_on_two_nodes_and_with_one_rank(
    slurm_cluster: Cluster, tmp_path: Path, options: tuple[str, ...]
) -> None:
    script = jobs.render(
        *("slurm", *options, "--launcher", "accelerate", "--runs-dir", ODD),
        *(*probing(tmp_path), *jobs.env_options(ENVIRONMENT)),
        program=[PROBE, *HOSTILE],
    )
    job = submit(slurm_cluster, tmp_path, script)
    assert job.ok, job.output
    ranks = jobs.ranks_in(tmp_path / "seen")
    hosts = jobs.hosts_in(jobs.run_dir(tmp_path / ODD))
    assert len(ranks) == sum(slots for _, slots in hosts) == (4 if options is TWO_BY_TWO else 1)
    jobs.check_world(ranks, [host for host, _ in hosts], hosts[0][1])
    jobs.check_arrival(ranks, HOSTILE, {**ENVIRONMENT, "OMP_NUM_THREADS": "3"}, tmp_path)
    assert {rank.env["ACCELERATE_MIXED_PRECISION"] for rank in ranks} == {"no"}
    jobs.check_untouched(tmp_path, slurm_cluster.home)


ENDLESS = "trap '' USR1 TERM; echo $JOBGEN_ATTEMPT >> seen; [[ $JOBGEN_ATTEMPT == 2 ]] || while true; do sleep 1; done"


def test_a_program_that_hears_nothing_is_ended_at_the_limit_and_put_back(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    script = jobs.render(
        *("slurm", "--accelerator", "cpu", "--launcher", "srun", "--walltime", "1m", "--grace", "45s"),
        *("--requeue", "3", "--requeue-on", "limit"),
        program=["bash", "-c", ENDLESS],
    )
    job = ended(slurm_cluster, slurm_cluster.sbatch(script, tmp_path))
    assert job.ok, job.output
    assert "the program has not ended: stopping it" in job.output
    assert "not finished: attempt 1 of 4; requeued" in job.output
    assert (tmp_path / "seen").read_text().split() == ["1", "2"]


@pytest.mark.parametrize("launcher", ["srun", "mpirun", "deepspeed"])  # torchrun is among the PBS jobs
def test_as_many_nodes_as_the_submission_says(slurm_cluster: Cluster, tmp_path: Path, launcher: str) -> None:
    script = jobs.render(
        *("slurm", "--nodes", "submitted", "--ranks-per-node", "2", "--accelerator", "cpu"),
        *("--launcher", launcher, "--no-preflight", *probing(tmp_path)),
        program=[PROBE],
    )
    job = submit(slurm_cluster, tmp_path, script, "-N", "3")
    assert job.ok, job.output
    jobs.check_world(jobs.ranks_in(tmp_path / "seen"), slurm_cluster.nodes, 2)


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun"])
def test_a_list_of_hosts_without_a_scheduler(slurm_cluster: Cluster, tmp_path: Path, launcher: str) -> None:
    (tmp_path / "hosts").write_text("node2 slots=2\nnode3 slots=1\n")
    script = jobs.render(
        *("local", "--hostfile", tmp_path / "hosts", "--launcher", launcher, "--runs-dir", ODD),
        *("--no-preflight", *probing(tmp_path), *jobs.env_options(ENVIRONMENT)),
        program=[PROBE, *HOSTILE],
    )
    (tmp_path / "job.sh").write_text(script)
    slurm_cluster.exec("node2", ["bash", "job.sh"], cwd=tmp_path, timeout=300)
    ranks = jobs.ranks_in(tmp_path / "seen")
    assert [rank.host for rank in ranks] == ["node2", "node2", "node3"]
    assert [rank.env["LOCAL_WORLD_SIZE"] for rank in ranks] == ["2", "2", "1"]
    jobs.check_arrival(ranks, HOSTILE, ENVIRONMENT, tmp_path)
    other = slurm_cluster.exec("node1", ["bash", "job.sh"], cwd=tmp_path, check=False)
    assert (other.returncode, "run this script on node2" in other.stderr) == (70, True)


MPICH = {"mpich": [], "mpich-ssh": ["--remote", "ssh"]}


@pytest.mark.parametrize("name", MPICH)
def test_mpich_over_two_nodes(slurm_cluster: Cluster, tmp_path: Path, name: str) -> None:
    mpich = mpich_bin()
    script = jobs.render(
        *("slurm", *TWO_BY_TWO, "--launcher", "mpirun", "--mpi", "mpich", *MPICH[name], "--runs-dir", ODD),
        *(*probing(tmp_path), *jobs.env_options(ENVIRONMENT)),
        program=[PROBE, *HOSTILE],
    )
    job = submit(slurm_cluster, tmp_path, script, env={"PATH": f"{mpich}:{slurm_cluster.env['PATH']}"})
    assert job.ok, job.output
    directory = jobs.run_dir(tmp_path / ODD)
    ranks = jobs.ranks_in(tmp_path / "seen")
    jobs.check_world(ranks, [host for host, _ in jobs.hosts_in(directory)], 2)
    jobs.check_arrival(ranks, HOSTILE, ENVIRONMENT, tmp_path)
    jobs.check_untouched(tmp_path, directory, slurm_cluster.home)
    assert all(shutil.which("python3", path=rank.env["PATH"]) == str(mpich / "python3") for rank in ranks)


@pytest.mark.parametrize("name", ["mpirun", "mpirun-debian", "mpirun-ssh", "mpirun-ssh-debian"])
def test_three_nodes_and_daemons_that_start_daemons(
    slurm_cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """A radix of 1 makes a chain of the daemons, which else only hundreds of nodes would."""
    options, _, first = LAUNCHES[name]
    path = path_with(first, slurm_cluster, tmp_path)
    chain = jobs.env_options({"OMPI_MCA_routed_radix": 1, "PRTE_MCA_routed_radix": 1})
    script = jobs.render(
        *(
            "slurm",
            "--nodes",
            "3",
            "--ranks-per-node",
            "1",
            "--accelerator",
            "cpu",
            "--no-preflight",
            *options,
        ),
        *(*probing(tmp_path), *chain),
        program=[PROBE],
    )
    job = submit(slurm_cluster, tmp_path, script, env={"PATH": path})
    assert job.ok, job.output
    ranks = jobs.ranks_in(tmp_path / "seen")
    jobs.check_world(ranks, slurm_cluster.nodes, 1)
    old = first == "debian" and slurm_cluster.version == OLD  # Debian 13 has Open MPI 5, too
    assert all((rank.env["PMIX_VERSION"] < "5") == old for rank in ranks)


# ------------------------------------------------------------------------------------------------ devices


@pytest.fixture
def devices_0_and_1_of_node1_taken(slurm_cluster: Cluster, tmp_path: Path) -> Iterator[None]:
    blocker = slurm_cluster.sbatch(
        "#!/bin/bash\nsleep 300\n", tmp_path, "--nodelist=node1", "--gpus-per-node=2", "--output=/dev/null"
    )
    state = ["squeue", "--noheader", "--job", blocker, "--format=%T"]
    wait_for(lambda: slurm_cluster.exec("head", state).stdout.strip() == "RUNNING", 60)
    yield
    slurm_cluster.exec("head", ["scancel", blocker])


# The options, then for each rank the node and which of the two devices that the job has there it must see.
BOTH = ["node1 0,1", "node1 0,1", "node2 0,1", "node2 0,1"]
DEEPSPEED = ("--launcher", "deepspeed")
DEVICES: dict[str, tuple[list[str], list[str]]] = {
    "srun": (["--launcher", "srun"], BOTH),
    "mpirun": (["--launcher", "mpirun"], BOTH),
    "torchrun": (["--launcher", "torchrun"], BOTH),
    "pdsh, exclude": (
        [*DEEPSPEED, "--remote", "ssh", "--exclude", "node1:0"],
        ["node1 1", "node2 0,1", "node2 0,1"],
    ),
    "exclude": ([*DEEPSPEED, "--exclude", "node1:0@node2:1"], ["node1 1", "node2 0"]),
    "exclude a host": ([*DEEPSPEED, "--exclude", "node1"], ["node2 0,1", "node2 0,1"]),
    "include in another order": ([*DEEPSPEED, "--include", "node2:1@node1:0"], ["node1 0", "node2 1"]),
}


def devices_given(cluster: Cluster, text: str) -> dict[str, list[str]]:
    """The devices of a job by node, as scontrol shows it while it runs: other jobs may have the first ones."""
    found = {}
    for nodes, indices in re.findall(r"Nodes=(\S+) .*GRES=gpu:2\(IDX:([\d,-]+)\)", text):
        spans = [part.partition("-") for part in indices.split(",")]
        devices = [str(one) for a, _, b in spans for one in range(int(a), int(b or a) + 1)]
        for node in cluster.exec("head", ["scontrol", "show", "hostnames", nodes]).stdout.split():
            found[node] = devices
    return found


@pytest.mark.usefixtures("devices_0_and_1_of_node1_taken")
@pytest.mark.parametrize("name", DEVICES)
def test_ranks_see_the_devices_that_the_job_was_given(
    slurm_cluster: Cluster, tmp_path: Path, name: str
) -> None:
    options, expected = DEVICES[name]
    script = jobs.render(
        *(
            "slurm",
            "--nodes",
            "2",
            "--gpus-per-node",
            "2",
            "--no-preflight",
            "--cpus-per-rank",
            "1",
            *options,
        ),
        *("--directive", "--nodelist=node1,node2", *probing(tmp_path)),
        *("--before", f'scontrol --details show job "$SLURM_JOB_ID" > {tmp_path}/given'),
        program=[PROBE],
    )
    job = submit(slurm_cluster, tmp_path, script)
    assert job.ok, job.output
    ranks = jobs.ranks_in(tmp_path / "seen")
    seen = [rank.env["CUDA_VISIBLE_DEVICES"] for rank in ranks]
    given = devices_given(slurm_cluster, (tmp_path / "given").read_text())
    assert given["node1"] != ["0", "1"]  # a number alone would do there
    places = [place.split() for place in expected]
    assert seen == [",".join(given[node][int(at)] for at in which.split(",")) for node, which in places]
    assert {rank.number("WORLD_SIZE") for rank in ranks} == {len(seen)}
    assert {rank.number("JOBGEN_WORLD_SIZE") for rank in ranks} == {len(seen)}
    assert {rank.env["MASTER_ADDR"] for rank in ranks} == {ranks[0].host}
    assert f"{len(seen)} rank{'s' * (len(seen) > 1)} in all" in job.output


def test_pdsh_reaches_the_one_host_that_is_left(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = jobs.render(
        *("slurm", *TWO_BY_TWO, *DEEPSPEED, "--remote", "ssh", "--directive", "--nodelist=node1,node2"),
        *("--include", "node2", *probing(tmp_path)),
        program=[PROBE],
    )
    job = submit(slurm_cluster, tmp_path, script)
    assert job.ok, job.output
    jobs.check_world(jobs.ranks_in(tmp_path / "seen"), ["node2"], 2)


def test_the_end_says_where_the_output_really_is(slurm_cluster: Cluster, tmp_path: Path) -> None:
    place = tmp_path / "a b"
    place.mkdir()
    script = jobs.render("slurm", "--launcher", "srun", program=["true"])
    job = submit(slurm_cluster, tmp_path, script, f"--output={place}/%x %j.txt")
    assert job.ok, job.output
    assert f"output in {job.output_path}; files in {tmp_path}/runs/jobgen-{job.id}\n" in job.output


def test_npus_are_asked_for_and_cann_is_set_up(slurm_cluster: Cluster, tmp_path: Path) -> None:
    cann = tmp_path / "Ascend" / "ascend-toolkit"
    cann.mkdir(parents=True)
    (cann / "set_env.sh").write_text(
        'export CANN_SEEN="yes$CANN_NOT_SET" LD_LIBRARY_PATH=/cann:$LD_LIBRARY_PATH\n'
    )
    script = jobs.render(
        *(
            "slurm",
            "--nodes",
            "2",
            "--gpus-per-node",
            "8",
            "--no-preflight",
            "--accelerator",
            "npu",
            "--cpus-per-rank",
            "1",
        ),
        *("--launcher", "srun", *probing(tmp_path), "--env", f"ASCEND_HOME_PATH={cann}"),
        program=[PROBE],
    )
    assert "#SBATCH --gres=npu:8\n" in script
    job = submit(slurm_cluster, tmp_path, script, env={"RANK_TABLE_FILE": "/x"})
    assert job.ok, job.output
    ranks = jobs.ranks_in(tmp_path / "seen")
    jobs.check_world(ranks, [host for host, _ in jobs.hosts_in(jobs.run_dir(tmp_path / PLAIN))], 8)
    for rank in ranks:
        assert rank.env["CANN_SEEN"] == "yes"
        assert "/cann" in rank.env["LD_LIBRARY_PATH"].split(":")
        assert "RANK_TABLE_FILE" not in rank.env
        assert 10000 <= rank.number("HCCL_IF_BASE_PORT") < 20000 - 32


# ---------------------------------------------------------------------------------------------- what ends badly


@pytest.mark.parametrize(
    ("options", "edit", "hosts"), [(["--nodes=3"], None, 3), ([], ("--nodes=2", "--nodes=1"), 1)]
)
def test_another_number_of_hosts_than_asked_for(
    slurm_cluster: Cluster, tmp_path: Path, options: Sequence[str], edit: tuple[str, str] | None, hosts: int
) -> None:
    script = jobs.render("slurm", *TWO_BY_TWO, "--launcher", "mpirun", *probing(tmp_path), program=[PROBE])
    if edit:
        assert edit[0] in script
        script = script.replace(f"#SBATCH {edit[0]}\n", f"#SBATCH {edit[1]}\n")
    job = submit(slurm_cluster, tmp_path, script, *options)
    assert job.exit_code == 70
    assert re.search(rf"the allocation has {hosts} hosts \([^)]+\), but 2 were requested", job.output)
    assert not jobs.ranks_in(tmp_path / "seen")


# What a rank does, and the status of the job, which is that rank's, whatever the launcher makes of it; None:
# the launcher's, because the rank left none. The matrix in CI has others, none over ssh.
ENDS = [
    ("srun", "exit:3:7", 7),
    ("mpirun", "exit:3:7", 7),
    ("mpirun-ssh", "exit:3:7", 7),
    ("torchrun-ssh", "exit:3:7", 7),
    ("srun", "kill:3", 137),
    ("mpirun-debian", "kill:3", 137),
    ("torchrun", "kill:3", 137),
    ("deepspeed-pdsh", "kill:3", 137),
    ("deepspeed", "parent:3", None),
]


@pytest.mark.parametrize(("name", "act", "status"), ENDS)
def test_a_rank_that_fails_makes_the_job_fail(
    slurm_cluster: Cluster, tmp_path: Path, name: str, act: str, status: int | None
) -> None:
    options, _, first = LAUNCHES[name]
    path = path_with(first, slurm_cluster, tmp_path)
    script = jobs.render("slurm", *TWO_BY_TWO, *options, *probing(tmp_path, act), program=[PROBE])
    job = submit(slurm_cluster, tmp_path, script, env={"PATH": path})
    assert job.state == "FAILED", job.output
    assert job.exit_code == (status or job.exit_code) != 0, job.output
    assert f"failed with status {job.exit_code} after" in job.output


# ------------------------------------------------------------------------------------------ jobs side by side


def test_two_jobs_on_one_node_meet_in_nothing(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """They run at the same time, from one directory; and on the port of the second somebody listens."""
    script = jobs.render(
        *(
            "slurm",
            "--ranks-per-node",
            "2",
            "--accelerator",
            "cpu",
            "--cpus-per-rank",
            "1",
            "--no-preflight",
            "--launcher",
            "mpirun",
        ),
        *("--directive", "--nodelist=node2", *probing(tmp_path, "meet:4")),
        program=[PROBE],
    )
    first = slurm_cluster.sbatch(script, tmp_path)
    second = slurm_cluster.sbatch(script, tmp_path, "--hold")
    taken = 20000 + int(second)
    listen = "import socket as s, time; x = s.create_server(('', int({}))); open({!r}, 'w'); time.sleep(300)"
    ready = tmp_path / "listening"
    with ThreadPoolExecutor() as pool:
        program = ["timeout", "300", sys.executable, "-c", listen.format(taken, str(ready))]
        pool.submit(slurm_cluster.exec, "node2", program, check=False, timeout=330)
        wait_for(ready.exists, 60)
        slurm_cluster.exec("head", ["scontrol", "release", second])
        both = [slurm_cluster.wait(job) for job in (first, second)]
        slurm_cluster.exec("node2", ["fuser", "-k", f"{taken}/tcp"], check=False)
    assert all(job.ok for job in both), both
    ranks = jobs.ranks_in(tmp_path / "seen")
    assert len(ranks) == 4
    of_job = {rank.env["JOBGEN_JOB_ID"]: rank for rank in ranks}
    assert of_job[first].env["JOBGEN_RUN_DIR"] != of_job[second].env["JOBGEN_RUN_DIR"]
    assert of_job[first].number("MASTER_PORT") == 20000 + int(first)
    assert of_job[second].number("MASTER_PORT") == 20000 + (taken + 3307) % 10000


@pytest.mark.parametrize("name", ["srun", "mpirun", "mpirun-debian", "torchrun"])
def test_a_job_that_slurm_gives_no_environment(slurm_cluster: Cluster, tmp_path: Path, name: str) -> None:
    """sbatch --export=NONE: the script brings everything itself, and Slurm tells srun not to export."""
    options, _, first = LAUNCHES[name]
    path = path_with(first, slurm_cluster, tmp_path)
    setup = tmp_path / "setup.sh"
    setup.write_text(f"export PATH={path} LD_LIBRARY_PATH=/x\n")
    script = jobs.render(
        *(
            "slurm",
            *TWO_BY_TWO,
            *options,
            "--source",
            setup,
            *probing(tmp_path),
            *jobs.env_options(ENVIRONMENT),
        ),
        program=[PROBE],
    )
    job = submit(slurm_cluster, tmp_path, script, "--export=NONE")
    assert job.ok, job.output
    hosts = [host for host, _ in jobs.hosts_in(jobs.run_dir(tmp_path / "runs"))]
    ranks = jobs.ranks_in(tmp_path / "seen")
    jobs.check_world(ranks, hosts, 2)
    jobs.check_arrival(ranks, [], {**ENVIRONMENT, "LD_LIBRARY_PATH": "/x"}, tmp_path)


# ---------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("name", ["srun", "mpirun-debian", "deepspeed"])
def test_two_nodes_learn_the_digits(slurm_cluster: Cluster, tmp_path: Path, name: str) -> None:
    need_package("torch", "deepspeed", "mpi4py", "sklearn")
    options, _, first = LAUNCHES[name]
    path = path_with(first, slurm_cluster, tmp_path)
    script = jobs.render(
        *("slurm", "--nodes", "2", "--ranks-per-node", "1", "--accelerator", "cpu", "--cpus-per-rank", "1"),
        *("--no-preflight", *options),
        program=["--task", "digits", "--epochs", "4"],
    )
    job = submit(slurm_cluster, tmp_path, script, env={"PATH": path})
    assert job.ok, job.output
    directory = jobs.run_dir(tmp_path / "runs")
    status = jobs.status_of(directory)
    assert (status["state"], status["world_size"]) == ("finished", 2)
    assert status["accuracy"] >= 0.93
    assert "on 2 host(s)" in job.output
