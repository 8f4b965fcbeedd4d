"""The test cluster itself: what the other tests rely on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.cluster import CLUSTER_DIR, Cluster, shared_cluster
from support.require import need_cluster, need_command


def two_by_two(hosts: Sequence[str]) -> bool:
    """Whether these are two hosts, twice each; which ones depends on the jobs of other tests."""
    return len(hosts) == 4 and hosts[0] == hosts[1] != hosts[2] == hosts[3]


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


# ------------------------------------------------------------------------------------------------ hosts


def test_every_host_has_a_name_and_an_address_of_its_own(slurm_cluster: Cluster) -> None:
    names = [slurm_cluster.exec(host, ["hostname"]).stdout.strip() for host in slurm_cluster.hosts]
    addresses = [slurm_cluster.exec(host, ["hostname", "-I"]).stdout.strip() for host in slurm_cluster.hosts]
    assert names == list(slurm_cluster.hosts)
    assert len(set(addresses)) == len(addresses)


def test_exec_keeps_directory_environment_arguments_and_status(
    slurm_cluster: Cluster, tmp_path: Path
) -> None:
    argv = ["sh", "-c", 'printf "%s|%s|%s" "$PWD" "$X" "$1"; exit 7', "sh", "a b\n$(id)"]
    done = slurm_cluster.exec("node2", argv, cwd=tmp_path, env={"X": "it's"}, check=False)
    assert (done.stdout, done.returncode) == (f"{tmp_path}|it's|a b\n$(id)", 7)


def test_hosts_reach_each_other_by_ssh_and_pdsh(slurm_cluster: Cluster) -> None:
    assert slurm_cluster.exec("node1", ["ssh", "node3", "hostname; echo $HOME"]).stdout.split() == [
        "node3",
        str(slurm_cluster.home),
    ]
    done = slurm_cluster.exec("head", ["pdsh", "-w", "node[1-3]", "hostname"], env={"PDSH_RCMD_TYPE": "ssh"})
    assert sorted(done.stdout.splitlines()) == [f"{node}: {node}" for node in slurm_cluster.nodes]


def test_the_machine_outside_sees_nothing_of_it(slurm_cluster: Cluster) -> None:
    assert "10.213.77." not in Path("/etc/hosts").read_text()
    links = subprocess.run(["ip", "-o", "address"], capture_output=True, text=True, check=True).stdout
    assert "10.213.77." not in links


def test_the_machine_may_change_its_configuration(each_slurm: Cluster) -> None:
    """A package that adds a user replaces /etc/passwd, which would unmount what is mounted over this file alone."""
    words = ["cat", "/proc/self/mountinfo"]
    machine = {line.split()[4] for line in Path(words[1]).read_text().splitlines()}
    host = {line.split()[4] for line in each_slurm.exec("node1", words).stdout.splitlines()}
    assert "/etc" in host - machine
    assert not [path for path in host - machine if path.startswith("/etc/")]


def test_the_programs_are_those_of_the_system(slurm24_cluster: Cluster) -> None:
    assert slurm24_cluster.exec("head", ["sbatch", "--version"]).stdout.split()[1].startswith("24.11.")
    assert "trixie" in slurm24_cluster.exec("node3", ["cat", "/etc/os-release"]).stdout
    assert slurm24_cluster.exec("node3", [sys.executable, "-c", "import ssl, torch"]).returncode == 0


def test_up_is_done_when_it_is_up(slurm_cluster: Cluster) -> None:
    before = slurm_cluster.exec("node1", ["stat", "-c", "%Y", "/run/munge/munge.socket.2"]).stdout
    slurm_cluster.up()
    assert slurm_cluster.exec("node1", ["stat", "-c", "%Y", "/run/munge/munge.socket.2"]).stdout == before


def test_clusters_are_independent_and_a_host_can_die(tmp_path: Path, slurm_cluster: Cluster) -> None:
    need_cluster()
    other = Cluster(tmp_path / "other")
    other.up()
    try:
        assert other.status()
        other.kill("node2")
        assert not other.status()
        assert slurm_cluster.status()
    finally:
        other.down()
    assert not other.status()
    assert slurm_cluster.status()


def test_a_cluster_without_users_goes_down_by_itself(tmp_path: Path) -> None:
    need_cluster()
    user = f"""
import os, signal, sys
sys.path.insert(0, {str(CLUSTER_DIR.parent)!r})
from pathlib import Path
from support.cluster import shared_cluster
with shared_cluster(Path({str(tmp_path)!r})) as cluster:
    assert cluster.status()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", user], check=False)
    assert wait_until(lambda: not (tmp_path / "run").exists())
    assert not Cluster(tmp_path).status()


def test_the_last_user_takes_the_cluster_down(tmp_path: Path) -> None:
    need_cluster()
    with shared_cluster(tmp_path) as first:
        with shared_cluster(tmp_path) as second:
            assert second.status()
        assert first.status()
    assert not first.status()


# ------------------------------------------------------------------------------------------------ Slurm


def test_a_job_runs_on_two_nodes(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2\nsrun hostname | sort\npwd\n"
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.ok
    *hosts, cwd = job.output.splitlines()
    assert two_by_two(hosts)
    assert cwd == str(tmp_path)


def test_a_job_finds_the_running_python(slurm_cluster: Cluster, tmp_path: Path) -> None:
    job = slurm_cluster.wait(slurm_cluster.sbatch("#!/bin/bash\ncommand -v python3\n", tmp_path))
    assert job.output.strip() == str(Path(sys.executable).with_name("python3"))


@pytest.mark.parametrize(
    ("body", "exit_code", "state"),
    [("exit 7", 7, "FAILED"), ("kill -9 $$", 137, "FAILED"), ("true", 0, "COMPLETED")],
)
def test_the_status_of_a_job(
    slurm_cluster: Cluster, tmp_path: Path, body: str, exit_code: int, state: str
) -> None:
    job = slurm_cluster.wait(slurm_cluster.sbatch(f"#!/bin/bash\n{body}\n", tmp_path))
    assert (job.exit_code, job.state) == (exit_code, state)


def test_output_in_a_directory_with_blanks(slurm_cluster: Cluster, tmp_path: Path) -> None:
    place = tmp_path / "a b"
    place.mkdir()
    job = slurm_cluster.wait(slurm_cluster.sbatch("#!/bin/bash\necho häß >&2\n", place, "--output=x %j.log"))
    assert job.output == "häß\n"
    assert job.output_path == place / f"x {job.id}.log"


def test_a_job_that_takes_too_long_is_cancelled(slurm_cluster: Cluster, tmp_path: Path) -> None:
    job_id = slurm_cluster.sbatch("#!/bin/bash\nsleep 60\n", tmp_path)
    with pytest.raises(TimeoutError, match=rf"job {job_id} is"):
        slurm_cluster.wait(job_id, timeout=1)
    assert slurm_cluster.wait(job_id, timeout=20).state == "CANCELLED"


def test_devices_can_be_asked_for(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = "#!/bin/bash\necho $CUDA_VISIBLE_DEVICES\n"
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path, "--nodes=2", "--gpus-per-node=4"))
    assert job.output.strip() == "0,1,2,3"
    assert slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path, "--nodes=2", "--gres=npu:8")).ok


@pytest.mark.parametrize("mpirun", ["mpirun", "/usr/bin/mpirun"])
def test_mpirun_reaches_both_nodes(slurm_cluster: Cluster, tmp_path: Path, mpirun: str) -> None:
    need_command(mpirun)
    # On a machine that has much more to do than it can, the mpirun of Open MPI 5 may hang when all its programs have ended.
    script = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2\n"
    script += f"for i in 1 2; do timeout 100 {mpirun} -np 4 hostname > hosts && break; done; cat hosts\n"
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path))
    assert job.ok, job.output
    assert two_by_two(sorted(job.output.split()))
