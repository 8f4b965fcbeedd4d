"""``jobgen site refresh`` on a real Slurm, OpenPBS and Torque: what it keeps is what the scheduler accepts."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support import ROOT, warm_python
from support.cluster import Cluster
from support.pbs import PbsCluster
from support.waiting import wait_until

OLD = """
title = "Old"
scheduler = "{scheduler}"
[[source]]
facts = ["queues"]
confidence = "manual"
page = "https://example.org/queues"
date = 2020-01-31
[job]
queue = "{queue}"
{dialect}
[resources]
accelerator = "cpu"
[launch]
launcher = "torchrun"
[queues.{queue}]
about = "the file is old"
nodes = [1, 1]
walltime = "30m"
[queues.gone]
"""
JOB = ("--site", "old.toml", "--ranks-per-node", "1", "--cpus-per-rank", "1", "--no-preflight")
PATHS = {"pbspro": "/opt/pbs/bin", "torque": "/opt/torque/bin"}


def test_slurm(slurm_cluster: Cluster, tmp_path: Path) -> None:
    root = slurm_cluster
    folder = tmp_path
    (folder / "old.toml").write_text(OLD.format(scheduler="slurm", queue="gpu", dialect=""))

    def jobgen(*words: str) -> tuple[int, str]:
        env = {"XDG_CONFIG_HOME": str(folder), "PYTHONPATH": str(ROOT)}
        command = [*warm_python.jobgen(), *words]
        done = root.exec("head", command, cwd=folder, env=env, check=False)
        return done.returncode, done.stderr

    def accepts(*words: str) -> bool:
        done = root.exec("head", ["sbatch", "--test-only", *words, "job.sh"], cwd=folder, check=False)
        return done.returncode == 0

    def reason() -> str:
        """Why the job waits that sbatch accepts."""
        job = root.sbatch(folder / "job.sh", folder)
        wait_until(lambda: root.facts(job)["Reason"] != "None", 30)
        root.cancel(job)
        return root.facts(job)["Reason"]

    limits = "PartitionName=limited Nodes=node[1-2] MaxNodes=2 MaxTime=60 MinNodes=1 OverSubscribe=EXCLUSIVE"
    root.exec("head", ["scontrol", "create", *limits.split()])
    root.exec("head", ["scontrol", "create", "PartitionName=shut", "Nodes=node3", "State=INACTIVE"])
    try:
        status, said = jobgen(
            "slurm", *JOB, "--nodes", "2", "--walltime", "50m", "-o", "job.sh", "--", "true"
        )
        assert (status, said.count("jobgen: warning: ")) == (0, 2), said
        assert "(the manual of 2020-01-31; jobgen site refresh asks the scheduler)" in said
        assert accepts()  # the file was old
        status, said = jobgen("site", "refresh", "old.toml")
        assert status == 0, said
        assert re.search(r"/jobgen/machines/old.machine.toml: \d+ queues of Old by scontrol;", said)
        assert "\n  gone: does not exist\n" in said
        assert "shut:" not in said  # nobody asks for a partition that takes no jobs

        for words, key, expected in (
            (("--nodes", "3"), "", True),
            (("--nodes", "4"), "--nodes 4 (command line): queue gpu of Old takes 1 to 3 nodes", False),
            (("--queue", "limited", "--nodes", "2", "--walltime", "1h"), "", True),
            (
                ("--queue", "limited", "--nodes", "3"),
                "queue limited of Old takes 1 to 2 nodes; use --queue gpu or cpu",
                False,
            ),
            (("--queue", "limited", "--walltime", "61m"), "takes at most 01:00:00 for a job", False),
            (("--queue", "shut"), "queue shut of Old is not enabled; use --queue gpu", False),
            (("--queue", "gone"), "Old has no such queue: use gpu", False),
            (("--queue", "cpu", "--cpus-per-rank", "9"), "takes at most 8 cores a node", False),
            (("--queue", "cpu", "--cpus-per-rank", "8"), "", True),
        ):
            words = ("--walltime", "20m", *words) if "--walltime" not in words else words
            status, said = jobgen("slurm", *JOB, *words, "-o", "job.sh", "--force", "--", "true")
            assert (status, key in said) == (0 if expected else 2, True), (words, said)
            if not expected:
                assert re.search(r"\(scontrol on 20\d\d-.*; jobgen site refresh asks again\)$", said)
                jobgen("slurm", "--site", "none", *JOB[2:], "--accelerator", "cpu", "--launcher", "torchrun",
                       *words, "-o", "job.sh", "--force", "--", "true")  # fmt: skip
            if "61m" in words:  # EnforcePartLimits of Slurm is NO here, which is the default
                assert reason() in ("PartitionTimeLimit", "PartitionConfig")  # it waits forever
            else:
                assert accepts() is expected, words
    finally:
        for name in ("limited", "shut"):
            root.exec("head", ["scontrol", "delete", f"PartitionName={name}"])


@pytest.fixture(params=["openpbs", "torque"])
def pbs(request: pytest.FixtureRequest) -> Iterator[tuple[PbsCluster, Path]]:
    cluster: PbsCluster = request.getfixturevalue(f"{request.param}_cluster")
    folder = cluster.folder("refresh")
    yield cluster, folder
    shutil.rmtree(folder, ignore_errors=True)


def test_pbs(pbs: tuple[PbsCluster, Path]) -> None:
    cluster, folder = pbs
    dialect, queue = cluster.kind.dialect, {"pbspro": "workq", "torque": "batch"}[cluster.kind.dialect]
    text = OLD.format(scheduler="pbs", queue=queue, dialect=f'dialect = "{dialect}"')
    (folder / "old.toml").write_text(text)
    suffix = f"{os.getpid()}"
    small, large, route, shut = (f"{one}{suffix}" for one in ("sm", "lg", "rt", "sh"))

    def jobgen(*words: str) -> tuple[int, str]:
        path = f"{PATHS[dialect]}:/usr/bin:/bin"  # no other scheduler is there
        env = ["/usr/bin/env", f"PATH={path}", f"XDG_CONFIG_HOME={folder}", f"PYTHONPATH={ROOT}"]
        command = [*env, *warm_python.jobgen(), *words]
        done = cluster.exec("head", command, cwd=folder, check=False)
        return done.returncode, done.stderr

    def accepts() -> bool:
        # A job that is held is not routed.
        done = cluster.exec("head", ["qsub", "job.sh"], cwd=folder, check=False)
        if done.returncode == 0:
            # qsub of OpenPBS puts any job into a routing queue; the server deletes it if no route takes it.
            facts = partial(cluster.facts, done.stdout.strip())
            if not wait_until(lambda: facts().get("queue", route) != route, 10):
                return False
            cluster.purge(done.stdout.strip(), check=False)
        return done.returncode == 0

    def delete(name: str) -> bool:
        """Delete a queue, which is busy until its jobs are gone."""
        command = ["qmgr", "-c", f"delete queue {name}"]
        return cluster.exec("head", command, root=True, check=False).returncode == 0

    def qmgr(line: str) -> None:
        cluster.exec("head", ["qmgr", "-c", line], root=True)

    begun = "enabled=true,started=true"
    limits = "resources_max.nodect=1,resources_max.walltime=01:00:00"
    qmgr(f"create queue {small} queue_type=execution,{begun},from_route_only=true,{limits}")
    limits = "resources_min.nodect=2,resources_max.nodect=3,resources_max.walltime=02:00:00"
    user = "max_run=[u:PBS_GENERIC=1]" if dialect == "pbspro" else "max_user_run=1"
    qmgr(f"create queue {large} queue_type=execution,{begun},{limits}")
    qmgr(f"set queue {large} {user.replace('=[', ' = [', 1).replace('run=', 'run = ')}")
    qmgr(f"create queue {route} queue_type=route,{begun},route_destinations={small}")
    qmgr(f"set queue {route} route_destinations += {large}")
    qmgr(f"create queue {shut} queue_type=execution,started=true")
    try:
        status, said = jobgen("pbs", *JOB, "--nodes", "2", "--walltime", "50m", "-o", "job.sh", "--", "true")
        assert (status, said.count("jobgen: warning: ")) == (0, 2), said
        assert accepts()  # the file was old
        status, said = jobgen("site", "refresh", "old.toml")
        assert status == 0, said
        assert " queues of Old by qstat and pbsnodes;" in said
        assert "\n  gone: does not exist\n" in said
        kept = (folder / "jobgen/machines/old.machine.toml").read_text()
        assert f'[queues.{route}]\nroutes_to = ["{small}", "{large}"]\n' in kept
        for words, key, expected in (
            (("--nodes", "3"), "", True),
            (("--nodes", "4"), f"queue {queue} of Old takes 1 to 3 nodes", dialect == "pbspro"),
            (("--queue", small), f"queue {small} of Old is not enabled; use --queue {route}", False),
            (("--queue", route), "", True),
            (("--queue", route, "--nodes", "3", "--walltime", "2h"), "", True),
            (("--queue", route, "--walltime", "2h"), f"queue {route} of Old takes at most 01:00:00", False),
            (("--queue", route, "--nodes", "4"), f"queue {route} of Old takes 1 to 3 nodes", False),
            (("--queue", large), f"queue {large} of Old takes 2 to 3 nodes", False),
            (("--queue", large, "--nodes", "2", "--walltime", "3h"), "takes at most 02:00:00", False),
            (("--queue", shut), f"queue {shut} of Old is not enabled", False),
            (("--queue", "gone"), "Old has no such queue: use ", False),
        ):
            words = ("--walltime", "20m", *words) if "--walltime" not in words else words
            status, said = jobgen("pbs", *JOB, *words, "-o", "job.sh", "--force", "--", "true")
            assert (status, key in said) == (2 if key else 0, True), (words, said)
            if key:
                assert re.search(
                    r"\(qstat and pbsnodes on 20\d\d-.*; jobgen site refresh asks again\)$", said
                )
                jobgen("pbs", "--site", "none", "--dialect", dialect, *JOB[2:], "--accelerator", "cpu",
                       "--launcher", "torchrun", *words, "-o", "job.sh", "--force", "--", "true")  # fmt: skip
            assert accepts() is expected, (words, said)
        status, said = jobgen("pbs", *JOB, "--queue", large, "--nodes", "2", "--array", "0-4", "-o", "-")
        assert f"queue {large} of Old runs 1 job of a user at a time: further tasks wait" in said, said
    finally:
        for name in (route, small, large, shut):
            assert wait_until(partial(delete, name), 60), name
