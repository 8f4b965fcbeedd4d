"""``jobgen site new`` on the test cluster: the file that it writes is right, and jobs run by it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support import warm_python
from support.cluster import Cluster

from jobgen.sites.loader import load

GPU_JOB = ("--nodes", "2", "--gpus-per-node", "1", "--ranks-per-node", "1", "--no-preflight")


def jobgen(cluster: Cluster, cwd: Path, *words: str, check: bool = True, **env: str) -> tuple[int, str, str]:
    done = cluster.exec("head", [*warm_python.jobgen(), *words], cwd=cwd, env=env, check=check)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def site(slurm_cluster: Cluster, tmp_path: Path) -> Path:
    jobgen(slurm_cluster, tmp_path, "site", "new", "mini", "-o", "mini.toml")
    return tmp_path / "mini.toml"


def test_the_next_command_works_in_any_folder(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """One command, the command that it prints, and sbatch: from other folders."""
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(slurm_cluster.home)}
    _, command, remarks = jobgen(slurm_cluster, tmp_path, "site", "new", **home)
    assert re.search(
        r"a job of 2 nodes x 4 ranks.*: Job \d+ to start at .*\(sbatch --test-only\)", remarks
    ), remarks
    assert "fast network" in remarks
    there = tmp_path / "elsewhere"
    there.mkdir()
    words = shlex.split(command)[1:]
    at = words.index("--")
    # The devices of this cluster are names without hardware, which the preflight would notice.
    jobgen(slurm_cluster, there, *words[:at], "--no-preflight", *words[at:], **home)
    (there / "train.py").write_text("import os\nprint('seen', os.environ['RANK'])\n")
    job = slurm_cluster.wait(slurm_cluster.sbatch(there / "job.sh", there))
    assert sorted(line for line in job.output.splitlines() if line.startswith("seen")) == [
        f"seen {rank}" for rank in range(8)
    ], job.output
    _, found, _ = jobgen(slurm_cluster, there, "site", "detect", **home)
    assert found == "minicluster: the cluster in its configuration is minicluster\n"
    made = tmp_path / "config/jobgen/sites/minicluster.toml"
    made.write_text(f"{made.read_text()}# mine\n")
    status, _, remarks = jobgen(slurm_cluster, there, "site", "new", check=False, **home)
    assert (status, "the file already exists" in remarks) == (2, True)


def test_it_reads_the_modules(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """The function module of Environment Modules, in a login shell."""
    for name in ("cuda/11.8", "cuda/12.4", "mpi/openmpi/5.0", "miniforge3/24", "other/1"):
        (tmp_path / "modulefiles" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "modulefiles" / name).write_text("#%Module1.0\n")
    where = {"MODULEPATH": str(tmp_path / "modulefiles"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    jobgen(slurm_cluster, tmp_path, "site", "new", "-o", "mini.toml", **where)
    comments = [line for line in (tmp_path / "mini.toml").read_text().splitlines() if line.startswith("# ")]
    assert {
        "# CUDA: cuda/11.8, cuda/12.4",
        "# MPI: mpi/openmpi/5.0",
        "# conda: miniforge3/24",
        '# module = ["cuda/12.4", "mpi/openmpi/5.0"]',
    } <= {*comments}, comments


def test_a_file_for_all_users(slurm_cluster: Cluster, tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    (tmp_path / "shared").mkdir()
    _, command, _ = jobgen(slurm_cluster, tmp_path, "site", "new", "all", "--shared", "shared", **home)
    assert command.startswith(f"JOBGEN_SITE_PATH={tmp_path}/shared jobgen slurm --site all ")
    words = shlex.split(command)
    jobgen(slurm_cluster, tmp_path, *words[2:], JOBGEN_SITE_PATH=f"{tmp_path}/shared", **home)
    assert (tmp_path / "job.sh").exists()


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
    assert f"gpu:{queue.gpus}" in devices.split(",")


def test_a_job_of_it_runs_on_two_nodes(slurm_cluster: Cluster, site: Path) -> None:
    words = ("slurm", "--site", "mini", *GPU_JOB, "--output", "job.sh", "--", "hostname")
    jobgen(slurm_cluster, site.parent, *words)
    job = slurm_cluster.wait(slurm_cluster.sbatch(site.parent / "job.sh", site.parent))
    assert job.ok, job.output
    assert len(set(slurm_cluster.nodes) & set(job.output.split())) == 2, job.output


def test_options_of_srun_that_a_site_demands(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """As Setonix has it: the job asks for nodes and devices alone, each step for all of it again. There cores
    come with the devices; here they come with the whole node."""
    (tmp_path / "mini.toml").write_text(
        'extends = "setonix"\ntitle = "mini"\ndirectives = ["--exclusive"]\n[node]\ngpus = 4\ncores = 8\ncores_per_gpu = 2\n'
        '[rules]\nsrun_ranks = ["--cpu-bind=none"]\n[mandatory]\nqueue = "gpu"\n'
    )
    options = ("--account", "x", "--nodes", "2", "--accelerator", "rocm", "--no-preflight")
    for launcher in ("srun", "torchrun"):
        words = ("slurm", "--site", "mini", *options, "--launcher", launcher, "-o", f"{launcher}.sh")
        act = 'echo "seen $(hostname) $RANK of $WORLD_SIZE ${SLURM_STEP_GPUS:-none}"'
        jobgen(slurm_cluster, tmp_path, *words, "--", "bash", "-c", act)
        job = slurm_cluster.wait(slurm_cluster.sbatch(tmp_path / f"{launcher}.sh", tmp_path))
        assert job.ok, job.output
        seen = sorted(line.split()[2] for line in job.output.splitlines() if line.startswith("seen"))
        assert seen == sorted(map(str, range(8))), job.output
        assert "none" not in job.output


def test_beyond_its_limits_nothing_is_written(slurm_cluster: Cluster, site: Path) -> None:
    """A limit that only a file states is a warning; one that the machine has confirmed refuses the job."""
    site.write_text(site.read_text().replace('confidence = "machine"', 'confidence = "users"'))
    words = ("slurm", "--site", "mini", "--nodes", "4", "--output", "job.sh")
    home = {"XDG_CONFIG_HOME": str(site.parent / "config")}
    status, _, said = jobgen(slurm_cluster, site.parent, *words, check=False, **home)
    assert (status, "jobgen: warning: --nodes 4 (command line): queue gpu" in said) == (0, True), said
    (site.parent / "job.sh").unlink()
    jobgen(slurm_cluster, site.parent, "site", "refresh", "mini.toml", **home)
    status, _, said = jobgen(slurm_cluster, site.parent, *words, check=False, **home)
    assert status == 2, said
    assert "takes 1 to 3 nodes" in said
    assert not (site.parent / "job.sh").exists()
