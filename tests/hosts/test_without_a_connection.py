"""Runs on hosts, and jobs for them, on a machine that reaches none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT
from support.jobs import jobgen

from jobgen.options import OPTIONS, PLACES

HOST = 'ssh = "narval"\nscheduler = "slurm"\nruns = "/scratch/me/jobgen"\nuser = "me"\nuid = "1000"\n'


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has added the host narval."""
    folder = tmp_path / "config/jobgen/hosts"
    folder.mkdir(parents=True)
    (folder / "narval.toml").write_text(HOST)
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_explain_shows_the_machine_of_each_path(tmp_path: Path, env: dict[str, str]) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").touch()
    words = ("submit", "--host", "narval", "--venv", "/opt/venv", "--explain", "--json", "--", "train.py")
    done = jobgen(*words, cwd=work, env=env)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert rows["host"]["value"] == "narval"
    for option in OPTIONS:
        ends = [row for row in PLACES if rows[option.key]["meaning"].endswith(f"With --host: {PLACES[row]}.")]
        assert ends == ([option.place] if option.place else []), option.key
    assert "1 file, 0 bytes" in done.stderr
    assert "--venv /opt/venv: a path of the host, or in the code" in done.stderr
    assert not (work / "runs").exists()
    done = jobgen("submit", "slurm", "--explain=all", "--", "train.py", cwd=work, env=env)
    assert (done.returncode, "With --host" in done.stdout) == (0, False), done.stderr


@pytest.mark.parametrize("limit", ["0", "200", "1K", "1.5M", ""])
def test_a_limit_that_is_no_size(tmp_path: Path, env: dict[str, str], limit: str) -> None:
    words = ("submit", "--host", "narval", "--upload-limit", limit, "--no-job", "--", "true")
    done = jobgen(*words, cwd=tmp_path, env=env)
    assert (done.returncode, "jobgen: --upload-limit" in done.stderr, "memory" in done.stderr) == (
        2,
        True,
        False,
    )


@pytest.mark.parametrize(
    "words", [("cancel", "exp"), ("logs", "exp"), ("logs", "-f", "exp"), ("fetch", "exp")]
)
def test_the_host_of_a_run_was_removed(tmp_path: Path, env: dict[str, str], words: tuple[str, ...]) -> None:
    run = tmp_path / "runs/exp-1"
    run.mkdir(parents=True)
    (run / "plan.json").write_text('{"scheduler": "slurm"}')
    (run / "job-id").write_text("7\n")
    (run / "host.json").write_text('{"host": "narwal", "directory": "/scratch/me/jobgen/exp-1-a"}')
    done = jobgen(*words, cwd=tmp_path, env=env)
    sentence = "jobgen: there is no host narwal; did you mean narval?; jobgen host add narwal asks it once\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)
    done = jobgen("status", "exp", cwd=tmp_path, env=env)
    assert (done.returncode, "jobgen host add narwal" in done.stdout) == (0, True), done


@pytest.mark.parametrize("module", ["fcntl", "pwd"])
def test_windows_is_refused_in_a_sentence(tmp_path: Path, module: str) -> None:
    words = ["submit", "--host", "narval", "--", "true"]
    code = f"import sys; sys.modules[{module!r}] = None; from jobgen.commands.cli import run; sys.exit(run({words}))"
    (tmp_path / "jobgen/hosts").mkdir(parents=True)
    (tmp_path / "jobgen/hosts/narval.toml").write_text(HOST)
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=env)
    sentence = "jobgen: this command needs Linux or macOS; on Windows it runs in WSL\n"
    assert (done.returncode, done.stderr) == (2, sentence)
