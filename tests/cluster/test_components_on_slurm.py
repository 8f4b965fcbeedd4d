"""Heterogeneous jobs on real clusters of Slurm: one world over all components."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import jobs, warm_python
from support.cluster import ROOT, Cluster
from support.jobs import PROBE, probing
from support.mpich import mpich_bin
from support.processes import gone
from support.waiting import wait_for

from jobgen.config import read_spec
from jobgen.errors import JobgenError
from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS
from jobgen.plan.plan import resolve

pytestmark = [pytest.mark.usefixtures("warm_python"), pytest.mark.timeout(600)]

# One node without devices and two with two each: in different queues, with different cores.
JOB = """
[job]
name = "two"
[resources]
cpus_per_rank = 1
[[component]]
ranks_per_node = 1
gpus_per_node = 0
cpus_per_rank = 4
queue = "cpu"
[[component]]
nodes = 2
gpus_per_node = 2
constraint = "a"
queue = "gpu"
"""


def rendered(folder: Path, launcher: str, *words: object, program: object = PROBE) -> str:
    (folder / "job.toml").write_text(JOB)
    options = ("slurm", "--job", folder / "job.toml", "--launcher", launcher, *words)
    return jobs.render(*options, program=[program])


LAUNCHERS_ALONE = ("srun", "mpirun", "torchrun")


@pytest.mark.parametrize("launcher", LAUNCHERS_ALONE)
def test_one_world_over_all_components(each_slurm: Cluster, launcher: str) -> None:
    one_world(each_slurm, launcher)


OTHERS = {
    "deepspeed": ("deepspeed", "", ()),
    "accelerate": ("accelerate", "", ()),
    "torchrun-ssh": ("torchrun", "", ("--remote", "ssh")),
    "mpirun-debian": ("mpirun", "debian", ()),
    "mpich": ("mpirun", "mpich", ("--mpi", "mpich")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_one_world_of_other_launchers(each_slurm: Cluster, tmp_path: Path, name: str) -> None:
    launcher, first, words = OTHERS[name]
    path = each_slurm.env["PATH"]
    if first == "debian":
        path = jobs.debian_path(tmp_path / "bin")
    elif first == "mpich":
        path = f"{mpich_bin()}:{path}"
    one_world(each_slurm, launcher, *words, path=path)


def one_world(cluster: Cluster, launcher: str, *words: str, path: str = "") -> None:
    folder = cluster.folder(launcher)
    script = rendered(folder, launcher, *words, *probing(folder))
    job = cluster.wait(cluster.sbatch(script, folder, env={"PATH": path or cluster.env["PATH"]}))
    assert job.ok, job.output
    assert "5 ranks in all" in job.output
    assert "was edited" not in job.output  # the runtime
    assert "srun: " not in job.output  # a warning
    hosts = jobs.hosts_in(jobs.run_dir(folder / "runs"))
    assert [slots for _, slots in hosts] == [1, 2, 2]
    ranks = jobs.ranks_in(folder / "seen")
    assert [rank.host for rank in ranks] == [host for host, slots in hosts for _ in range(slots)]
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")
    assert [tuple(map(rank.number, names)) for rank in ranks] == [
        (0, 5, 0, 1, 4),
        *((rank, 5, (rank - 1) % 2, 2, 1) for rank in range(1, 5)),
    ]
    assert {rank.env["MASTER_ADDR"] for rank in ranks} == {hosts[0][0]}
    if "ssh" not in words:  # it passes nothing of Slurm
        assert all(re.fullmatch(r"\d,\d", rank.env["CUDA_VISIBLE_DEVICES"]) for rank in ranks[1:])


def test_a_killed_rank_of_the_last_component_ends_all(each_slurm: Cluster) -> None:
    folder = each_slurm.folder("killed")
    script = rendered(folder, "srun", *probing(folder, "kill:4"))
    job = each_slurm.wait(each_slurm.sbatch(script, folder))
    assert job.exit_code == 137, job.output
    assert "rank 4 on node3 failed first, with status 137" in job.output
    assert gone(folder) == []


def test_status_and_cancel_know_it_by_the_id_of_the_first_component(each_slurm: Cluster) -> None:
    folder = each_slurm.folder("status")
    (folder / "jobgen.toml").write_text(JOB)

    def jobgen(*words: str) -> str:
        command = [*warm_python.jobgen(), *words]
        return each_slurm.exec("head", command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, timeout=120).stdout

    def state() -> str:
        [found] = json.loads(jobgen("status", "--json"))
        assert found["id"] == job
        return str(found["state"])

    job = jobgen("submit", "--launcher", "srun", "--", "sleep", "600").strip()
    assert job.isdecimal()
    wait_for(lambda: state() == "running", 60)
    jobgen("cancel", job)
    wait_for(lambda: state() == "cancelled", 60)
    queue = ["squeue", "--noheader", "--states=R,CG,PD", "--format=%i"]
    shown = [one for one in each_slurm.exec("head", queue).stdout.split() if one.startswith(f"{job}+")]
    assert shown == []


def test_an_array_of_them_is_refused_by_slurm_too(each_slurm: Cluster) -> None:
    folder = each_slurm.folder("array")
    (folder / "job.sh").write_text(rendered(folder, "srun"))
    command = ["sbatch", "--array=0-1", "job.sh"]
    done = each_slurm.exec("head", command, cwd=folder, check=False)
    assert (done.returncode, done.stdout) != (0, ""), done
    assert "array" in done.stderr.lower()


def planned(scheduler: str, words: str) -> str:
    """The sentence that refuses components under a launcher; empty if they are planned."""
    launcher, _, mpi = words.partition(" --mpi ")
    settings = {
        "launcher": launcher,
        "nodes": "1x1+2x2",
        "accelerator": "cpu",
        **({"mpi": mpi} if mpi else {}),
    }
    try:
        resolve(read_spec(scheduler, settings, ("./a",)))
    except JobgenError as error:
        return str(error)
    return ""


def test_the_table_of_launchers_holds() -> None:
    """Each launcher and each MPI is in one row; those with a column "tested" run above, the others are refused by name."""
    text = (ROOT / "docs/request.md").read_text()
    rows = re.findall(
        r"^\| (`[^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*)\|$", text.partition("| tested with")[2], re.M
    )
    cells = {name: row for names, *row in rows for name in re.findall(r"`([^`]+)`", names)}
    known = {*LAUNCHERS, *(f"mpirun --mpi {name}" for name in MPI_FLAVOURS)} - {"mpirun"}
    assert cells.keys() == known
    for name, (on_slurm, on_pbs, tested) in cells.items():
        for scheduler, cell in (("slurm", on_slurm), ("pbs", on_pbs)):
            refusal = planned(scheduler, name)
            assert (refusal != "") == (cell == "refused"), (name, scheduler, refusal)
            assert not refusal or name.split()[-1] in refusal.lower()
        own = name.removesuffix(" --mpi openmpi")
        runs = own in LAUNCHERS_ALONE or any(
            " ".join((one, *words)) == own for one, _, words in OTHERS.values()
        )
        assert tested.startswith("Slurm 22.05 and 24.11") == runs, name
