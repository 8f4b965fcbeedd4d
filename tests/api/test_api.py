"""``from jobgen import JobSpec, render``: the same jobs, scripts and sentences as on the command line."""

from __future__ import annotations

import copy
import pickle
import re
import shlex
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from golden.cases import CASES, whole
from support import ROOT
from support import runs as made
from support.jobs import path_with
from support.require import need_package
from support.site_manuals import JOBS

import jobgen
from jobgen import JobgenError, JobSpec, Run, render, submit
from jobgen.options import BY_KEY, OPTIONS
from tools import write_settings

EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_documentation_run(example: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def settings_of(command: str) -> tuple[str, list[str], dict[str, Any]]:
    """A command line of the golden scripts as Python would say it."""
    words = shlex.split(command)
    at = words.index("--") if "--" in words else len(words)
    flags = {name: option for option in OPTIONS for name in (option.flag, option.alias)}
    settings: dict[str, Any] = {}
    for flag, text in zip(words[1:at:2], words[2:at:2], strict=True):
        if flag == "--site":
            settings["site"] = text
            continue
        option = flags[flag]
        value: Any = int(text) if text.isdecimal() else text
        if option.key == "env":
            settings.setdefault("env", {}).update([text.split("=", 1)])
        elif option.multiple:
            settings.setdefault(option.key, []).append(text)
        else:
            settings[option.key] = value
    return words[0], words[at + 1 :], settings


@pytest.mark.parametrize("command", [one for one in (*CASES.values(), *JOBS) if "--set" not in one])
def test_python_says_what_the_command_line_says(command: str) -> None:
    scheduler, program, settings = settings_of(command)
    job = JobSpec(scheduler, program, **settings)
    assert render(job) == whole(command)
    assert pickle.loads(pickle.dumps(job)) == copy.deepcopy(job) == job
    assert hash(job.replace()) == hash(job)


MISTAKES = (
    (("slrm",), {}, "scheduler = slrm (Python): must be pbs, slurm or local; did you mean slurm?"),
    (("slurm",), {"nods": 2}, "nods (Python): there is no such setting; did you mean nodes?"),
    (("slurm",), {"nodes": 2.5}, "nodes = 2.5 (Python): must be a whole number of at least 1"),
    (("slurm",), {"nodes": True}, "nodes = True (Python): must be text or a number"),
    (("slurm",), {"workdir": ["a"]}, "workdir = ['a'] (Python): must be text or a number"),
    (("slurm",), {"module": [b"a"]}, "module = b'a' (Python): must be text or a number"),
    (("slurm",), {"launcher": "torchrum"}, "; did you mean torchrun?"),
    (("slurm",), {"env": {"A B": 1}}, "env = 'A B=1' (Python): must be NAME=VALUE"),
    (("slurm",), {"preflight": 1}, "preflight = 1 (Python): must be yes or no"),
    (
        ("slurm",),
        {"walltime": 7200},
        "walltime = 7200 (Python): is ambiguous: Slurm reads minutes, PBS seconds",
    ),
    (("slurm",), {"train": {"lr": {}}}, "lr = {} (Python): must be a number"),
    (("slurm", "train.py --lr 0.1"), {}, "must be a list of words, such as ['train.py', '--lr', '0.1']"),
    (("slurm", ["-m"]), {}, "program = -m (Python): must begin with a script, -m MODULE or a command"),
)


@pytest.mark.parametrize(("given", "settings", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(given: Any, settings: Any, sentence: str) -> None:
    with pytest.raises(JobgenError) as caught:
        JobSpec(*given, **settings)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_that_contradict_each_other_name_their_origin() -> None:
    with pytest.raises(JobgenError, match=r"nodes = 2 \(Python\): a local run has only this node"):
        render(JobSpec("local", nodes=2))


def test_a_job_is_a_value() -> None:
    job = JobSpec("slurm", ["train.py"], nodes=2, walltime=timedelta(hours=2))
    with pytest.raises(AttributeError):
        job.nodes = 3  # type: ignore[misc]
    assert job == JobSpec("slurm", ["train.py"], nodes="2", walltime="2h") != job.replace(nodes=3)
    assert job.replace(walltime=None, program=None) == JobSpec("slurm", nodes=2)
    assert job.replace(scheduler="pbs").scheduler == "pbs"
    assert job.replace(begin=datetime(2030, 1, 31, 20)) == job.replace(begin="2030-01-31T20:00:00")
    assert repr(job) == "JobSpec('slurm', program=('train.py',), walltime=7200, nodes=2)"


def test_submit_refuses_what_the_command_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    with pytest.raises(JobgenError, match="a local run has no queue to wait in"):
        submit("local")
    with pytest.raises(JobgenError, match="^submit: 5 must be a scheduler or a JobSpec$"):
        submit(5)  # type: ignore[call-overload]
    with pytest.raises(JobgenError, match="change them with replace"):
        submit(JobSpec("slurm"), nodes=2)  # type: ignore[call-overload]
    with pytest.raises(JobgenError, match="there is no such setting; did you mean nodes?"):
        submit("slurm", nods=2)  # type: ignore[call-overload]
    with pytest.raises(JobgenError, match="cannot find sbatch on PATH"):
        submit("slurm", ["train.py"], nodes=2)
    with pytest.raises(JobgenError, match="there is no run exp"):
        Run("exp")
    assert not list(tmp_path.iterdir())


def test_a_run_asks_the_scheduler_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    squeue = f"echo asked >> {tmp_path}/asked; echo '41_0|COMPLETED|0:00|None'; echo '41_1|RUNNING|1:00|None'"
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin", squeue=squeue) + ":/usr/bin:/bin")
    run = made.run(tmp_path / "runs/exp", attempts=(), job_id="41\n")
    (run / "plan.json").write_text('{"scheduler": "slurm"}')
    for task, loss in (("task-0", 2.0), ("task-1", 1.0)):
        made.run(run / task, made.rows([loss, loss / 2]), attempts=() if loss == 1 else (0,))
    array = Run("41", runs_dir=tmp_path / "runs")
    assert [array.state for _ in range(5)] == ["running"] * 5
    assert array.details.tasks == {"running": 1, "finished": 1}
    assert (tmp_path / "asked").read_text() == "asked\n"
    assert repr(array) == "<Run exp: job 41, running>"
    assert [(task.name, task.metrics[-1]["loss"]) for task in array.tasks] == [
        ("exp/task-0", 1.0),
        ("exp/task-1", 0.5),
    ]
    assert array._repr_html_().count("<polyline") == 2
    assert "1 running, 1 finished" in array._repr_html_()
    with pytest.raises(TimeoutError):
        array.wait(timeout=timedelta(seconds=0))
    with pytest.raises(JobgenError, match="exp is an array: say which task, such as exp/task-0"):
        array.logs()


def test_a_file_without_a_scheduler_is_told_one(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("[resources]\nnodes = 2\n")
    with pytest.raises(JobgenError, match="names no scheduler"):
        JobSpec.from_file(tmp_path / "x.toml")
    assert JobSpec.from_file(tmp_path / "x.toml", "pbs") == JobSpec("pbs", nodes=2)
    with pytest.raises(JobgenError, match="there is no such setting"):
        JobSpec.from_file(tmp_path / "x.toml", "pbs").replace(node=2)  # type: ignore[call-arg]


def test_the_package_offers_what_it_says_and_nothing_else() -> None:
    assert set(jobgen.__all__) <= set(dir(jobgen))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jobgen.nothing  # type: ignore[attr-defined]


def test_editors_know_every_setting() -> None:
    assert write_settings.STUB.read_text() == write_settings.stub(), "run: python -m tools.write_settings"


def test_a_type_checker_knows_them_too(tmp_path: Path) -> None:
    """What an editor would underline: a misspelt setting, a value of the wrong type, an unknown launcher."""
    need_package("mypy")
    lines = [
        *("nodes=2, walltime='2h'", "nods=2", "nodes=[2]", "launcher='torchrum'"),
        "env={'A': 1}, preflight=True",
    ]
    (tmp_path / "job.py").write_text(
        "from jobgen import JobSpec\n" + "".join(f"JobSpec('slurm', {line})\n" for line in lines)
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file=",
        "--cache-dir",
        tmp_path / "cache",
        tmp_path / "job.py",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert re.findall(r"job\.py:(\d+): error", done.stdout) == ["3", "4", "5"], done.stdout + done.stderr


def test_the_keys_are_those_of_the_command_line() -> None:
    assert set(BY_KEY) < set(JobSpec._fields)
