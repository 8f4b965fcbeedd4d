"""Restart in place on this machine: hangs, steps, and programs that fail for a reason of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support import jobs
from support.processes import gone

FIRST_FAILS = '[[ $JOBGEN_ATTEMPT != 1 ]] || kill -KILL $$; echo "done in attempt $JOBGEN_ATTEMPT"'
HANGS = 'touch "$JOBGEN_PROGRESS"; [[ $JOBGEN_ATTEMPT != 1 ]] || sleep 300; echo "done in attempt $JOBGEN_ATTEMPT"'
STEPS = """
[survival]
restarts = 2
[launch]
launcher = "none"
[[step]]
command = ["bash", "-c", 'echo "one in attempt $JOBGEN_ATTEMPT"']
[[step]]
command = ["bash", "-c", '''FIRST_FAILS''']
"""


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        (FIRST_FAILS, (), "rank 0 on"),
        (FIRST_FAILS, ("--launcher", "none"), "rank 0 on"),
        (HANGS, ("--hang-timeout", "2s"), "the program hangs: no rank has touched"),
    ],
)
def test_the_ranks_start_again(tmp_path: Path, program: str, options: tuple[str, ...], message: str) -> None:
    done = jobs.run(tmp_path, "--restarts", "2", *options, program=("bash", "-c", f"sleep 400 & {program}"))
    assert done.returncode == 0, done.stdout
    assert f"jobgen: {message}" in done.stdout
    assert "restart 1 of 2, attempt 2: localhost" in done.stdout
    assert "done in attempt 2\n" in done.stdout
    assert not gone(tmp_path / "runs")
    ends = [
        (path / "events").read_text().splitlines()[-1].split()[1:]
        for path in sorted(jobs.run_dir(tmp_path / "runs").glob("attempt-*"))
    ]
    assert ends[-1] == ["ended", "0"]
    assert [what for what, _ in ends] == ["ended", "ended"]


def test_a_program_that_fails_again(tmp_path: Path) -> None:
    done = jobs.run(tmp_path, "--restarts", "9", program=("bash", "-c", "exit 7"))
    assert done.returncode == 7, done.stdout
    assert "not restarted in place: the program failed with status 7 again" in done.stdout
    assert len(list(jobs.run_dir(tmp_path / "runs").glob("attempt-*"))) == 2


def test_a_finished_step_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(STEPS.replace("FIRST_FAILS", FIRST_FAILS))
    script = jobs.jobgen("local", "--job", tmp_path / "job.toml").stdout
    done = subprocess.run(["bash", "-s"], input=script, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["one in attempt 1", "done in attempt 2"]
    assert "step 1 has finished in an earlier attempt" in done.stderr
