"""A Slurm whose hosts have IPv6 addresses only: every launcher, and every form of --master-addr."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, jobs
from support.cluster import FIRST, Cluster, Job, shared_cluster
from support.require import need_cluster, need_package

pytestmark = [pytest.mark.xdist_group("ipv6"), pytest.mark.usefixtures("warm_python")]

TWO = (
    "--nodes",
    "2",
    "--ranks-per-node",
    "1",
    "--accelerator",
    "cpu",
    "--cpus-per-rank",
    "1",
    "--walltime",
    "5m",
)
PROGRAM = """import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
number = torch.ones(1)
dist.all_reduce(number)
print("sum", int(number), "at", os.environ["MASTER_ADDR"], flush=True)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def cluster(session_dir: Path) -> Iterator[Cluster]:
    need_cluster(FIRST)
    with shared_cluster(session_dir / "cluster-ipv6", ipv6=True) as found:
        yield found


def run(cluster: Cluster, launcher: str, *options: str) -> Job:
    folder = cluster.folder(launcher)
    (folder / "sum.py").write_text(PROGRAM)
    env = jobs.env_options({"PATH": cluster.env["PATH"], "PYTHONPATH": str(ROOT)})
    script = jobs.render("slurm", *TWO, "--launcher", launcher, *options, *env, program=["sum.py"])
    return cluster.wait(cluster.submit(script, folder))


def allow_some_ipv4(cluster: Cluster, launcher: str) -> None:
    """Give the hosts 127.0.0.1, if the launcher is that of Open MPI, which needs an IPv4 address."""
    for node in cluster.nodes if launcher == "mpirun" else ():
        cluster.exec(node, ["ip", "address", "replace", "127.0.0.1/8", "dev", "lo"])


@pytest.mark.parametrize(
    ("launcher", "options", "address", "endpoint"),
    [
        ("srun", [], "node1", "node1"),
        ("torchrun", ["--master-addr", "interface:eth0"], "fd13:77::11", "[fd13:77::11]"),
        ("deepspeed", ["--master-addr", "fd13:77:0::11"], "fd13:77::11", "[fd13:77::11]"),
        ("accelerate", ["--master-addr", "interface:eth0"], "fd13:77::11", "[fd13:77::11]"),
        ("torchrun", ["--master-addr", "{host}", "--remote", "ssh"], "node1", "node1"),
        ("mpirun", ["--master-addr", "interface:eth0"], "fd13:77::11", "[fd13:77::11]"),
    ],
)
def test_ranks_meet(cluster: Cluster, launcher: str, options: list[str], address: str, endpoint: str) -> None:
    if launcher in ("deepspeed", "accelerate"):
        need_package(launcher)
    allow_some_ipv4(cluster, launcher)
    done = run(cluster, launcher, "--no-preflight", *options)
    assert done.ok, done.output
    assert done.output.count(f"sum 2 at {address}\n") == 2, done.output
    assert f"rendezvous at {endpoint}:" in done.output


def test_the_preflight_and_a_spare_node_at_an_interface(cluster: Cluster) -> None:
    """node1 has no ib0; node3 reaches that of node2 through eth0."""
    cluster.exec("node2", ["ip", "link", "add", "ib0", "type", "veth", "peer", "name", "to-ib0"])
    cluster.exec("node2", ["ip", "address", "add", "fd13:78::12/64", "dev", "ib0", "nodad"])
    for name in ("ib0", "to-ib0"):
        cluster.exec("node2", ["ip", "link", "set", name, "up"])
    cluster.exec("node3", ["ip", "route", "add", "fd13:78::/64", "via", "fd13:77::12"])
    done = run(cluster, "torchrun", "--spare-nodes", "1", "--master-addr", "interface:ib0")
    assert done.ok, done.output
    assert (
        "excluding node1: --master-addr interface:ib0: the first host node1 has no interface ib0"
        in done.output
    )
    assert "preflight passed: 2 host(s)" in done.output
    assert done.output.count("sum 2 at fd13:78::12\n") == 2
    assert "rendezvous at [fd13:78::12]:" in done.output


def test_the_training_module_finds_its_interface(cluster: Cluster) -> None:
    folder = cluster.folder("training")
    env = jobs.env_options({"PATH": cluster.env["PATH"], "PYTHONPATH": str(ROOT)})
    words = ["--preflight", "--launcher", "srun", *env]
    script = jobs.render("slurm", *TWO, *words, program=["--task", "digits", "--epochs", "1"])
    done = cluster.wait(cluster.submit(script, folder))
    assert done.ok, done.output
    [row] = [line for line in done.output.splitlines() if line.startswith("node2 ")]
    assert " eth0 " in row


@pytest.mark.parametrize("launcher", ["torchrun", "deepspeed", "mpirun"])
def test_a_list_of_addresses(cluster: Cluster, launcher: str) -> None:
    """Without a scheduler; the script starts the second host by ssh."""
    if launcher == "deepspeed":
        need_package("deepspeed")
    allow_some_ipv4(cluster, launcher)
    folder = cluster.folder(f"list-{launcher}")
    (folder / "sum.py").write_text(PROGRAM)
    (folder / "hosts").write_text("fd13:77::11 slots=1\n[fd13:77:0::12]:1\n")
    env = jobs.env_options({"PATH": cluster.env["PATH"], "PYTHONPATH": str(ROOT)})
    words = ["--hostfile", folder / "hosts", "--accelerator", "cpu", "--cpus-per-rank", "1", "--no-preflight"]
    script = jobs.render("local", *words, "--launcher", launcher, *env, program=["sum.py"])
    (folder / "job.sh").write_text(script)
    done = cluster.exec("node1", ["bash", "job.sh"], cwd=folder, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("sum 2 at fd13:77::11\n") == 2, done.stdout + done.stderr
    refused = cluster.exec("node2", ["bash", "job.sh"], cwd=folder, check=False)
    assert (refused.returncode, "run this script on fd13:77::11" in refused.stderr) == (70, True)
