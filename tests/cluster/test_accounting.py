"""A Slurm with slurmdbd: accounts and QoS are real, and sacct answers for the jobs that squeue has forgotten.

Its controller forgets a job two seconds after its end, but looks for such jobs only once a minute.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, warm_python
from support.cluster import OLD, Cluster, shared_cluster
from support.require import need_cluster, need_command
from support.waiting import wait_for

pytestmark = pytest.mark.xdist_group("accounting")

SMALL = (
    "--accelerator",
    "cpu",
    "--cpus-per-rank",
    "1",
    "--launcher",
    "srun",
    "--no-preflight",
    "--venv",
    sys.prefix,
)


@pytest.fixture(scope="module")
def cluster(session_dir: Path) -> Iterator[Cluster]:
    need_cluster(OLD)
    need_command("mariadbd", "slurmdbd")
    with shared_cluster(session_dir / "cluster-accounting", OLD, accounting=True) as found:
        yield found


@pytest.fixture
def here(cluster: Cluster) -> Path:
    return cluster.folder("accounting")


def jobgen(cluster: Cluster, here: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [*warm_python.jobgen(), *map(str, words)]
    return cluster.exec("head", command, cwd=here, check=False, timeout=120, env={"PYTHONPATH": str(ROOT)})


def submit(cluster: Cluster, here: Path, name: str, *options: str) -> tuple[str, Path]:
    """The id and the run directory of a job that would take an hour."""
    program = ("--", "bash", "-c", "sleep 3600")
    done = jobgen(
        cluster, here, "submit", "slurm", *SMALL, "--name", name, "--runs-dir", name, *options, *program
    )
    assert done.returncode == 0, done.stderr
    [run] = (here / name).iterdir()
    return done.stdout.strip(), run


def test_the_states_of_jobs_that_squeue_has_forgotten(cluster: Cluster, here: Path) -> None:
    """Of jobs whose scripts could record nothing."""
    never, never_run = submit(cluster, here, "never", "--begin", "+2h")
    array, array_run = submit(cluster, here, "array", "--begin", "+2h", "--array", "0-2")
    killed, killed_run = submit(cluster, here, "killed")
    wait_for(lambda: list(killed_run.glob("attempt-1/events")), 60)
    other = submit(cluster, here, "other", "--begin", "+2h")[1]
    cluster.exec("head", ["scancel", never, array, (other / "job-id").read_text().strip()])
    # Only the script gets KILL. Every other scancel sends TERM first, and the state is CANCELLED: then the script may record that
    # it failed, or not.
    cluster.exec("head", ["scancel", "--batch", "--signal=KILL", killed])
    (other / "job-id").write_text("999999\n")
    queue = ["squeue", "--states=all", "--noheader"]
    wait_for(lambda: not cluster.exec("head", queue).stdout, 150)
    done = jobgen(cluster, here, "status", "--json", never_run, array_run, killed_run, other)
    states = {one["name"].partition("-")[0]: one for one in json.loads(done.stdout)}

    assert {name: one["state"] for name, one in states.items()} == {
        "never": "cancelled",
        "array": "cancelled",
        "killed": "failed",
        "other": "gone",
    }
    assert states["array"]["tasks"] == {"cancelled": 3}
    assert found(cluster, killed_run) == [[str(killed_run), killed]]


def found(cluster: Cluster, run: Path) -> object:
    """The jobs that jobgen finds of a submission that was interrupted ten minutes ago."""
    program = "import json, sys, time; from jobgen.schedulers import slurm_jobs; "
    program += "print(json.dumps([*slurm_jobs.find(sys.argv[1:], time.time() - 600)]))"
    argv = [sys.executable, "-c", program, run]
    return json.loads(cluster.exec("head", argv, env={"PYTHONPATH": str(ROOT)}).stdout)


def test_accounts_and_qos(cluster: Cluster, here: Path) -> None:
    job, _ = submit(cluster, here, "short", "--account", "physics", "--qos", "short", "--walltime", "10m")
    shown = cluster.exec("head", ["scontrol", "show", "job", job]).stdout
    cluster.exec("head", ["scancel", job])
    assert re.search(r"Account=physics QOS=short\b", shown)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--account", "nosuch"), "Invalid account"),
        (("--qos", "nosuch"), "Invalid qos"),
        (("--account", "physics", "--qos", "short", "--walltime", "3h"), "QOSMaxWallDurationPerJobLimit"),
    ],
)
def test_a_refusal_of_the_accounting_is_one_sentence(
    cluster: Cluster, here: Path, options: tuple[str, ...], reason: str
) -> None:
    done = jobgen(cluster, here, "submit", "slurm", *SMALL, *options, "--", "true")
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("jobgen: sbatch refuses the job: ")
    assert reason in line
