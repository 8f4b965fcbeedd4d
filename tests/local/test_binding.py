"""Which cores a rank keeps to, as each rank sees it itself, and how many of them are asked for."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from support import jobs, warm_python
from support.mpich import mpich_bin
from support.require import absent, need_command, need_package

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.plan.plan import Plan, resolve
from jobgen.rendering.environment import environment_lines
from jobgen.rendering.render import render

WHERE = ["bash", "-c", 'echo "rank $RANK: $(grep Cpus_allowed_list /proc/self/status) $OMP_NUM_THREADS"']
pytestmark = pytest.mark.usefixtures("warm_python")


def run(cwd: Path, *options: str, first: str = "") -> tuple[int, str, dict[int, str]]:
    """Two ranks here: the status, what was printed, and the processors of each rank."""
    script = jobs.render("local", "--ranks-per-node", "2", *options, program=WHERE)
    path = os.pathsep.join(filter(None, [first, *warm_python.folders(), "/usr/local/bin:/usr/bin:/bin"]))
    done = subprocess.run(
        ["bash", "-s"],
        input=script,
        env={"HOME": str(cwd), "PATH": path},
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seen = re.findall(r"^rank (\d): Cpus_allowed_list:\t(\S+)", done.stdout, re.MULTILINE)
    return done.returncode, done.stdout, {int(rank): cpus for rank, cpus in seen}


def two_processors() -> list[int]:
    need_command("lscpu", "taskset")
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        absent("this machine has one processor")
    return cpus[:2]


@pytest.mark.parametrize("launcher", ["mpirun", "mpich", "torchrun", "deepspeed"])
def test_each_rank_keeps_to_its_list(tmp_path: Path, launcher: str) -> None:
    first, second = two_processors()
    options, path = ["--launcher", launcher], ""
    if launcher == "mpich":
        options, path = ["--launcher", "mpirun", "--mpi", "mpich"], str(mpich_bin())
    elif launcher != "mpirun":
        need_package("torch", "deepspeed")
    status, output, seen = run(tmp_path, *options, "--cpu-bind", f"{second};{first}", first=path)
    assert status == 0, output
    assert seen == {0: str(second), 1: str(first)}


def test_shares_of_the_cores(tmp_path: Path) -> None:
    """Of two cores of two threads, a rank gets one, with both threads, however they are numbered."""
    a, b = two_processors()
    topology = f"# NODE,CORE,CPU\\n0,1,{b}\\n0,0,{a}\\n0,0,{a + 1000}\\n0,1,{b + 1000}\\n"
    path = jobs.path_with(tmp_path / "bin", lscpu=f"printf '{topology}'")
    status, output, seen = run(tmp_path, "--launcher", "mpirun", "--cpu-bind", "cores", first=path)
    assert status == 0, output
    assert seen == {0: str(a), 1: str(b)}


@pytest.mark.parametrize(("nodes", "shares"), [((0, 1), "ab"), ((1, 0), "ba"), ((0, 0), "both")])
def test_shares_of_the_numa_nodes(tmp_path: Path, nodes: tuple[int, int], shares: str) -> None:
    a, b = two_processors()
    path = jobs.path_with(tmp_path / "bin", lscpu=f"printf '{nodes[0]},0,{a}\\n{nodes[1]},1,{b}\\n'")
    status, output, seen = run(tmp_path, "--launcher", "mpirun", "--cpu-bind", "numa", first=path)
    assert status == 0, output
    both = f"{a}-{b}" if b == a + 1 else f"{a},{b}"
    assert (
        seen
        == {"ab": {0: str(a), 1: str(b)}, "ba": {0: str(b), 1: str(a)}, "both": {0: both, 1: both}}[shares]
    )


def test_more_ranks_than_cores_are_refused_where_they_run(tmp_path: Path) -> None:
    a, _ = two_processors()
    path = jobs.path_with(tmp_path / "bin", lscpu=f"echo 0,0,{a}")
    status, output, _ = run(tmp_path, "--launcher", "mpirun", "--cpu-bind", "cores", first=path)
    assert status == 70
    assert "2 ranks do not fit the processors" in output


def test_processors_that_are_not_there_are_refused(tmp_path: Path) -> None:
    two_processors()
    status, output, _ = run(tmp_path, "--launcher", "mpirun", "--cpu-bind", "8190;8191")
    assert status == 70
    assert "cannot bind rank" in output


@pytest.mark.parametrize("exist", [True, False])
def test_processors_that_a_site_lists(tmp_path: Path, exist: bool) -> None:
    """Without them a rank runs where it may."""
    first, second = map(str, two_processors()) if exist else ("8190", "8191")
    spec = read_spec("local", {"ranks_per_node": "2", "launcher": "mpirun"}, WHERE)
    script = render(resolve(spec._replace(cpu_bind=("site", (second, first)))))
    env = {
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join([*warm_python.folders(), "/usr/local/bin:/usr/bin:/bin"]),
    }
    done = subprocess.run(["bash"], input=script, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = set(re.findall(r"^rank (\d): Cpus_allowed_list:\t(\S+)", done.stdout, re.MULTILINE))
    assert (seen == {("0", second), ("1", first)}) is exist
    assert len(seen) == 2
    assert (
        "cannot bind rank 0 to the processors 8191, which its site lists" in done.stderr + done.stdout
    ) is not exist


def plan(scheduler: str, **options: str) -> Plan:
    return resolve(read_spec(scheduler, {"gpus_per_node": "4", **options}))


def test_cores_of_a_rank_and_of_a_node() -> None:
    assert plan("slurm").resources.cpus[:3] == (2, 8, 2)
    assert plan("slurm", cpus_per_node="64").resources.cpus[:3] == (16, 64, 16)
    assert plan("slurm", cpus_per_node="64", cpus_per_rank="7").resources.cpus[:3] == (7, 64, 16)
    assert plan("pbs", cpus_per_node="67").resources.cpus[:3] == (16, 67, 16)
    assert plan("pbs", cpu_bind="1-7:9-15:17-23:25-31,33").resources.cpus[:3] == (7, 28, 7)


@pytest.mark.parametrize(
    ("scheduler", "options", "said"),
    [
        ("slurm", {"cpus_per_node": "3"}, "4 ranks a node need 4 cores; use 4 or more"),
        (
            "pbs",
            {"cpus_per_node": "31", "cpus_per_rank": "8"},
            "4 ranks of 8 cores are 32 a node; use 32 or more",
        ),
        ("slurm", {"cpus_per_node": "66"}, "use 64 or 68"),
        ("slurm", {"cpu_bind": "0-1;2-3"}, "has 2 lists for 4 ranks"),
        ("slurm", {"cpu_bind": "0;1;2;3", "cpus_per_rank": "2"}, "0 is not enough for the 2 cores of rank 0"),
        ("slurm", {"cpu_bind": "core"}, "must be none, cores, numa, or a list"),
        ("slurm", {"cpu_bind": "3-1"}, "must be none, cores, numa, or a list"),
        ("slurm", {"cpu_bind": "0;$(id)"}, "must be none, cores, numa, or a list"),
        ("slurm", {"interface": "hsn0 hsn1"}, "must be network interfaces"),
        ("slurm", {"interface": "^lo;id"}, "must be network interfaces"),
        ("slurm", {"interface": "eth0,^lo"}, "must be network interfaces"),
        (
            "slurm",
            {"interface": "^lo", "accelerator": "xpu"},
            "names to exclude are for NVIDIA GPUs, Ascend NPUs or AMD GPUs; name the interface to use",
        ),
    ],
)
def test_what_does_not_fit_is_refused(scheduler: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(JobgenError, match=re.escape(said)):
        plan(scheduler, **options)


@pytest.mark.parametrize(
    ("options", "variables"),
    [
        ({}, "NCCL_SOCKET_IFNAME=a,b GLOO_SOCKET_IFNAME=a TP_SOCKET_IFNAME=a"),
        ({"interface": "^lo,docker"}, "NCCL_SOCKET_IFNAME='^lo,docker'"),
        ({"accelerator": "rocm", "interface": "^=lo"}, "NCCL_SOCKET_IFNAME='^=lo'"),
        ({"accelerator": "npu"}, "HCCL_SOCKET_IFNAME='=a,b' GLOO_SOCKET_IFNAME=a TP_SOCKET_IFNAME=a"),
        ({"accelerator": "npu", "interface": "^lo"}, "HCCL_SOCKET_IFNAME='^lo'"),
        ({"accelerator": "cpu"}, "GLOO_SOCKET_IFNAME=a TP_SOCKET_IFNAME=a"),
        ({"accelerator": "xpu"}, "CCL_KVS_IFACE=a FI_TCP_IFACE=a GLOO_SOCKET_IFNAME=a TP_SOCKET_IFNAME=a"),
        (
            {"accelerator": "cpu", "launcher": "mpirun"},
            "GLOO_SOCKET_IFNAME=a TP_SOCKET_IFNAME=a OMPI_MCA_btl_tcp_if_include=a,b",
        ),
        (
            {"accelerator": "xpu", "launcher": "mpirun", "mpi": "intel"},
            "CCL_KVS_IFACE=a FI_TCP_IFACE=a GLOO_SOCKET_IFNAME=a TP_SOCKET_IFNAME=a I_MPI_HYDRA_IFACE=a",
        ),
        (
            {"accelerator": "cpu", "launcher": "mpirun", "mpi": "mpich"},
            "GLOO_SOCKET_IFNAME=a TP_SOCKET_IFNAME=a HYDRA_IFACE=a FI_TCP_IFACE=a",
        ),
        ({"launcher": "mpirun", "interface": "^lo"}, "NCCL_SOCKET_IFNAME='^lo'"),
    ],
)
def test_the_variables_of_an_interface(options: dict[str, str], variables: str) -> None:
    """NCCL and HCCL read a list and names to exclude, Open MPI a list; all others take one name."""
    none = {"gpus_per_node": "0"} if options.get("accelerator") == "cpu" else {}
    lines = environment_lines(plan("slurm", **{"interface": "a,b", "ranks_per_node": "2", **none, **options}))
    assert lines[1:] == ("# jobgen: disable=fixed-interface", f"export {variables}")
