"""What clusters do to jobs, done to real ones: the end of the wall time, signals, requeues, ranks and nodes that
die. Each time what the user sees, and that the resumed training ends in the very same weights."""

from __future__ import annotations

import fcntl
import functools
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support import jobs, warm
from support.cluster import Cluster, ended
from support.jobs import PROBE
from support.pbs import PbsCluster
from support.require import need_package
from support.waiting import wait_for

from jobgen.runs import node_files

pytestmark = pytest.mark.timeout(900)

SUPPORT = Path(PROBE).parent
STOPPABLE = SUPPORT / "stoppable.py"
ON_CPUS = ("--accelerator", "cpu", "--cpus-per-rank", "1", "--no-preflight")
TWO_BY_TWO = ("--nodes", "2", "--ranks-per-node", "2", *ON_CPUS)
ONE = ("--ranks-per-node", "1", *ON_CPUS)
STEPS = 6 * 12  # 186 samples in batches of 2 x 8
TRAINING = (
    *("--dataset", "slow:data", "--model", "slow:build", "--batch-size", "8", "--epochs", "6"),
    *("--save-every", "6", "--engine"),
)
ENDS_SOON = """overrides() {
  job_find_end() { job_ends=$(($(date +%s) + (job_attempt == 1 ? 15 : 600) + job_grace_seconds)); }
}
"""


def rendered(*options: object, program: Sequence[object]) -> str:
    """Two ranks on each of two nodes."""
    return jobs.render("slurm", *TWO_BY_TWO, *options, program=program)


def training(engine: str, *options: object) -> str:
    """A training of one rank on each of two nodes."""
    pair = ("--nodes", "2", *ONE, "--env", f"PYTHONPATH={SUPPORT}")
    return jobs.render("slurm", *pair, *options, program=[*TRAINING, engine])


def steps_done(directory: Path) -> int:
    """The last step that the metrics of the only job in ``directory`` tell of."""
    files = list(directory.glob("runs/*/metrics.jsonl"))
    lines = files[0].read_text().splitlines() if files else []
    return max([0, *(line.count('"event": "step"') and _step(line) for line in lines)])


def _step(line: str) -> int:
    return int(line.partition('"step": ')[2].partition(",")[0])


def trained(words: Sequence[object], directory: Path, ranks: int = 1) -> None:
    """Run the training module on this machine."""
    env = {**os.environ, "JOBGEN_RUN_DIR": str(directory), "OMP_NUM_THREADS": "1"}
    status, _, said = warm.run([str(word) for word in words], env, SUPPORT, ranks)
    assert status == 0, said


def weights(directory: Path) -> bytes:
    """The exported weights of the run in ``directory``."""
    file = directory / "weights.safetensors"
    trained(["export", directory, file], directory)
    return file.read_bytes()


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    need_package("torch", "deepspeed", "mpi4py", "safetensors")


@pytest.fixture(scope="module")
def undisturbed(session_dir: Path) -> Callable[[str], bytes]:
    """The weights that a run ends in which nothing happens to, by engine; one worker trains, the others wait for it."""

    @functools.cache
    def made(engine: str) -> bytes:
        place = session_dir / f"undisturbed-{engine}"
        with place.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (place / "weights.safetensors").exists():
                place.mkdir(exist_ok=True)
                trained([*TRAINING, engine], place, ranks=2)
                weights(place)
        return (place / "weights.safetensors").read_bytes()

    return made


# ---------------------------------------------------------------------------------------------- the end of the time


def test_the_time_ends_and_the_requeued_job_goes_on(
    slurm_cluster: Cluster, tmp_path: Path, undisturbed: Callable[[str], bytes]
) -> None:
    """And no step of the run is done twice."""
    pause = ("--env", "SLOW_PAUSE=0.5")  # by the deadline it cannot have finished
    script = training("ddp", "--launcher", "mpirun", "--requeue", "9", *pause)
    # Slurm counts in minutes, which is long: here the script itself says when the time is over.
    script = script.replace("\nlaunch() {\n", f"\n{ENDS_SOON}\nlaunch() {{\n")
    assert ENDS_SOON in script
    job = ended(slurm_cluster, slurm_cluster.sbatch(script, tmp_path))
    assert job.ok, job.output
    directory = jobs.run_dir(tmp_path / "runs")
    attempts = sorted(path.name for path in directory.glob("attempt-*"))
    assert attempts == ["attempt-1", "attempt-2"], job.output
    assert "attempt 1 of 10; requeued" in job.output
    assert "time is nearly over" in job.output  # says the training, or the script
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
    assert weights(directory) == undisturbed("ddp")


def test_the_deadline_is_slurm_s_own(each_slurm: Cluster, tmp_path: Path) -> None:
    options = ("--launcher", "srun", "--walltime", "1h", "--grace", "105s")
    made = jobs.jobgen("slurm", *TWO_BY_TWO, *options, *probing(tmp_path), "--", STOPPABLE)
    assert "sets only JOBGEN_DEADLINE" in made.stderr  # which this program reads
    begun = time.time()
    job = each_slurm.wait(each_slurm.sbatch(made.stdout, tmp_path, "--time=2"))
    assert job.exit_code == 75, job.output
    assert time.time() - begun > 10
    assert stopped(tmp_path) == ["deadline 1"] * 4
    assert f"cd '{jobs.run_dir(tmp_path / 'runs')}' && sbatch job.sh" in job.output


def probing(directory: Path, **more: object) -> list[str]:
    (directory / "seen").mkdir(exist_ok=True)
    return jobs.env_options({"PROBE_DIR": directory / "seen", **more})  # type: ignore[dict-item]


def stopped(directory: Path) -> list[str]:
    return [(directory / "seen" / f"stopped-{rank}").read_text() for rank in range(4)]


# ------------------------------------------------------------------------------------------------------ signals

# `jobgen cancel` of a job of each other launcher is in test_matrix.py.
LAUNCHES = {
    "srun": ["--launcher", "srun"],
    "mpirun-debian": ["--launcher", "mpirun"],
    "mpirun-ssh": ["--launcher", "mpirun", "--remote", "ssh"],
    "torchrun-ssh": ["--launcher", "torchrun", "--remote", "ssh"],
    "deepspeed-pdsh": ["--launcher", "deepspeed", "--remote", "ssh"],
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_a_signal_to_the_script_reaches_every_rank(slurm_cluster: Cluster, tmp_path: Path, name: str) -> None:
    """TERM, which would kill the ranks of any launcher, arrives as USR2, and they leave in their own time."""
    script = rendered(*LAUNCHES[name], "--signal", "USR2@60", *probing(tmp_path), program=[STOPPABLE])
    assert "#SBATCH --signal=B:USR2@60\n" in script
    path = {"PATH": jobs.path_of(slurm_cluster, tmp_path, name)}
    job = slurm_cluster.sbatch(script, tmp_path, env=path)
    wait_for(lambda: len(list((tmp_path / "seen").glob("ready-*"))) == 4)
    slurm_cluster.exec("head", ["scancel", "--batch", "--signal=TERM", job])
    done = slurm_cluster.wait(job)
    assert done.exit_code == 75, done.output
    assert stopped(tmp_path) == ["SIGUSR2 1"] * 4
    assert "got TERM: asking every rank to save and exit" in done.output


def test_a_second_signal_stops_at_once(each_slurm: Cluster, tmp_path: Path) -> None:
    program = [
        "bash",
        "-c",
        "trap : USR1; touch $PROBE_DIR/ready-$RANK; for i in {1..600}; do sleep 0.1; done",
    ]
    script = rendered("--launcher", "mpirun", *probing(tmp_path), program=program)
    job = each_slurm.sbatch(script, tmp_path)
    wait_for(lambda: len(list((tmp_path / "seen").glob("ready-*"))) == 4)
    for signal in ("USR1", "USR1"):
        each_slurm.exec("head", ["scancel", "--batch", f"--signal={signal}", job])
        time.sleep(2.1)  # until then it counts as the same one
    done = each_slurm.wait(job, 100)
    assert done.state == "FAILED", done.output
    assert "got USR1 again: stopping at once" in done.output


@pytest.mark.parametrize(("launcher", "engine"), [("srun", "ddp"), ("mpirun", "deepspeed")])
def test_a_training_that_was_told_to_leave_and_then_killed_goes_on_as_if_nothing_had_been(
    slurm_cluster: Cluster, tmp_path: Path, undisturbed: Callable[[str], bytes], launcher: str, engine: str
) -> None:
    script = training(engine, "--launcher", launcher, "--env", "SLOW_PAUSE=0.5,0.5")
    job = slurm_cluster.sbatch(script, tmp_path)
    wait_for(lambda: steps_done(tmp_path) >= 4)
    slurm_cluster.exec("head", ["scancel", "--batch", "--signal=USR1", job])
    first = slurm_cluster.wait(job)
    assert first.exit_code == 75, first.output
    directory = jobs.run_dir(tmp_path / "runs")
    status = jobs.status_of(directory)
    assert (status["state"], status["reason"]) == ("resumable", "signal")
    assert 4 <= status["step"] < STEPS

    job = slurm_cluster.sbatch(directory / "job.sh", directory)
    wait_for(lambda: steps_done(tmp_path) >= status["step"] + 8)  # a checkpoint comes after every sixth
    pid, host = jobs.process_of(directory / "attempt-2", 1)
    slurm_cluster.exec(host, ["kill", "-9", pid])
    second = slurm_cluster.wait(job)
    assert second.exit_code == 137, second.output
    begins = f"resumes from {directory}/checkpoints/{status['checkpoint']}, after step {status['step']}"
    assert begins in second.output
    assert f"rank 1 on {host} failed first, with status 137; the end of its log:" in second.output

    third = slurm_cluster.wait(slurm_cluster.sbatch(directory / "job.sh", directory))
    assert third.ok, third.output
    [step] = re.findall(r"resumes from .*, after step (\d+)", third.output)
    assert status["step"] < int(step) < STEPS
    assert weights(directory) == undisturbed(engine)
    assert jobs.run_dir(tmp_path / "runs") == directory  # one for the whole chain
    for number in (1, 2, 3):
        attempt = directory / f"attempt-{number}"
        assert [rank.number for rank in node_files.ranks(attempt)] == [0, 1]
        assert jobs.written_by(attempt, 0)  # the other has nothing to say


# ------------------------------------------------------------------------------------------------------ requeues


def test_requeues_have_a_bound(each_slurm: Cluster, tmp_path: Path) -> None:
    script = jobs.render(
        "slurm", *ONE, "--launcher", "srun", "--requeue", "2", program=["bash", "-c", "exit 75"]
    )
    job = ended(each_slurm, each_slurm.sbatch(script, tmp_path))
    assert job.exit_code == 75, job.output
    assert len(list(jobs.run_dir(tmp_path / "runs").glob("attempt-*"))) == 3
    assert "not requeued: this was attempt 3, of 2 + 1" in job.output


def test_an_attempt_that_saves_no_further_step_is_the_last(slurm_cluster: Cluster, tmp_path: Path) -> None:
    """The third saves the same step as the second."""
    saves = "echo $((JOBGEN_ATTEMPT < 2 ? 1 : 2)) > $JOBGEN_RUN_DIR/saved-step; exit 75"
    script = jobs.render("slurm", *ONE, "--launcher", "srun", "--requeue", "5", program=["bash", "-c", saves])
    job = ended(slurm_cluster, slurm_cluster.sbatch(script, tmp_path))
    assert job.exit_code == 75, job.output
    assert len(list(jobs.run_dir(tmp_path / "runs").glob("attempt-*"))) == 3
    assert "not requeued: this attempt saved no step beyond 2" in job.output


def test_a_cancelled_job_is_not_requeued(each_slurm: Cluster, tmp_path: Path) -> None:
    script = rendered("--launcher", "srun", "--requeue", "5", *probing(tmp_path), program=[STOPPABLE])
    job = each_slurm.sbatch(script, tmp_path)
    wait_for(lambda: len(list((tmp_path / "seen").glob("ready-*"))) == 4)
    each_slurm.exec("head", ["scancel", job])
    done = each_slurm.wait(job)
    assert done.state == "CANCELLED", done.output
    assert "requeued\n" not in done.output


@pytest.mark.parametrize("name", ["openpbs", "torque"])
def test_pbs_job_submits_itself_again(request: pytest.FixtureRequest, name: str) -> None:
    """The deadline comes from the start and the walltime asked for, as PBS itself tells nothing."""
    cluster: PbsCluster = request.getfixturevalue(f"{name}_cluster")
    folder = cluster.folder("again")
    (folder / "seen").mkdir()
    (folder / "seen").chmod(0o777)
    script = jobs.render(
        *(*cluster.words, *TWO_BY_TWO, "--launcher", "mpirun", "--venv", sys.prefix),
        *("--walltime", "50s", "--grace", "30s", "--requeue", "9"),
        *jobs.env_options({"PROBE_DIR": folder / "seen", "PROBE_LAST": 2}),
        program=[STOPPABLE],
    )
    begun = time.time()
    first = cluster.wait(cluster.submit(script, folder))
    assert first.exit_code == 75, first.output
    assert time.time() - begun > 5
    assert stopped(folder) == ["deadline 1"] * 4
    [job] = re.findall(r"the next one is (\S+)", first.output)
    second = cluster.wait(job)
    assert second.ok, second.output
    assert stopped(folder) == ["deadline 2"] * 4
    assert len(list(jobs.run_dir(folder / "runs").glob("attempt-*"))) == 2


# ----------------------------------------------------------------------------------------------- what dies


def test_a_node_that_dies(
    slurm_cluster: Cluster, tmp_path: Path, undisturbed: Callable[[str], bytes]
) -> None:
    """Nearly always in the middle of a save: there is one after each step."""
    options = ("--launcher", "srun", "--requeue", "3", "--hang-timeout", "20s")
    job = slurm_cluster.sbatch(
        training("ddp", *options).replace("--save-every 6", "--save-every 1"), tmp_path
    )
    wait_for(lambda: steps_done(tmp_path) >= 7)
    slurm_cluster.kill("node2")
    try:
        directory = jobs.run_dir(tmp_path / "runs")
        wait_for(lambda: "node2 does not answer" in (tmp_path / f"jobgen-{job}.log").read_text())
        time.sleep(
            2
        )  # in the second in which it ended Slurm would not launch the job again: "already killed"
        slurm_cluster.exec("head", ["scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=dead"])
        done = ended(slurm_cluster, job)
    finally:
        slurm_cluster.revive("node2")
    assert done.ok, done.output
    assert "rank 1 recorded no status" in done.output
    assert (directory / "bad-hosts").read_text() == "node2\tdoes not answer\n"
    assert [host for host, _ in jobs.hosts_in(directory)] == ["node1", "node3"]
    assert weights(directory) == undisturbed("ddp")


# ---------------------------------------------------------------------------------------- heterogeneous jobs


@pytest.mark.parametrize("launcher", ["srun", "mpirun"])
def test_a_heterogeneous_job_is_requeued_and_goes_on(
    each_slurm: Cluster, tmp_path: Path, undisturbed: Callable[[str], bytes], launcher: str
) -> None:
    """As one world over both components, to the weights of a job that is not."""
    (tmp_path / "job.toml").write_text('[[component]]\nqueue = "cpu"\n[[component]]\nqueue = "gpu"\n')
    words = ("slurm", "--job", tmp_path / "job.toml", *ONE, "--launcher", launcher, "--requeue", "9")
    pause = ("--env", f"PYTHONPATH={SUPPORT}", "--env", "SLOW_PAUSE=0.5")
    script = jobs.render(*words, *pause, program=[*TRAINING, "ddp"])
    script = script.replace("\nlaunch() {\n", f"\n{ENDS_SOON}\nlaunch() {{\n")
    job = ended(each_slurm, each_slurm.sbatch(script, tmp_path))
    assert job.ok, job.output
    directory = jobs.run_dir(tmp_path / "runs")
    assert sorted(path.name for path in directory.glob("attempt-*")) == ["attempt-1", "attempt-2"], job.output
    assert jobs.status_of(directory)["state"] == "finished"
    assert jobs.hosts_in(directory)[0][0] != jobs.hosts_in(directory)[1][0]
    assert weights(directory) == undisturbed("ddp")
