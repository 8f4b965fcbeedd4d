"""jobgen submit, killed at random moments, on real schedulers: no job is lost, and none is made twice."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.story import AnyCluster
from support.waiting import wait_until

from jobgen.runs import intent

pytestmark = pytest.mark.xdist_group("life")

KILLS = int(os.environ.get("JOBGEN_TEST_KILLS", "10"))
KILLED = ROOT / "tests/support/killed.py"
SMALL = ("--nodes", "1", "--ranks-per-node", "1", "--accelerator", "cpu", "--no-preflight")
HELD = {"slurm": "--hold", "openpbs": "-h", "torque": "-h"}


@pytest.fixture(params=["slurm", "openpbs", "torque"])
def cluster(request: pytest.FixtureRequest) -> AnyCluster:
    found: AnyCluster = request.getfixturevalue(f"{request.param}_cluster")
    return found


@pytest.fixture
def here(cluster: AnyCluster) -> Iterator[Path]:
    """A folder whose jobs are removed in the end."""
    folder = cluster.folder("kills, real")
    yield folder
    ids = [job for job, _ in queued(cluster, folder)]
    for at in range(0, len(ids), 50):
        cluster.exec(
            "head", ["scancel" if cluster.name == "slurm" else "qdel", *ids[at : at + 50]], check=False
        )


def queued(cluster: AnyCluster, folder: Path) -> list[tuple[str, str]]:
    """The jobs below a folder that the scheduler has, and their names."""
    if cluster.name == "slurm":
        lines = cluster.exec("head", ["squeue", "--noheader", "--format=%i|%j|%Z"]).stdout.splitlines()
        found = [line.split("|", 2) for line in lines]
        return [(job, name) for job, name, place in found if place.startswith(f"{folder}/")]
    text = cluster.exec("head", ["qstat", "-f"], timeout=120).stdout.replace("\n\t", "")
    place = f"PBS_O_WORKDIR={folder}/".replace(" ", "")  # Torque removes blanks, OpenPBS adds backslashes
    records = [one for one in text.split("Job Id: ")[1:] if place in re.sub(r"[\\ ]", "", one)]
    names = [re.findall(r"^    Job_Name = (.*)$", one, re.MULTILINE)[0] for one in records]
    return list(zip([one.split()[0] for one in records], names, strict=True))


def submit(
    cluster: AnyCluster, here: Path, orders: list[tuple[str, str, str]]
) -> list[tuple[list[str], int]]:
    """Submit jobs that wait in the queue, and kill jobgen: the names, moments and victims of killed.py. Return
    the lines that were printed and the exit statuses."""
    (here / "orders").write_text(json.dumps(orders))
    launcher = "srun" if cluster.name == "slurm" else "mpirun"
    words = (*cluster.words, *SMALL, "--launcher", launcher, f"--directive={HELD[cluster.name]}")
    argv = [sys.executable, KILLED, here / "orders", "submit", *words]
    done = call(cluster, here, *map(str, argv))
    assert done.returncode == 0, done.stderr
    return [(printed.splitlines(), status) for printed, status in json.loads(done.stdout)]


def call(cluster: AnyCluster, here: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(ROOT)}
    return cluster.exec("head", argv, cwd=here, check=False, timeout=60 + 10 * KILLS, env=environment)


def states(cluster: AnyCluster, here: Path) -> list[dict[str, Any]]:
    done = call(cluster, here, sys.executable, "-m", "jobgen", "list", "--json")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_killed_at_random_moments(cluster: AnyCluster, here: Path) -> None:
    chance = random.Random(os.environ.get("JOBGEN_TEST_SEED", "1"))
    runs = here / "runs"
    runs.mkdir()
    runs.chmod(0o777)
    [_, ([_, facts], status)] = submit(cluster, here, [("first", "0", "one"), ("second", "0", "one")])
    lines, seconds = map(float, facts.split())
    assert (status, lines > 200) == (0, True)
    names = [f"k{number}" for number in range(KILLS)]
    moments = [
        f"{1.2 * seconds * chance.random():.4f}s"
        if chance.random() < 0.5
        else str(chance.randint(1, int(lines)))
        for _ in names
    ]
    orders = [
        (name, moment, chance.choice(["one", "all"])) for name, moment in zip(names, moments, strict=True)
    ]
    answers = submit(cluster, here, orders)
    assert {status for _, status in answers} <= {0, -signal.SIGKILL}
    untold = [name for name, (printed, _) in zip(names, answers, strict=True) if not printed]
    assert wait_until(lambda: not any(intent.under_way(run) for run in runs.iterdir()), 30)
    time.sleep(1)
    made = queued(cluster, here)
    check(made, states(cluster, here), "submitting")
    recorded = sum((run / intent.NAME).exists() for run in runs.iterdir())

    for run in runs.iterdir():  # so old that the scheduler has done with the request
        os.utime(run / intent.NAME if (run / intent.NAME).exists() else run, (time.time() - 100,) * 2)
    again = submit(cluster, here, [(name, "0", "one") for name in untold])
    assert {status for _, status in again} <= {0}
    jobs = queued(cluster, here)
    found = Counter(name for _, name in jobs)
    lost, doubled = set(names) - found.keys(), {name for name, count in found.items() if count > 1}
    print(
        f"{cluster.name}: {KILLS} moments, {sum(status != 0 for _, status in answers)} kills, {len(untold)} before "
        f"the id was printed, {sum(name in untold for _, name in made)} of these had a job; {recorded} records were "
        f"left; lost {len(lost)}, doubled {len(doubled)}"
    )
    assert (lost, doubled) == (set(), set())
    check(jobs, states(cluster, here), "never submitted")


def check(jobs: list[tuple[str, str]], known: list[dict[str, Any]], other: str) -> None:
    """Each job is that of one run, and the other runs have none."""
    ids = {job.partition(".")[0] for job, _ in jobs}
    assert len(ids) == len(jobs)
    found = [one["id"].partition(".")[0] for one in known if one["id"]]
    assert sorted(found) == sorted(ids)
    assert {one["state"] for one in known if one["id"]} <= {"held", "pending"}
    assert {one["state"] for one in known if not one["id"]} <= {other}
