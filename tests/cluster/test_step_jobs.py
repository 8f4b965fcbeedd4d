"""Jobs of several steps on the test cluster."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest
from support import jobs
from support.cluster import Cluster
from support.jobs import PROBE
from support.story import AnyCluster, finish, path_for
from support.waiting import wait_for

pytestmark = pytest.mark.usefixtures("warm_python")

HEAD = """
[resources]
nodes = 2
ranks_per_node = 2
accelerator = "cpu"
[launch]
launcher = "torchrun"
"""
THREE = f"""
[[step]]
command = ["bash", "-c", "mkdir -p seen/1; PROBE_DIR=seen/1 python3 {PROBE} 'a b'"]
launcher = "srun"
nodes = 1
ranks_per_node = 1
[[step]]
command = ["bash", "-c", "mkdir -p seen/2; PROBE_DIR=seen/2 python3 {PROBE} $JOBGEN_RUN_DIR"]
[[step]]
command = ["bash", "-c", "mkdir -p seen/3; PROBE_DIR=seen/3 python3 {PROBE}"]
launcher = "mpirun"
ranks_per_node = 1
"""


def script(folder: Path, steps: str, *options: str) -> str:
    (folder / "job.toml").write_text(HEAD + steps)
    done = jobs.jobgen("slurm", "--job", folder / "job.toml", *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_each_step_has_its_launcher_nodes_and_ranks(slurm_cluster: Cluster, tmp_path: Path) -> None:
    job = slurm_cluster.wait(slurm_cluster.sbatch(script(tmp_path, THREE), tmp_path))
    assert job.ok, job.output
    ports = set()
    given = (jobs.run_dir(tmp_path / "runs") / "hosts").read_text().split()
    assert len(given) == 2
    for step, hosts, each in ((1, given[:1], 1), (2, given, 2), (3, given, 1)):
        ranks = jobs.ranks_in(tmp_path / f"seen/{step}")
        jobs.check_world(ranks, hosts, each)
        ports |= {rank.env["MASTER_PORT"] for rank in ranks}
        assert f"step {step} of 3, " in job.output
        logs = jobs.run_dir(tmp_path / "runs") / f"attempt-1/step-{step}/statuses"
        assert len(logs.read_text().splitlines()) == len(ranks)
    assert len(ports) == 3
    assert jobs.ranks_in(tmp_path / "seen/1")[0].argv == ["a b"]


PROBED = f"mkdir -p seen/$0; PROBE_DIR=seen/$0 python3 {PROBE}; touch ended-$0; "
PROBED += "until [[ -e ended-$1 ]]; do sleep 0.1; done"
BESIDE = f"""
[[step]]
command = ["bash", "-c", "{PROBED}", "1", "2"]
nodes = 1
[[step]]
command = ["bash", "-c", "{PROBED}", "2", "1"]
launcher = "{{launcher}}"
nodes = 1
parallel = true
[[step]]
command = ["bash", "-c", "{PROBED}", "3", "3"]
"""


@pytest.mark.parametrize(
    ("scheduler", "launcher"), [("slurm", "mpirun"), ("openpbs", "torchrun"), ("torque", "mpirun")]
)
def test_steps_at_the_same_time(request: pytest.FixtureRequest, scheduler: str, launcher: str) -> None:
    cluster: AnyCluster = request.getfixturevalue(f"{scheduler}_cluster")
    folder = cluster.folder("beside")
    folder.chmod(0o777)
    (folder / "path.sh").write_text(f"export PATH={shlex.quote(path_for(launcher, folder))}:$PATH\n")
    (folder / "job.toml").write_text(HEAD + BESIDE.format(launcher=launcher))
    done = jobs.jobgen(*cluster.words, "--job", folder / "job.toml", "--source", folder / "path.sh")
    assert (done.returncode, done.stderr) == (0, "")
    job = finish(cluster, cluster.submit(done.stdout, folder))
    assert job.ok, job.output
    worlds = [jobs.ranks_in(folder / f"seen/{step}") for step in (1, 2, 3)]
    hosts = [{rank.host for rank in world} for world in worlds]
    assert [len(world) for world in worlds] == [2, 2, 4]
    assert [len(one) for one in hosts] == [1, 1, 2]
    assert hosts[0] | hosts[1] == hosts[2]
    assert [rank.env["MASTER_ADDR"].partition(".")[0] for rank in worlds[1]] == [*hosts[1]] * 2


def test_the_first_step_that_fails_ends_the_job(slurm_cluster: Cluster, tmp_path: Path) -> None:
    steps = """
[[step]]
command = ["bash", "-c", "echo one >> seen"]
launcher = "srun"
nodes = 1
ranks_per_node = 1
[[step]]
command = ["bash", "-c", "echo two >> seen; exit 7"]
nodes = 1
ranks_per_node = 1
[[step]]
command = ["bash", "-c", "echo three >> seen"]
"""
    job = slurm_cluster.wait(slurm_cluster.sbatch(script(tmp_path, steps), tmp_path))
    assert job.exit_code == 7, job.output
    assert "step 2 of 3 ended with status 7" in job.output
    assert (tmp_path / "seen").read_text().split() == ["one", "two"]


@pytest.mark.parametrize(
    ("cancelled", "parallel"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_a_signal_reaches_the_step_that_runs(
    slurm_cluster: Cluster, tmp_path: Path, cancelled: bool, parallel: bool
) -> None:
    saving = (
        "trap 'echo saved >> seen; exit 75' USR1; echo on >> began; for i in {1..600}; do sleep 0.1; done"
    )
    saves = f'[[step]]\ncommand = ["bash", "-c", "{saving}"]\nlauncher = "mpirun"\n'
    if parallel:
        saves = f"{saves}nodes = 1\n{saves}nodes = 1\nparallel = true\n"
    steps = f"""
[[step]]
command = ["true"]
launcher = "srun"
{saves}[[step]]
command = ["touch", "third"]
"""
    job_id = slurm_cluster.sbatch(script(tmp_path, steps), tmp_path)
    began = tmp_path / "began"
    wait_for(lambda: began.exists() and len(began.read_text().split()) == 4)
    time.sleep(1)
    if cancelled:
        slurm_cluster.cancel(job_id)
    else:
        slurm_cluster.exec("head", ["scancel", "--batch", "--signal=USR1", job_id])
    job = slurm_cluster.wait(job_id)
    assert not (tmp_path / "third").exists()
    if not cancelled:  # Slurm itself ends the ranks of a cancelled job
        assert (tmp_path / "seen").read_text().split() == ["saved"] * 4
        assert job.exit_code == 75, job.output
        # Submitted again, the job goes on with the second step.
        run = jobs.run_dir(tmp_path / "runs")
        assert (run / "steps-done").read_text() == "1\n"
