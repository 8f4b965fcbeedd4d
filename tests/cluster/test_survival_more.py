"""Preflight by every launcher, hosts that are bad in earnest, hangs, full disks and arrays, on the real cluster.
Each time what the user sees."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import jobs, warm_python
from support.cluster import Cluster, Job, ended, shared_cluster
from support.jobs import PROBE
from support.pbs import PbsCluster
from support.require import need_cluster, need_package
from support.waiting import wait_for

from jobgen.runs import node_files

pytestmark = [
    pytest.mark.xdist_group("survival-more"),
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("warm_python"),
]

SUPPORT = Path(PROBE).parent
ON_CPUS = ("--accelerator", "cpu", "--cpus-per-rank", "1")
TWO_BY_TWO = ("--nodes", "2", "--ranks-per-node", "2", *ON_CPUS)
TWO = ("--nodes", "2", "--ranks-per-node", "1", *ON_CPUS)
DIGITS = ("--task", "digits", "--engine", "ddp", "--max-steps", "1")

LAUNCHES = {
    "srun": ["--launcher", "srun"],
    "mpirun": ["--launcher", "mpirun"],
    "mpirun-debian": ["--launcher", "mpirun"],
    "torchrun": ["--launcher", "torchrun"],
    "deepspeed": ["--launcher", "deepspeed"],
    "deepspeed-pdsh": ["--launcher", "deepspeed", "--remote", "ssh"],
}


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    need_package("torch", "deepspeed", "mpi4py", "sklearn")


@pytest.fixture(scope="module")
def disk(session_dir: Path) -> Iterator[Path]:
    """A small file system. Its hosts begin with the mounts that there are: it comes before the cluster."""
    need_cluster()
    place = session_dir / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture(scope="module")
def slurm_cluster(session_dir: Path, disk: Path) -> Iterator[Cluster]:
    """Slurm of these tests alone: they break its nodes."""
    with shared_cluster(session_dir / "cluster-broken") as cluster:
        yield cluster


def result_of(directory: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((directory / "preflight" / "result.json").read_text())
    return found


# --------------------------------------------------------------------------------------- preflight that passes


def check_passed(job: Job, runs: Path, ranks: tuple[str, str] = ("0", "1")) -> None:
    """The table is in the log, a line a host, and then the program ran."""
    assert job.ok, job.output
    directory = jobs.run_dir(runs)
    world = sum(slots for _, slots in jobs.hosts_in(directory))
    table, verdict, _ = job.output.partition(f"preflight passed: 2 host(s), {world} rank(s), in ")
    assert verdict, job.output
    for (host, _), numbers in zip(jobs.hosts_in(directory), ranks, strict=True):
        [line] = [
            line for line in table.splitlines() if re.match(rf"(\w+: )?{host}\s+{numbers}\s+cpu\s", line)
        ]
        assert line.rstrip().endswith("ok")
        assert "GB/s (bus" in line
    assert job.output.index("preflight passed") < job.output.index(f"{world} ranks in all")
    assert [rank.status for rank in node_files.ranks(directory / "attempt-1")] == [0] * world
    assert result_of(directory)["state"] == "passed"
    assert not (directory / "bad-hosts").exists()


@pytest.mark.parametrize("name", LAUNCHES)
def test_preflight_by_every_launcher_and_then_the_program(
    slurm_cluster: Cluster, tmp_path: Path, name: str
) -> None:
    four = name == "mpirun"
    script = jobs.render(
        "slurm", *(TWO_BY_TWO if four else TWO), "--preflight", *LAUNCHES[name], program=["true"]
    )
    script = jobs.with_preflight_limit(script, 110)
    env = {"PATH": jobs.path_of(slurm_cluster, tmp_path, name)}
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path, env=env))
    check_passed(job, tmp_path / "runs", ("0-1", "2-3") if four else ("0", "1"))


@pytest.mark.xdist_group("survival-pbs")  # beside those on Slurm
@pytest.mark.parametrize(("name", "launcher"), [("openpbs", "torchrun"), ("torque", "mpirun")])
def test_preflight_through_qsub(request: pytest.FixtureRequest, name: str, launcher: str) -> None:
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    folder = cluster.folder("preflight")
    words = (*cluster.words, *TWO, "--preflight", "--launcher", launcher, "--venv", sys.prefix)
    script = jobs.with_preflight_limit(jobs.render(*words, program=["true"]), 110)
    check_passed(cluster.wait(cluster.submit(script, folder)), folder / "runs")


# ---------------------------------------------------------------------------------------- hosts that are bad


# What is done on node2 (with the place of the checkpoints as $0 and that of the runs as $1), and what is said.
FAULTS = {
    "read-only": (
        "mount --bind $0 $0 && mount -o remount,bind,ro $0",
        r"cannot write into \S+: Read-only file system",
    ),
    "checkpoints not shared": ("mount -t tmpfs tmpfs $0", r"it is not shared"),
    "runs not shared": ("mount -t tmpfs tmpfs $1", r"jobgen: node2: .*: No such file or directory"),
    "no torch": (None, r"node2: (torch cannot be imported: .*has no|ModuleNotFoundError: No module named .)"),
}


@contextlib.contextmanager
def broken(cluster: Cluster, host: str, *commands: str) -> Iterator[None]:
    """Run shell commands on a host; what they have mounted there is gone again afterwards."""
    before = cluster.exec(host, ["cat", "/proc/self/mounts"]).stdout.splitlines()
    try:
        for command in commands:
            cluster.exec(host, ["sh", "-c", command])
        yield
    finally:
        now = cluster.exec(host, ["cat", "/proc/self/mounts"]).stdout.splitlines()
        for line in reversed(now[len(before) :]):
            cluster.exec(host, ["umount", "-l", line.split()[1]])


def places(directory: Path) -> tuple[Path, Path]:
    found = directory / "checkpoints", directory / "runs"
    for place in found:
        place.mkdir()
    return found


def read_only(place: Path) -> str:
    """Of a user's own program the preflight writes into the run directory, which is then read-only."""
    return f"mount --bind {place} {place} && mount -o remount,bind,ro {place}"


def fault(name: str, directory: Path) -> tuple[str, str]:
    command, said = FAULTS[name]
    if command is None:
        import torch

        command = f"mount -t tmpfs tmpfs {Path(torch.__file__).parent}"
    checkpoints, runs = places(directory)
    return command.replace("$0", str(checkpoints)).replace("$1", str(runs)), said


ON_THE_BAD_ONE = ("--directive", "--nodelist=node1,node2")


@pytest.mark.parametrize(
    ("name", "launcher"),
    [
        ("read-only", "srun"),
        ("checkpoints not shared", "mpirun"),
        ("runs not shared", "torchrun"),
        ("no torch", "mpirun"),
    ],
)
def test_a_bad_host_is_named(
    slurm_cluster: Cluster, tmp_path: Path, name: str, launcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, said = fault(name, tmp_path)
    if name == "no torch":
        monkeypatch.setattr(warm_python, "FIRST", [])
    program = [*DIGITS, "--checkpoint-dir", tmp_path / "checkpoints"]
    script = jobs.render("slurm", *TWO, *LAUNCHES[launcher], *ON_THE_BAD_ONE, program=program)
    with broken(slurm_cluster, "node2", command):
        job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.exit_code == 74, job.output
    assert re.search(said, job.output), job.output
    bad = "node1 node2" if name == "checkpoints not shared" else "node2"  # of two, either may be the one
    assert re.search(rf"jobgen: the preflight failed with status \d+; bad hosts: {bad}\n", job.output), (
        job.output
    )
    directory = jobs.run_dir(tmp_path / "runs")
    assert not node_files.ranks(directory / "attempt-1")  # nothing of the training has begun
    assert not list((directory / "attempt-1").glob("nodes/*/*.log"))


def test_with_a_spare_host_the_job_goes_on_without_the_bad_one(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    """node2 is left out of two hosts that are needed and a spare one; the training is node1's and node3's."""
    command, _ = fault("checkpoints not shared", tmp_path)
    program = [*DIGITS, "--checkpoint-dir", tmp_path / "checkpoints"]
    script = jobs.render("slurm", *TWO, "--launcher", "srun", "--spare-nodes", "1", program=program)
    with broken(slurm_cluster, "node2", command):
        job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.ok, job.output
    assert "jobgen: excluding node2: the preflight failed there\n" in job.output
    assert "by srun on CPUs: node1 node3; rendezvous at node1:" in job.output
    directory = jobs.run_dir(tmp_path / "runs")
    [line] = (directory / "bad-hosts").read_text().splitlines()
    assert line.startswith("node2\tnode1, node3 and it do not see each other's files")
    assert jobs.hosts_in(directory) == [("node1", 1), ("node3", 1)]
    assert jobs.status_of(directory)["world_size"] == 2


def test_too_many_bad_hosts_for_the_spare_ones(slurm_cluster: Cluster, tmp_path: Path) -> None:
    command, _ = fault("read-only", tmp_path)
    program = [*DIGITS, "--checkpoint-dir", tmp_path / "checkpoints"]
    script = jobs.render("slurm", *TWO, "--launcher", "mpirun", "--spare-nodes", "1", program=program)
    with broken(slurm_cluster, "node2", command), broken(slurm_cluster, "node3", command):
        job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.exit_code == 74, job.output
    assert "excluding node2 node3: the preflight failed there" in job.output
    assert "only 1 hosts are left, but 2 are needed" in job.output


@pytest.mark.parametrize("launcher", ["torchrun", "mpirun"])
def test_launchers_go_on_without_the_bad_host(slurm_cluster: Cluster, tmp_path: Path, launcher: str) -> None:
    """The first host, where the script runs, is a good one; the bad one is in the middle."""
    _, runs = places(tmp_path)
    script = jobs.render("slurm", *TWO, *LAUNCHES[launcher], "--spare-nodes", "1", program=["hostname"])
    with broken(slurm_cluster, "node2", read_only(runs)):
        job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.ok, job.output
    directory = jobs.run_dir(runs)
    assert jobs.hosts_in(directory) == [("node1", 1), ("node3", 1)]
    assert [jobs.written_by(directory / "attempt-1", rank) for rank in (0, 1)] == [b"node1\n", b"node3\n"]


def test_a_port_that_is_blocked(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """node2's packets to the rendezvous at node1 are dropped; everything else gets there."""
    script = jobs.render("slurm", *TWO, "--launcher", "srun", *ON_THE_BAD_ONE, program=DIGITS)
    script = jobs.with_preflight_limit(script, 30)  # 8 s were too short to import torch on a busy machine
    submitted = slurm_cluster.sbatch(script, tmp_path, "--hold")
    rule = f"to 10.213.77.11 ipproto tcp dport {20000 + int(submitted)} prohibit".split()
    slurm_cluster.exec("node2", ["ip", "rule", "add", *rule])
    try:
        slurm_cluster.exec("head", ["scontrol", "release", submitted])
        job = slurm_cluster.wait(submitted)
    finally:
        slurm_cluster.exec("node2", ["ip", "rule", "del", *rule])
    assert job.exit_code == 74, job.output
    assert re.search(r"node1: no other host can reach rank 0 at node1:\d+", job.output), job.output
    assert re.search(r"node2: .*rank 1 cannot reach rank 0 at node1:\d+", job.output), job.output


def test_a_requeued_job_is_given_other_hosts_than_the_bad_one(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """One host and a spare one; what the first attempt found bad, Slurm leaves out of the second."""
    own = tmp_path / "own.py"
    own.write_text(
        "import os, sys\nprint('attempt', os.environ['JOBGEN_ATTEMPT'], 'on', os.uname().nodename)\n"
        "sys.exit(75 if os.environ['JOBGEN_ATTEMPT'] == '1' else 0)\n"
    )
    _, runs = places(tmp_path)
    options = (
        "--ranks-per-node",
        "1",
        *ON_CPUS,
        "--launcher",
        "srun",
        "--spare-nodes",
        "1",
        "--requeue",
        "1",
    )
    script = jobs.render("slurm", *options, program=["python3", own])
    with broken(slurm_cluster, "node2", read_only(runs)):
        submitted = slurm_cluster.sbatch(script, tmp_path)  # idle, it gives the first two
        job = ended(slurm_cluster, submitted)
    assert job.ok, job.output
    assert "excluding node2: the preflight failed there" in job.output
    assert "attempt 1 of 2; requeued" in job.output
    assert "ExcNodeList=node2\n" in slurm_cluster.exec("head", ["scontrol", "show", "job", submitted]).stdout
    directory = jobs.run_dir(runs)
    assert jobs.written_by(directory / "attempt-2", 0) == b"attempt 2 on node1\n"
    assert [host for host, _ in jobs.hosts_in(directory)] == ["node1"]
    assert job.output.count("excluding") == 1


def test_a_host_that_is_dead_before_the_preflight(slurm_cluster: Cluster, tmp_path: Path) -> None:
    hook = tmp_path / "hook.sh"
    hook.write_text(f"touch {tmp_path}/there; until [[ -e {tmp_path}/go ]]; do sleep 0.1; done\n")
    # mpirun gives a dead host up after a minute.
    options = (*TWO, "--launcher", "srun", "--spare-nodes", "1", "--source", hook)
    submitted = slurm_cluster.sbatch(jobs.render("slurm", *options, program=["hostname"]), tmp_path)
    wait_for((tmp_path / "there").exists)
    slurm_cluster.kill("node2")
    try:
        (tmp_path / "go").touch()
        log = tmp_path / f"jobgen-{submitted}.log"
        wait_for(lambda: f"jobgen: job {submitted} " in log.read_text(), 120)
        # Until Slurm itself finds out, it waits for the dead node's word that the job is over.
        time.sleep(
            2
        )  # in the second in which it ended Slurm would not launch the job again: "already killed"
        dead = ["scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=dead"]
        slurm_cluster.exec("head", dead)
        job = slurm_cluster.wait(submitted)
    finally:
        slurm_cluster.revive("node2")
    assert job.ok, job.output
    assert "jobgen: excluding node2: the preflight failed there\n" in job.output
    assert [host for host, _ in jobs.hosts_in(jobs.run_dir(tmp_path / "runs"))] == ["node1", "node3"]


# ------------------------------------------------------------------------------------------ own programs


def test_an_own_program_without_the_training_module(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """No preflight where python3 lacks jobgen.train, or torch."""
    python = Path(sys.executable)
    for modules in ("jobgen", "torch"):
        # A finder in front of all others that does not find it.
        place = tmp_path / modules
        hidden = place / "hidden"
        hidden.mkdir(parents=True)
        (hidden / "sitecustomize.py").write_text(
            "import sys\nclass Hide:\n"
            f"    def find_spec(self, name, path=None, target=None):\n        if name.partition('.')[0] == {modules!r}:\n"
            "            raise ModuleNotFoundError(name=name)\nsys.meta_path.insert(0, Hide())\n"
        )
        bin_path = jobs.path_with(place / "bin", python3=f'PYTHONPATH={hidden} exec {python} "$@"')
        script = jobs.render("slurm", *TWO_BY_TWO, "--launcher", "srun", program=["hostname"])
        env = {"PATH": f"{bin_path}:{slurm_cluster.env['PATH']}"}
        job = slurm_cluster.wait(slurm_cluster.sbatch(script, place, env=env))
        assert job.ok, job.output
        assert "jobgen: no preflight: python3 has no jobgen.train with torch\n" in job.output
        assert "preflight passed" not in job.output
        run = jobs.run_dir(place / "runs")
        ranks = [jobs.written_by(run / "attempt-1", rank).decode() for rank in range(4)]
        assert ranks == [f"{host}\n" for host, _ in jobs.hosts_in(run) for _ in "ab"]


# --------------------------------------------------------------------------------------------------- hangs

HANGING = """
import os, time
import torch
from jobgen.train import models

class Hanging(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.passes = inner, 0

    def forward(self, images):
        self.passes += self.training
        while self.passes == 8 and (os.environ["RANK"], os.environ["JOBGEN_ATTEMPT"]) == ("1", "1"):
            time.sleep(0.1)
        return self.inner(images)

def build(shape, classes):
    return Hanging(models.build("cnn", shape, classes))
"""


def test_a_rank_that_hangs_and_the_requeued_job_that_does_not(slurm_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(HANGING)
    options = (*TWO, "--launcher", "torchrun", "--no-preflight", "--hang-timeout", "8s", "--requeue", "1")
    program = ("--task", "digits", "--model", "hanging:build", "--engine", "ddp", "--save-every", "3")
    place = ("--env", f"PYTHONPATH={tmp_path}")
    script = jobs.render("slurm", *options, *place, program=[*program, "--max-steps", "12"])
    job = slurm_cluster.sbatch(script, tmp_path)
    first = tmp_path / f"jobgen-{job}.log"
    done = ended(slurm_cluster, job)
    assert done.ok, done.output
    directory = jobs.run_dir(tmp_path / "runs")
    assert re.search(r"rank 1 on node\d hangs after step 7, for \d+ s; its stacks are in", first.read_text())
    text = "".join(file.read_text() for file in directory.glob("stacks/*/*.txt"))
    blocks = re.split(r"(?m)^\S+ \S+ rank (\d) on \S+ hangs", text)
    stacks = dict(zip(blocks[1::2], blocks[2::2], strict=True))
    assert sorted(stacks) == ["0", "1"]
    assert "hanging.py" in stacks["1"]
    assert not ("hanging.py" in stacks["0"] and "time.sleep" in stacks["0"])
    assert "; the run can resume from step-000007" in done.output  # saved by the watchdogs themselves
    statuses = (directory / "attempt-1" / "statuses").read_text().splitlines()
    assert "75" in {line.split()[1] for line in statuses}
    assert "resumes from" in done.output
    assert "not finished: attempt 1 of 2; requeued" in done.output
    assert jobs.status_of(directory)["state"] == "finished"
    assert [rank.status for rank in node_files.ranks(directory / "attempt-2")] == [0, 0]


# ----------------------------------------------------------------------------------------------- full disks


def test_a_disk_that_becomes_full(slurm_cluster: Cluster, disk: Path, tmp_path: Path) -> None:
    """The last checkpoint is kept, and when there is room again the same job goes on from it."""
    where = jobs.env_options({"PYTHONPATH": SUPPORT, "SLOW_PAUSE": "0.5"})
    options = (*TWO, "--launcher", "srun", "--no-preflight", "--requeue", "2", *where)
    program = ("--dataset", "slow:data", "--model", "slow:build", "--batch-size", "8", "--engine", "ddp")
    saving = ("--epochs", "4", "--save-every", "5", "--checkpoint-dir", disk)
    script = jobs.render("slurm", *options, program=[*program, *saving])
    submitted = slurm_cluster.sbatch(script, tmp_path)
    wait_for((disk / "latest").exists)
    with contextlib.suppress(OSError), open(disk / "other", "wb", buffering=0) as other:
        while other.write(bytes(4096)):
            pass
    job = slurm_cluster.wait(submitted)
    assert job.exit_code == 4, job.output
    assert re.search(r"cannot be written: No space left on device: \S+ \(rank \d on node\d", job.output), (
        job.output
    )
    directory = jobs.run_dir(tmp_path / "runs")
    status = jobs.status_of(directory)
    assert (status["state"], status["exit_status"]) == ("failed", 4)
    assert "requeued" not in job.output
    kept = (disk / "latest").read_text().strip()
    assert (disk / kept).is_dir()
    (disk / "other").unlink()
    again = slurm_cluster.wait(slurm_cluster.sbatch(directory / "job.sh", directory))
    assert again.ok, again.output
    assert f"resumes from {disk}/{kept}, after step" in again.output


# -------------------------------------------------------------------------------------- arrays and reruns

TELL = """
import os, time
port, run = os.environ["MASTER_PORT"], os.environ["JOBGEN_RUN_DIR"]
print(os.environ["JOBGEN_JOB_ID"], os.environ["SLURM_ARRAY_TASK_ID"], port, run, os.environ["JOBGEN_ATTEMPT"])
time.sleep(1)
"""


def test_an_array_of_ten(slurm_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "tell.py").write_text(TELL)
    options = ("--ranks-per-node", "1", *ON_CPUS, "--launcher", "srun", "--directive", "--array=0-9%5")
    script = jobs.render("slurm", *options, program=["tell.py"])
    submitted = slurm_cluster.sbatch(script, tmp_path)
    queue = ["squeue", "--noheader", "--array", "--job", submitted]
    wait_for(lambda: not slurm_cluster.exec("head", queue, check=False).stdout.strip(), 120)
    directories = sorted((tmp_path / "runs").iterdir())
    told = [jobs.written_by(run / "attempt-1", 0).decode().split() for run in directories]
    assert len(told) == 10, list(tmp_path.iterdir())
    ids, tasks, ports, runs, attempts = map(list, zip(*told, strict=True))
    assert sorted(tasks) == [str(number) for number in range(10)]
    assert len(set(ids)) == len(set(ports)) == len(set(runs)) == 10
    assert set(attempts) == {"1"}
    assert runs == list(map(str, directories))
    assert len(list(tmp_path.glob("jobgen-*.log"))) == 10


def test_a_rerun_of_the_same_id(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """scontrol requeue by hand: of a job that runs, and of the same one when it has finished."""
    (tmp_path / "tell.py").write_text(
        TELL.replace('os.environ["SLURM_ARRAY_TASK_ID"]', '"0"').replace("sleep(1)", "sleep(3)")
    )
    script = jobs.render(
        "slurm", "--ranks-per-node", "1", *ON_CPUS, "--launcher", "srun", program=["tell.py"]
    )
    submitted = slurm_cluster.sbatch(script, tmp_path)
    directory = tmp_path / "runs" / f"jobgen-{submitted}"
    wait_for(lambda: bool(node_files.ranks(directory / "attempt-1")))
    slurm_cluster.exec("head", ["scontrol", "requeue", submitted])
    second = ended(slurm_cluster, submitted)
    assert second.ok, second.output
    slurm_cluster.exec("head", ["scontrol", "requeue", submitted])
    third = ended(slurm_cluster, submitted)
    assert third.ok, third.output
    assert sorted(path.name for path in directory.glob("attempt-*")) == [
        "attempt-1",
        "attempt-2",
        "attempt-3",
    ]
    told = [jobs.written_by(directory / f"attempt-{number}", 0).split() for number in (2, 3)]
    assert [words[-1] for words in told] == [b"2", b"3"]
    assert len(told[0]) == len(told[1]) == 5  # one run each
