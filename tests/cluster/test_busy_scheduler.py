"""Submission to real schedulers that are stopped, hang, or are at a limit on the number of jobs: one job in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, warm_python
from support.cluster import FIRST, OLD, Cluster, shared_cluster
from support.pbs import PbsCluster
from support.require import need_cluster, need_command
from support.story import AnyCluster
from support.waiting import wait_until

from jobgen.runs import intent

pytestmark = pytest.mark.xdist_group("busy")

SMALL = ("--nodes", "1", "--ranks-per-node", "1", "--accelerator", "cpu", "--no-preflight")
HOLD = {"slurm": "--hold", "openpbs": "-h", "torque": "-h"}
AWAY = "slurmctld does not answer: waiting for it"
AGAIN = "there is no job yet, and it is submitted again for up to "


@pytest.fixture(scope="module")
def slurm(session_dir: Path) -> Iterator[Cluster]:
    """A Slurm of its own: its controller is stopped."""
    need_cluster(FIRST)
    with shared_cluster(session_dir / "cluster-busy") as found:
        yield found


@pytest.fixture(scope="module")
def accounting(session_dir: Path) -> Iterator[Cluster]:
    """A Slurm of its own with limits of users."""
    need_cluster(OLD)
    need_command("mariadbd", "slurmdbd")
    with shared_cluster(session_dir / "cluster-busy-accounting", OLD, accounting=True) as found:
        yield found


def words(cluster: AnyCluster, *options: str) -> list[str]:
    launcher = "srun" if cluster.name == "slurm" else "mpirun"
    options = (*SMALL, "--launcher", launcher, "--directive", HOLD[cluster.name], *options)
    return [*warm_python.jobgen(), "submit", *cluster.words, *options, "--", "true"]


def call(cluster: AnyCluster, here: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(ROOT)}
    return cluster.exec("head", argv, cwd=here, check=False, timeout=200, env=environment)


def in_background(cluster: AnyCluster, here: Path, *argv: str) -> None:
    """Run a command whose output goes to the files out and err, and its status to the file status."""
    code = 'env --default-signal=INT "$@" > out 2> err & echo $! > pid; wait $!; echo $? > status'
    call(cluster, here, "bash", "-c", f"({code}) > /dev/null 2>&1 &", "bash", *argv)


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def runs(here: Path) -> list[Path]:
    return sorted((here / "runs").glob("*"))


def state(cluster: AnyCluster, here: Path) -> dict[str, str]:
    [one] = json.loads(call(cluster, here, *warm_python.jobgen(), "list", "--json").stdout)
    return dict(one)


def control(cluster: Cluster, code: str) -> None:
    """Run code of the shell on the host of the controller, as root."""
    cluster.exec("head", ["bash", "-c", code])


def stop(cluster: Cluster, number: str = "KILL") -> None:
    control(cluster, f"kill -{number} $(pidof slurmctld); while pidof slurmctld; do sleep 0.1; done")


def start(cluster: Cluster) -> None:
    control(cluster, "setsid /usr/sbin/slurmctld -D < /dev/null > /dev/null 2>&1 &")
    assert wait_until(lambda: "is UP" in cluster.exec("head", ["scontrol", "ping"], check=False).stdout, 60)


def queued(cluster: Cluster, here: Path) -> list[str]:
    out = cluster.exec("head", ["squeue", "--noheader", "--format=%i %Z"]).stdout
    return [line.split()[0] for line in out.splitlines() if f" {here}/" in line]


def test_a_controller_that_is_stopped_and_started(slurm: Cluster) -> None:
    here = slurm.folder("stopped")
    stop(slurm)
    try:
        in_background(slurm, here, *words(slurm))
        assert wait_until(lambda: AGAIN in text(here / "err"), 60), text(here / "err")
        assert "(connect failure)" in text(here / "err")
        found = state(slurm, here)
        assert (found["state"], "to run sbatch again" in found["reason"]) == ("submitting", True), found
        second = call(slurm, here, *words(slurm))
        assert (second.returncode, second.stdout) == (1, "")
        assert "that submission has not ended; --new makes another job" in second.stderr
    finally:
        start(slurm)
    assert wait_until((here / "status").exists, 90)
    assert (text(here / "status"), text(here / "out").split()) == ("0\n", queued(slurm, here))
    [run] = runs(here)
    assert not (run / intent.NAME).exists()
    assert text(here / "err").count(AGAIN) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ended_in_a_pause(slurm: Cluster, number: signal.Signals) -> None:
    here = slurm.folder("pause")
    stop(slurm)
    try:
        in_background(slurm, here, *words(slurm))
        assert wait_until(lambda: AGAIN in text(here / "err"), 60), text(here / "err")
        control(slurm, f"kill -{number} {text(here / 'pid')}")
        assert wait_until((here / "status").exists, 10)
        if number == signal.SIGINT:
            assert text(here / "status") == "130\n"
            assert "jobgen: interrupted; there is no job: sbatch cannot submit" in text(here / "err")
            assert runs(here) == []
        else:
            found = state(slurm, here)
            assert (found["state"], found["reason"][:22]) == ("never submitted", "the scheduler was busy")
    finally:
        start(slurm)
    done = call(slurm, here, *words(slurm))
    assert (done.returncode, done.stdout.split()) == (0, queued(slurm, here)), done.stderr


def test_a_controller_that_hangs_may_have_the_job(slurm: Cluster) -> None:
    """sbatch ends before the controller reads the request, and the controller makes the job when it goes on."""
    here = slurm.folder("hangs")
    control(slurm, "kill -STOP $(pidof slurmctld)")
    try:
        done = call(slurm, here, *words(slurm))
    finally:
        control(slurm, "kill -CONT $(pidof slurmctld)")
    assert (done.returncode, done.stdout, AGAIN in done.stderr) == (1, "", False), done.stderr
    assert "timed out" in done.stderr
    assert "jobgen status" in done.stderr
    assert wait_until(lambda: queued(slurm, here), 30)
    again = call(slurm, here, *words(slurm))
    assert again.stdout.split() == queued(slurm, here), again.stderr


@pytest.mark.parametrize("how", ["stopped", "hangs"])
def test_a_controller_that_is_away_when_the_ranks_start(slurm: Cluster, how: str) -> None:
    """srun would give up after ten seconds: Unable to confirm allocation."""
    here = slurm.folder(f"start-{how}")
    submitted = call(
        slurm, here, *words(slurm, "--setup", "touch begun; until [[ -e go ]]; do sleep 0.2; done")
    )
    assert submitted.returncode == 0, submitted.stderr
    job_id = submitted.stdout.strip()
    slurm.exec("head", ["scontrol", "release", job_id])
    assert wait_until((here / "begun").exists, 60)
    control(slurm, "kill -STOP $(pidof slurmctld)") if how == "hangs" else stop(slurm, "TERM")
    try:
        (here / "go").touch()
        assert wait_until(lambda: any(AWAY in text(log) for log in here.rglob("*.log")), 60)
    finally:
        control(slurm, "kill -CONT $(pidof slurmctld)") if how == "hangs" else start(slurm)
    job = slurm.wait(job_id)
    assert job.ok, job.output
    assert job.output.count(AWAY) == 1


def take_after_the_limit(cluster: AnyCluster, here: Path, *options: str) -> str:
    """Submit a job at a limit of one job, then a second one, and remove the first; return what the second
    submission printed on its standard error."""
    first = call(cluster, here, *words(cluster, "--name", "first", *options))
    assert first.returncode == 0, first.stderr
    once = call(cluster, here, *words(cluster, "--name", "second", "--submit-timeout", "0", *options))
    assert (once.returncode, once.stdout, len(runs(here))) == (1, "", 1)
    assert AGAIN not in once.stderr
    short = call(cluster, here, *words(cluster, "--name", "second", "--submit-timeout", "4s", *options))
    assert (short.returncode, len(runs(here))) == (1, 1)
    assert "times in 4 s: --submit-timeout allows more" in short.stderr
    in_background(cluster, here, *words(cluster, "--name", "second", *options))
    assert wait_until(lambda: AGAIN in text(here / "err"), 60), text(here / "err")
    cluster.cancel(first.stdout.strip())
    assert wait_until((here / "status").exists, 90)
    assert text(here / "status") == "0\n", text(here / "err")
    cluster.cancel(text(here / "out").strip())
    return text(here / "err")


def test_a_limit_of_the_user_of_slurm(accounting: Cluster) -> None:
    here = accounting.folder("limit")
    control(accounting, "sacctmgr -i modify user root set MaxSubmitJobs=1")
    assert "AssocMaxSubmitJobLimit" in take_after_the_limit(accounting, here)


LIMITS = {
    "openpbs": ("max_queued = '[u:PBS_GENERIC=1]'", "'s per-user limit"),
    "torque": ("max_user_queuable = 1", "Maximum number of jobs already in queue for user"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_of_a_queue_of_pbs(name: str, request: pytest.FixtureRequest) -> None:
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    limit, answer = LIMITS[name]
    queue = f"few{os.getpid()}"
    for line in (
        *(f"create queue {queue}", f"set queue {queue} queue_type = Execution", f"set queue {queue} {limit}"),
        *(f"set queue {queue} enabled = True", f"set queue {queue} started = True"),
    ):
        cluster.exec("head", ["qmgr", "-c", line], root=True)
    try:
        assert answer in take_after_the_limit(cluster, cluster.folder("limit"), "--queue", queue)
    finally:
        assert wait_until(lambda: is_deleted(cluster, queue), 60)


def is_deleted(cluster: PbsCluster, queue: str) -> bool:
    """Delete a queue and its jobs; Torque keeps those that have ended."""
    if jobs := cluster.exec("head", ["qselect", "-q", queue]).stdout.split():
        cluster.purge(*jobs, check=False)
    done = cluster.exec("head", ["qmgr", "-c", f"delete queue {queue}"], root=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("name", LIMITS)
def test_a_server_of_pbs_that_is_not_there(name: str, request: pytest.FixtureRequest) -> None:
    """qsub is sent to a port of the server where nothing listens."""
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    here = cluster.folder("stopped")
    done = call(
        cluster,
        here,
        "env",
        f"PBS_SERVER={cluster.kind.head}:9",
        f"PBS_DEFAULT={cluster.kind.head}:9",
        *words(cluster, "--submit-timeout", "3s"),
    )
    assert done.returncode == 1
    assert "cannot connect to server" in done.stderr
    assert AGAIN in done.stderr
    assert runs(here) == []
