"""Requests with a type of GPUs, and without a time limit, on every scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import jobs

from jobgen import JobgenError, JobSpec, render
from jobgen.plan.plan import resolve
from jobgen.rendering.explanation import rows
from jobgen.schedulers.table import SCHEDULERS

QUEUED = [name for name, one in SCHEDULERS.items() if not one.behaviour.one_host]


def spec(kind: str, **given: Any) -> JobSpec:
    dialect = {} if "dialect" in SCHEDULERS[kind].lacks else {"dialect": kind}
    return JobSpec(SCHEDULERS[kind].command_name, ("train.py",), launcher="torchrun", **dialect, **given)


@pytest.mark.parametrize("kind", QUEUED)
@pytest.mark.parametrize("more", [{}, {"requeue": 2}, {"signal": "USR1@300"}, {"grace": "9h"}])
def test_the_limit_of_the_queue(kind: str, more: dict[str, Any]) -> None:
    job = spec(kind, nodes=2, walltime="queue", **more)
    directives = [line for line in render(job).splitlines() if line.startswith(("#SBATCH", "#PBS"))]
    assert not any("time" in line for line in directives)
    script = render(job)
    assert "job_walltime_seconds=" not in script
    assert ("job_grace_at_most_a_tenth=yes" in script) == (not {"grace", "signal"} & set(more))
    [row] = [row for row in rows(resolve(job)) if row.name == "walltime"]
    assert row.value == "that of the queue"


def test_a_local_run_has_no_queue() -> None:
    with pytest.raises(JobgenError, match=r"^walltime = queue \(.*\): a local run has no queue"):
        render(JobSpec("local", ("true",), walltime="queue"))


@pytest.mark.parametrize(
    ("kind", "given", "line"),
    [
        ("slurm", {}, "#SBATCH --gpus-per-node=a100:4"),
        ("slurm", {"accelerator": "npu"}, "#SBATCH --gres=npu:a100:4"),
        ("slurm", {"site": "setonix", "account": "x"}, "#SBATCH --gres=gpu:a100:4"),
        ("torque", {}, "#PBS -l nodes=2:ppn=8:gpus=4:a100"),
        ("pbspro", {"site": "./s.toml"}, "#PBS -l select=2:ncpus=8:mpiprocs=4:ngpus=4:gpu_model=a100"),
    ],
)
def test_gpus_of_a_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, given: Any, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('title = "S"\nscheduler = "pbs"\n[rules]\ngpu_type = "gpu_model"\n')
    job = spec(kind, nodes=2, gpus_per_node="a100:4", **given)
    assert line in render(job).splitlines()
    plan = resolve(job)
    assert (plan.resources.gpus_per_node, plan.resources.ranks_per_node) == (4, 4)
    assert job != spec(kind, nodes=2, gpus_per_node=4, **given)


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("pbspro", "a100:4", "PBS Pro has no resource for types of its own: use --constraint"),
        ("local", "a100:4", "this machine has the devices that it has"),
        ("slurm", "a:4:4", "must be a number, or a type and a number"),
        ("slurm", "a100:0", "must be a whole number"),
        ("slurm", "a100", "must be a whole number"),
    ],
)
def test_a_type_that_cannot_be_requested(kind: str, value: str, why: str) -> None:
    with pytest.raises(JobgenError, match=f"^gpus_per_node = {value} .*{why}"):
        render(spec(kind, gpus_per_node=value))


@pytest.mark.parametrize("kind", QUEUED)
@pytest.mark.parametrize(("signal", "seconds"), [("USR1@600", 600), ("SIGUSR2@10m", 600), ("USR2", 120)])
def test_the_time_of_the_signal_is_the_grace(kind: str, signal: str, seconds: int) -> None:
    """JOBGEN_DEADLINE, the timer of the script and the directive of Slurm agree."""
    script = render(spec(kind, walltime="1h", signal=signal))
    assert f"job_grace_seconds={seconds}\n" in script
    name = signal.removeprefix("SIG").partition("@")[0]
    assert (f"#SBATCH --signal=B:{name}@{seconds}\n" in script) == (kind == "slurm")
    assert ("job_sends_signal_itself=yes" in script) == (kind != "slurm")


@pytest.mark.parametrize(
    ("more", "noted"), [((), True), (("--signal", "USR1"), False), (("--requeue", "2"), False)]
)
def test_a_grace_without_a_signal_is_noted(more: tuple[str, ...], noted: bool) -> None:
    done = jobs.jobgen("pbs", "--grace", "5m", *more, "--", "./solve")
    assert done.returncode == 0
    sentence = (
        "jobgen: note: --grace 5m (command line) sets only JOBGEN_DEADLINE: your own program gets a signal"
    )
    assert (sentence in done.stderr) == noted
    assert sentence not in jobs.jobgen("pbs", "--grace", "5m", "--", "--task", "digits").stderr


@pytest.mark.parametrize(
    ("below", "words", "grace", "signal"),
    [
        ('signal = "USR2@10m"', ("--grace", "5m"), 300, "USR2"),
        ('grace = "10m"', ("--signal", "USR1@300"), 300, "USR1"),
        ('grace = "10m"', ("--signal", "USR2"), 600, "USR2"),
    ],
)
@pytest.mark.parametrize("kind", ["site", "job file"])
def test_a_time_on_the_command_line_replaces_that_below(
    kind: str, below: str, words: tuple[str, ...], grace: int, signal: str, tmp_path: Path
) -> None:
    text = (
        f'title = "a"\nscheduler = "slurm"\n[survival]\n{below}\n'
        if kind == "site"
        else f"[survival]\n{below}\n"
    )
    (tmp_path / "below.toml").write_text(text)
    place = ("--site" if kind == "site" else "--job", "./below.toml")
    done = jobs.jobgen(
        "slurm",
        *place,
        "--walltime",
        "1h",
        *words,
        "--requeue",
        "1",
        "--launcher",
        "srun",
        "--",
        "./solve",
        cwd=tmp_path,
    )
    assert (done.returncode, jobs.LAUNCHER_NOTE.sub("", done.stderr)) == (0, ""), done.stderr
    assert f"job_grace_seconds={grace}\njob_save_signal={signal}" in done.stdout


def test_two_times_of_one_place_are_refused(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text('[survival]\nsignal = "USR2@10m"\ngrace = "5m"\n')
    done = jobs.jobgen("slurm", "--job", "job.toml", "--", "./solve", cwd=tmp_path)
    assert done.returncode == 2
    assert "grace = 5m (job.toml" in done.stderr
    assert "signal = USR2@10m (job.toml" in done.stderr
