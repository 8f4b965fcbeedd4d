"""``jobgen site new`` on the test cluster: the file that it writes is right, and jobs run by it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.cluster import Cluster

from jobgen.sites import load

GPU_JOB = ("--nodes", "2", "--gpus-per-node", "1", "--ranks-per-node", "1", "--no-preflight")


def jobgen(cluster: Cluster, cwd: Path, *words: str, check: bool = True) -> tuple[int, str, str]:
    done = cluster.exec("head", [sys.executable, "-m", "jobgen", *words], cwd=cwd, check=check)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def site(slurm_cluster: Cluster, tmp_path: Path) -> Path:
    _, _, said = jobgen(slurm_cluster, tmp_path, "site", "new", "mini", "-o", "mini.toml")
    assert "jobgen site check mini.toml" in said
    return tmp_path / "mini.toml"


def test_it_writes_what_the_cluster_is(slurm_cluster: Cluster, site: Path) -> None:
    _, out, _ = jobgen(slurm_cluster, site.parent, "site", "check", "mini.toml")
    assert out.endswith(": good\n")
    found = load(str(site))
    partitions = slurm_cluster.exec("head", ["sinfo", "--noheader", "-o", "%R"]).stdout.split()
    assert sorted(found.queues) == sorted(set(partitions))
    assert found.values["queue"] in partitions
    [queue] = [one for name, one in found.queues.items() if name == found.values["queue"]]
    assert queue.nodes == (1, 3)
    devices = slurm_cluster.exec("head", ["sinfo", "--noheader", "-o", "%G"]).stdout
    assert f"gpu:{found.file.node.gpus}" in devices.split(",")
    assert found.file.request[-1] == "--gres=gpu:{gpus_per_node}"


def test_a_job_of_it_runs_on_both_nodes(slurm_cluster: Cluster, site: Path) -> None:
    words = ("slurm", "--site", "mini", *GPU_JOB, "--output", "job.sh", "--", "hostname")
    jobgen(slurm_cluster, site.parent, *words)
    job = slurm_cluster.wait(slurm_cluster.sbatch(site.parent / "job.sh", site.parent))
    assert job.ok, job.output
    assert {"node1", "node2"} <= set(job.output.split())


def test_beyond_its_limits_nothing_is_written(slurm_cluster: Cluster, site: Path) -> None:
    words = ("slurm", "--site", "mini", "--nodes", "4", "--output", "job.sh")
    status, _, said = jobgen(slurm_cluster, site.parent, *words, check=False)
    assert status == 2
    assert "takes 1 to 3 nodes" in said
    assert not (site.parent / "job.sh").exists()
