"""What clusters do to jobs, done to real ones: the end of the wall time, signals, requeues, ranks and nodes that
die, full disks. Each time what the user sees, and that the resumed training ends in the very same weights."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import jobs
from support.cluster import Cluster, ended, wait_for
from support.jobs import PROBE
from support.pbs import PbsCluster
from support.require import need_package

from jobgen.runs import node_files

# One after the other: each has four ranks on the cores of one machine.
pytestmark = [pytest.mark.xdist_group("survival"), pytest.mark.timeout(900)]

SUPPORT = Path(PROBE).parent
STOPPABLE = SUPPORT / "stoppable.py"
TWO_BY_TWO = (
    *("--nodes", "2", "--ranks-per-node", "2", "--accelerator", "cpu", "--cpus-per-rank", "1"),
    "--no-preflight",
)
TRAINING = (
    *("--task", "digits", "--engine", "ddp", "--model", "slow:build", "--batch-size", "32", "--epochs"),
    "6",
)
STEPS = 6 * 12  # 1437 samples in batches of 4 x 32
ENDS_SOON = """overrides() {
  job_find_end() { job_ends=$(($(date +%s) + (job_attempt == 1 ? 40 : 600) + job_grace)); }
}
"""
ZERO = tuple("deepspeed" if word == "ddp" else word for word in (*TRAINING, "--zero-stage", "1"))


def rendered(scheduler: str, *options: object, program: object = TRAINING) -> str:
    where = ("--env", f"PYTHONPATH={SUPPORT}") if program[0] == "--task" else ()  # type: ignore[index]
    return jobs.render(scheduler, *TWO_BY_TWO, *where, *options, program=program)  # type: ignore[arg-type]


def steps_done(directory: Path) -> int:
    """The last step that the metrics of the only job in ``directory`` tell of."""
    files = list(directory.glob("runs/*/metrics.jsonl"))
    lines = files[0].read_text().splitlines() if files else []
    return max([0, *(line.count('"event": "step"') and _step(line) for line in lines)])


def _step(line: str) -> int:
    return int(line.partition('"step": ')[2].partition(",")[0])


def weights(directory: Path, out: Path) -> bytes:
    """The exported weights of the run in ``directory``."""
    command = [sys.executable, "-m", "jobgen.train", "export", directory, out / "weights.safetensors"]
    env = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (out / "weights.safetensors").read_bytes()


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    need_package("torch", "deepspeed", "mpi4py", "sklearn", "safetensors")


@pytest.fixture(scope="module")
def undisturbed(slurm_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    """The weights that a run ends in which nothing happens to, by engine."""
    found = {}
    for engine, program in (("ddp", TRAINING), ("deepspeed", ZERO)):
        place = tmp_path_factory.mktemp(engine)
        script = rendered("slurm", "--launcher", "srun", program=[*program, "--save-every-epochs", "6"])
        job = slurm_cluster.wait(slurm_cluster.sbatch(script, place), 400)
        assert job.ok, job.output
        found[engine] = weights(jobs.run_dir(place / "runs"), place)
    return found


# ---------------------------------------------------------------------------------------------- the end of the time


def test_the_time_ends_and_the_requeued_job_goes_on(
    slurm_cluster: Cluster, tmp_path: Path, undisturbed: Mapping[str, bytes]
) -> None:
    """And no step of the run is done twice."""
    script = rendered("slurm", "--launcher", "mpirun", "--requeue", "9", "--env", "SLOW_PAUSE=0.5")
    # Slurm counts in minutes, which is long: here the script itself says when the time is over.
    script = script.replace("\nlaunch() {\n", f"\n{ENDS_SOON}\nlaunch() {{\n")
    assert ENDS_SOON in script
    job = ended(slurm_cluster, slurm_cluster.sbatch(script, tmp_path))
    assert job.ok, job.output
    directory = jobs.run_dir(tmp_path / "runs")
    attempts = sorted(path.name for path in directory.glob("attempt-*"))
    assert len(attempts) >= 2, job.output
    assert "attempt 1 of 10; requeued" in job.output
    assert job.output.count("time is nearly over") >= len(attempts) - 1  # says the training, or the script
    for attempt in attempts:
        assert (directory / attempt / "control").read_text() in ("", "save deadline\n")
        assert " signal " not in (directory / attempt / "events").read_text()
    steps = [
        _step(line)
        for line in (directory / "metrics.jsonl").read_text().splitlines()
        if '"event": "step"' in line
    ]
    assert steps == sorted(set(steps))
    assert steps[-1] == STEPS
    assert jobs.status_of(directory)["state"] == "finished"


def test_the_deadline_is_slurm_s_own(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = rendered(
        "slurm",
        "--launcher",
        "srun",
        "--walltime",
        "1h",
        "--grace",
        "90s",
        *probing(tmp_path),
        program=[STOPPABLE],
    )
    begun = time.time()
    job = slurm_cluster.wait(slurm_cluster.sbatch(script, tmp_path, "--time=2"))
    assert job.exit_code == 75, job.output
    assert 20 < time.time() - begun < 60
    assert stopped(tmp_path) == ["deadline 1"] * 4
    assert f"cd '{jobs.run_dir(tmp_path / 'runs')}' && sbatch job.sh" in job.output


def probing(directory: Path, **more: object) -> list[str]:
    (directory / "seen").mkdir(exist_ok=True)
    return jobs.env_options({"PROBE_DIR": directory / "seen", **more})  # type: ignore[dict-item]


def stopped(directory: Path) -> list[str]:
    return [(directory / "seen" / f"stopped-{rank}").read_text() for rank in range(4)]


# ------------------------------------------------------------------------------------------------------ signals

LAUNCHES = {
    "srun": ["--launcher", "srun"],
    "mpirun": ["--launcher", "mpirun"],
    "mpirun-debian": ["--launcher", "mpirun"],
    "mpirun-ssh": ["--launcher", "mpirun", "--remote", "ssh"],
    "mpich": ["--launcher", "mpirun", "--mpi", "mpich"],
    "torchrun": ["--launcher", "torchrun"],
    "torchrun-ssh": ["--launcher", "torchrun", "--remote", "ssh"],
    "deepspeed": ["--launcher", "deepspeed"],
    "deepspeed-pdsh": ["--launcher", "deepspeed", "--remote", "ssh"],
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_signal_to_the_script_reaches_every_rank(slurm_cluster: Cluster, tmp_path: Path, name: str) -> None:
    """TERM, which would kill the ranks of any launcher, arrives as USR2, and they leave in their own time."""
    script = rendered(
        "slurm", *LAUNCHES[name], "--signal", "USR2@60", *probing(tmp_path), program=[STOPPABLE]
    )
    assert "#SBATCH --signal=B:USR2@60\n" in script
    path = {"PATH": jobs.path_of(slurm_cluster, tmp_path, name)}
    job = slurm_cluster.sbatch(script, tmp_path, env=path)
    wait_for(lambda: len(list((tmp_path / "seen").glob("ready-*"))) == 4)
    slurm_cluster.exec("head", ["scancel", "--batch", "--signal=TERM", job])
    done = slurm_cluster.wait(job)
    assert done.exit_code == 75, done.output
    assert stopped(tmp_path) == ["SIGUSR2 1"] * 4
    assert "got TERM: asking every rank to save and exit" in done.output


def test_a_second_signal_stops_at_once(slurm_cluster: Cluster, tmp_path: Path) -> None:
    program = [
        "bash",
        "-c",
        "trap : USR1; touch $PROBE_DIR/ready-$RANK; for i in {1..600}; do sleep 0.1; done",
    ]
    script = rendered("slurm", "--launcher", "mpirun", *probing(tmp_path), program=program)
    job = slurm_cluster.sbatch(script, tmp_path)
    wait_for(lambda: len(list((tmp_path / "seen").glob("ready-*"))) == 4)
    for signal in ("USR1", "USR1"):
        slurm_cluster.exec("head", ["scancel", "--batch", f"--signal={signal}", job])
        time.sleep(2.1)  # until then it counts as the same one
    done = slurm_cluster.wait(job, 100)
    assert done.state == "FAILED", done.output
    assert "got USR1 again: stopping at once" in done.output


@pytest.mark.parametrize(
    ("launcher", "engine"), [("srun", "ddp"), ("torchrun", "ddp"), ("mpirun", "deepspeed")]
)
def test_a_training_that_was_told_to_leave_goes_on_as_if_nothing_had_been(
    slurm_cluster: Cluster, tmp_path: Path, undisturbed: Mapping[str, bytes], launcher: str, engine: str
) -> None:
    program = TRAINING if engine == "ddp" else ZERO
    script = rendered("slurm", "--launcher", launcher, program=[*program, "--save-every-epochs", "6"])
    job = slurm_cluster.sbatch(script, tmp_path)
    wait_for(lambda: steps_done(tmp_path) >= 10)
    slurm_cluster.exec("head", ["scancel", "--batch", "--signal=USR1", job])
    first = slurm_cluster.wait(job)
    assert first.exit_code == 75, first.output
    directory = jobs.run_dir(tmp_path / "runs")
    status = jobs.status_of(directory)
    assert (status["state"], status["reason"]) == ("resumable", "signal")
    assert 10 <= status["step"] < STEPS
    second = slurm_cluster.wait(slurm_cluster.sbatch(directory / "job.sh", directory), 400)
    assert second.ok, second.output
    assert (
        f"resumes from {directory}/checkpoints/{status['checkpoint']}, after step {status['step']}"
        in second.output
    )
    assert weights(directory, tmp_path) == undisturbed[engine]
    assert jobs.run_dir(tmp_path / "runs") == directory  # one for the whole chain
    for attempt in (directory / "attempt-1", directory / "attempt-2"):
        assert [rank.number for rank in node_files.ranks(attempt)] == [0, 1, 2, 3]
        assert jobs.written_by(attempt, 0)  # the others have nothing to say


# ------------------------------------------------------------------------------------------------------ requeues


def test_requeues_have_a_bound(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = rendered(
        "slurm", "--launcher", "srun", "--requeue", "2", *probing(tmp_path), program=["bash", "-c", "exit 75"]
    )
    job = ended(slurm_cluster, slurm_cluster.sbatch(script, tmp_path))
    assert job.exit_code == 75, job.output
    assert len(list(jobs.run_dir(tmp_path / "runs").glob("attempt-*"))) == 3
    assert "not requeued: this was attempt 3, of 2 + 1" in job.output


@pytest.mark.parametrize(
    ("steps", "attempts"), [("echo 7", 2), ("echo $((JOBGEN_ATTEMPT < 3 ? JOBGEN_ATTEMPT : 3))", 4)]
)
def test_an_attempt_that_saves_no_further_step_is_the_last(
    slurm_cluster: Cluster, tmp_path: Path, steps: str, attempts: int
) -> None:
    program = ["bash", "-c", f"{steps} > $JOBGEN_RUN_DIR/saved-step; exit 75"]
    script = rendered("slurm", "--launcher", "srun", "--requeue", "5", program=program)
    job = ended(slurm_cluster, slurm_cluster.sbatch(script, tmp_path))
    assert job.exit_code == 75, job.output
    assert len(list(jobs.run_dir(tmp_path / "runs").glob("attempt-*"))) == attempts
    assert "not requeued: this attempt saved no step beyond" in job.output


def test_a_cancelled_job_is_not_requeued(slurm_cluster: Cluster, tmp_path: Path) -> None:
    script = rendered(
        "slurm", "--launcher", "srun", "--requeue", "5", *probing(tmp_path), program=[STOPPABLE]
    )
    job = slurm_cluster.sbatch(script, tmp_path)
    wait_for(lambda: len(list((tmp_path / "seen").glob("ready-*"))) == 4)
    slurm_cluster.exec("head", ["scancel", job])
    done = slurm_cluster.wait(job)
    assert done.state == "CANCELLED", done.output
    assert "requeued\n" not in done.output


@pytest.mark.parametrize("name", ["openpbs", "torque"])
def test_pbs_job_submits_itself_again(
    request: pytest.FixtureRequest, tmp_path: Path, undisturbed: Mapping[str, bytes], name: str
) -> None:
    """The deadline comes from the start and the walltime asked for, as PBS itself tells nothing."""
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    folder = cluster.folder("again")
    script = jobs.render(
        *(*cluster.words, *TWO_BY_TWO, "--launcher", "mpirun", "--venv", sys.prefix),
        *("--walltime", "80s", "--grace", "40s", "--requeue", "9"),
        *("--env", f"PYTHONPATH={SUPPORT}", "--env", "SLOW_PAUSE=0.5"),
        program=[*TRAINING, "--save-every-epochs", "6"],
    )
    job = cluster.submit(script, folder)
    seen = []
    for _ in range(10):
        seen.append(cluster.wait(job))
        if seen[-1].ok:
            break
        assert seen[-1].exit_code == 75, seen[-1].output
        [job] = re.findall(r"the next one is (\S+)", seen[-1].output)
    assert len(seen) >= 2
    assert seen[-1].ok, seen[-1].output
    assert weights(jobs.run_dir(folder / "runs"), tmp_path) == undisturbed["ddp"]


# ----------------------------------------------------------------------------------------------- what dies


def test_a_rank_that_is_killed_is_named_and_the_job_can_go_on(
    slurm_cluster: Cluster, tmp_path: Path, undisturbed: Mapping[str, bytes]
) -> None:
    script = rendered(
        "slurm", "--launcher", "srun", program=[*TRAINING, "--save-every", "6", "--save-every-epochs", "6"]
    )
    job = slurm_cluster.sbatch(script, tmp_path)
    wait_for(lambda: steps_done(tmp_path) >= 14)
    directory = jobs.run_dir(tmp_path / "runs")
    pid, host = jobs.process_of(directory / "attempt-1", 3)
    slurm_cluster.exec(host, ["kill", "-9", pid])
    first = slurm_cluster.wait(job)
    assert first.exit_code == 137, first.output
    assert f"rank 3 on {host} failed first, with status 137; the end of its log:" in first.output
    second = slurm_cluster.wait(slurm_cluster.sbatch(directory / "job.sh", directory), 400)
    assert second.ok, second.output
    assert "resumes from" in second.output
    assert weights(directory, tmp_path) == undisturbed["ddp"]


@pytest.mark.parametrize("moment", ["training", "saving"])
def test_a_node_that_dies(
    frail_cluster: Cluster, tmp_path: Path, undisturbed: Mapping[str, bytes], moment: str
) -> None:
    every = {"training": "6", "saving": "1"}[moment]  # nearly always in the middle of a save
    script = rendered(
        "slurm",
        "--launcher",
        "srun",
        "--requeue",
        "3",
        "--hang-timeout",
        "60s",
        program=[*TRAINING, "--save-every", every, "--save-every-epochs", "6"],
    )
    job = frail_cluster.sbatch(script, tmp_path)
    wait_for(lambda: steps_done(tmp_path) >= 14)
    frail_cluster.kill("node2")
    directory = jobs.run_dir(tmp_path / "runs")
    wait_for(lambda: "node2 does not answer" in (tmp_path / f"jobgen-{job}.log").read_text(), 300)
    time.sleep(2)  # in the second in which it ended Slurm would not launch the job again: "already killed"
    frail_cluster.exec("head", ["scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=dead"])
    done = ended(frail_cluster, job, 600)
    assert done.ok, done.output
    assert "rank 2 3 recorded no status" in done.output
    assert (directory / "bad-hosts").read_text() == "node2\tdoes not answer\n"
    assert [host for host, _ in jobs.hosts_in(directory)] == ["node1", "node3"]
    assert weights(directory, tmp_path) == undisturbed["ddp"]
