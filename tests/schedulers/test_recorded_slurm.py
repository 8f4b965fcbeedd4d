"""What jobgen reads in the recorded answers of Slurm 22.05 and 24.11, which tools/write_slurm_answers.py writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.answers import ANSWERS, Answer, commands, read
from support.runtime_shell import Shell

from jobgen.hosts.calls import Done, SchedulerError, complaint
from jobgen.schedulers import slurm_jobs as slurm

VERSIONS = ("22.05", "24.11")
IDS = [*map(str, (*range(1, 10), 11)), "999998", "999999"]
STATES = {
    "1": "finished",
    "2": "failed",
    "3": "failed",
    "4": "cancelled",
    "5": "cancelled",
    "6": "running",
    "7": "held",
    **{f"8_{index}": "cancelled" for index in range(4)},
    "9+0": "running",  # of two components
    **{f"11_{index}": "running" if index < 2 else "pending" for index in (0, 1, 2, 3, 7)},
}


@pytest.fixture(params=VERSIONS)
def answers(request: pytest.FixtureRequest) -> Callable[[str], list[Answer]]:
    """The answers in the file of a name, of each version."""
    return lambda name: read(ANSWERS / f"slurm-{request.param}" / f"{name}.txt")


def test_jobs_of_which_two_are_unknown(
    answers: Callable[[str], list[Answer]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", commands(tmp_path, answers("jobs")))
    jobs = slurm.ask(IDS)
    assert {job.id: job.state for job in jobs} == STATES
    [left] = [job.seconds_left or 0 for job in jobs if job.id == "6"]
    assert 3500 < left <= 3600
    assert {job.reason for job in jobs if job.id == "11_2"} == {"JobArrayTaskLimit"}


def test_an_unknown_job(
    answers: Callable[[str], list[Answer]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", commands(tmp_path, answers("unknown")))
    assert slurm.ask(["999998"]) == []


def test_a_controller_that_is_down(
    answers: Callable[[str], list[Answer]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", commands(tmp_path, answers("no-server")))
    with pytest.raises(SchedulerError, match="squeue does not answer: .*Unable to contact slurm controller"):
        slurm.ask(["999998"])


def test_jobs_that_only_the_accounting_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", commands(tmp_path, read(ANSWERS / "slurm-22.05/forgotten.txt")))
    jobs = slurm.ask(IDS)
    ended = {
        id_: "cancelled" if state in ("running", "held", "pending") else state
        for id_, state in STATES.items()
    }
    assert {job.id: job.state for job in jobs} == ended
    assert {job.id: job.status for job in jobs if job.status} == {"2": 3, "3": 137}


def test_the_paths_of_scripts(
    answers: Callable[[str], list[Answer]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", commands(tmp_path, answers("paths")))
    monkeypatch.setattr(os, "getuid", lambda: 0)
    found = [*slurm.find(["/home/me/runs"], 4e9)]
    assert {path for path, _ in found} == {"/home/me/runs"}
    assert {job for _, job in found} == {*IDS[:-2]}


def test_ids_and_refusals(answers: Callable[[str], list[Answer]]) -> None:
    for answer in answers("sbatch"):
        assert slurm.submitted(answer.out) == [answer.out.split()[-1]]
    said = [complaint(Done(answer.status, answer.out, answer.err)) for answer in answers("sbatch-errors")]
    assert said == [
        "invalid partition specified: nosuch; Batch job submission failed: Invalid partition name specified",
        "Invalid --time specification",
        "Unable to open file nosuch.sh",
    ]


def fields(answer: Answer, folder: Path) -> tuple[list[str], str]:
    """What a script reads in the answer of ``scontrol show job``: its output file, and fields."""
    shell = Shell(folder).prepare()
    (folder / "out").write_text(answer.out)
    (folder / "err").write_text(answer.err)
    shell.commands(scontrol=f"cat {folder}/out; cat {folder}/err >&2; exit {answer.status}")
    code = 'job_scheduler; for name in JobState ExcNodeList EndTime; do job_field "$name" || true; done; echo "$job_output"'
    done = shell.run("slurm", code, {"SLURM_JOB_ID": "6", "SLURM_JOB_NODELIST": "node1"})
    assert done.status == 0, done.said
    return done.lines, done.said


def test_a_script_reads_its_job(answers: Callable[[str], list[Answer]], tmp_path: Path) -> None:
    """Since 25.11 StdErr is blank unless it was set."""
    [answer] = answers("show")
    expected = ["RUNNING", "(null)", "/home/me/runs/slurm-6.out"]
    blank = answer._replace(out=answer.out.replace("StdErr=/home/me/runs/slurm-6.out", "StdErr="))
    assert "StdErr=\n" in blank.out
    for number, one in enumerate((answer, blank)):
        (tmp_path / f"{number}").mkdir()
        state, excluded, end, path = fields(one, tmp_path / f"{number}")[0]
        assert [state, excluded, path] == expected
        assert end.startswith("20")


def test_a_script_whose_job_is_not_found(answers: Callable[[str], list[Answer]], tmp_path: Path) -> None:
    """Until 26.05 the sentence about a task is on standard output."""
    *_, job, task = answers("unknown")
    assert (task.out, task.err) == ("Job 11_99 not found\n", "")
    for number, one in enumerate((job, task, task._replace(out="", err=task.out))):
        (tmp_path / f"{number}").mkdir()
        assert fields(one, tmp_path / f"{number}")[0] == [""]
