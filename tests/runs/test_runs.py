"""Finding runs, their states by what is in their directories, logs, and the plan of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from golden.cases import CASES, plan_of
from support import jobs
from support import runs as made
from support.jobs import path_with
from support.site_manuals import JOBS

from jobgen.errors import JobgenError
from jobgen.plan.plan import resolve
from jobgen.rendering.render import render
from jobgen.runs import (
    differences,
    logs,
    lookup,
    node_files,
    plan_file,
    run_directory,
    run_files,
    states,
)
from jobgen.runs.node_files import Log
from jobgen.schedulers.jobs import LIVE
from jobgen.spec import SweepRequest

NO_SACCT = "echo 'Slurm accounting storage is disabled' >&2; exit 1"


def make_run(root: Path, name: str, events: str = "", plan: bool = True, job: str = "", **files: str) -> Path:
    """A run as its files would be, with one attempt if there are events."""
    run = root / name
    (run / "attempt-1" if events else run).mkdir(parents=True)
    (run / "job.sh").write_text("#!/bin/bash\n#SBATCH --nodes=1\n")
    if plan:
        (run / "plan.json").write_text('{"scheduler": "slurm"}')
    if job:
        (run / "job-id").write_text(f"{job}\n")
    if events:
        (run / "attempt-1/events").write_text(events)
    for file, text in files.items():
        (run / file.replace("_", ".")).write_text(text)
    return run


def jobgen(cwd: Path, *words: object, path: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": path or "/bin"}
    return jobs.jobgen(*words, cwd=cwd, env=env)


# ------------------------------------------------------------------------------------------------ the plan


@pytest.mark.parametrize("command", [one for one in (*CASES.values(), *JOBS) if not one.startswith("local")])
def test_the_plan_of_every_script_makes_it_again(command: str, tmp_path: Path) -> None:
    plan = plan_of(command)
    text = render(plan)
    sources = [plan_file.source("site", plan.spec.site.path)] if plan.spec.site else []
    (tmp_path / plan_file.NAME).write_text(
        plan_file.text(plan_file.of(plan, text, ["jobgen"], "/", sources, (), None))
    )
    file = plan_file.read(tmp_path)
    assert render(resolve(plan_file.spec_of(file))) == text
    assert file.script_sha256 == plan_file.sha256(text.encode())
    assert json.loads((tmp_path / "plan.json").read_text())["options"]["name"]["value"] == plan.spec.name


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}', '{"format": "x"}', "[" * 100_000])
def test_a_plan_that_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(JobgenError, match="plan.json cannot be read"):
        plan_file.read(tmp_path)


def test_packages_are_those_of_the_job_s_environment(tmp_path: Path) -> None:
    (tmp_path / "w/env/lib/python3.11/site-packages/Torch_npu-2.1.dist-info").mkdir(parents=True)
    spec = plan_of(CASES["slurm_torchrun_partition_venv"]).spec._replace(venv="env", workdir="w")
    assert plan_file.packages(spec, str(tmp_path), {}) == {"torch-npu": "2.1"}


# ---------------------------------------------------------------------------------------------- submission


def test_run_directories_of_one_second(tmp_path: Path) -> None:
    found = [run_files.make_run_dir(tmp_path / "a b", "exp") for _ in range(50)]
    assert len(set(found)) == 50
    assert all(path.is_dir() for path in found)


WRONG = {
    "submit local": "a local run has no queue to wait in",
    "submit slrm": "must be pbs or slurm; did you mean slurm?",
    "submit slurm --nodes 0": "--nodes 0 (command line)",
    "submit slurm train.py": "goes after --",
    "submit --again nothing": "there is no run nothing in runs",
    "submit slurm --again x": "uses the options in plan.json of that run",
    "submit --again x --no-preflight": "uses the options in plan.json of that run",
    "status": "there is no run in runs",
    "status x --runs-dir /nowhere": "there is no run x in /nowhere",
    "logs": "there is no run in runs",
    "cancel": "there is no run in runs",
    "diff a": "name two runs",
    "diff a b": "there is no run a",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_mistake_is_one_sentence(line: str, tmp_path: Path) -> None:
    done = jobgen(tmp_path, *line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert WRONG[line] in done.stderr
    assert not list(tmp_path.iterdir())


def test_no_scheduler_here(tmp_path: Path) -> None:
    done = jobgen(tmp_path, "submit", "slurm", path=str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot find sbatch on PATH" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_dry_run_prints_what_the_other_command_prints(tmp_path: Path) -> None:
    words = ("slurm", "--nodes", "2", "--", "train.py")
    assert jobgen(tmp_path, "submit", "--dry-run", *words).stdout == jobgen(tmp_path, *words).stdout
    (tmp_path / "jobgen.toml").write_text('scheduler = "pbs"\n[resources]\nnodes = 3\n')
    assert jobgen(tmp_path, "submit", "-n").stdout == jobgen(tmp_path, "pbs").stdout


# -------------------------------------------------------------------------------------------------- finding


def test_what_a_name_means(tmp_path: Path) -> None:
    first = make_run(tmp_path, "exp-1", job="41.server")
    second = make_run(tmp_path, "exp-2", job="42")
    task = make_run(second, "task-3")
    for run, age in ((first, 100), (second, 50)):
        os.utime(run / "plan.json", (time.time() - age,) * 2)
    named = {
        "exp-1": first,
        "exp-2": second,
        "41": first,
        "41.server": first,
        str(first): first,
        "42": second,
    }
    other = make_run(tmp_path, "other", job="43;c2")
    named |= {"43": other, "43;c2": other}
    os.utime(other / "plan.json", (1, 1))
    named |= {"42_3": task, "42[3]": task, "42[]": second, "exp-2/task-3": task}
    assert {name: lookup.one_run(name, tmp_path) for name in named} == named
    assert lookup.some_runs((), tmp_path) == [second]
    with pytest.raises(JobgenError, match="exp is the beginning of 2 runs: exp-2, exp-1"):
        lookup.one_run("exp", tmp_path)
    with pytest.raises(JobgenError, match="no run exq-1 in .*; did you mean exp-1?"):
        lookup.one_run("exq-1", tmp_path)
    for name in ("", "44", "42_4", "/", "..", "x" * 5000):
        with pytest.raises(JobgenError):
            lookup.one_run(name, tmp_path)


def test_the_job_file_says_where_runs_are(tmp_path: Path) -> None:
    make_run(tmp_path / "w/results", "exp-1", "1 began 5\n9 ended 0\n")
    (tmp_path / "jobgen.toml").write_text('[directories]\nworkdir = "w"\nruns_dir = "results"\n')
    assert "exp-1" in jobgen(tmp_path, "list").stdout


def test_a_list_has_the_scheduler_and_the_time_of_all_attempts(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", "exp-1", "100 began 5\n3700 ended 75\n", job="5")
    (run / "attempt-2").mkdir()
    (run / "attempt-2/events").write_text("5000 began 5\n5061 ended 0\n")
    make_run(tmp_path / "runs", "new-1")
    lines = {line.split()[0]: line.split() for line in jobgen(tmp_path, "list").stdout.splitlines()}
    titles = lines["RUN"]
    assert {*titles} >= {"SCHEDULER", "TIME"}
    row = dict(zip(titles, lines["exp-1"], strict=True))
    assert (row["SCHEDULER"], row["STATE"], row["TIME"]) == ("Slurm", "finished", "01:01:01")
    assert lines["new-1"][titles.index("TIME")] == "-"


# --------------------------------------------------------------------------------------------------- states

ENDS = [
    ("1 began 5\n9 ended 0\n", None, "finished"),
    ("1 began 5\n9 ended 1\n", None, "failed"),
    ("1 began 5\n9 ended 75\n", "", "resumable"),
    ("1 began 5\n9 ended 75\n", "5|PENDING|1:00|BeginTime", "pending"),
    ("1 began 5\n", "5|RUNNING|1:00|None", "running"),
    ("1 began 5\n", "5|NODE_FAIL|0:00|None", "node failed"),
    ("1 began 5\n", "", "lost"),
    ("1 began 5\n9 ended 143\n", None, "failed"),
    ("", "5|PENDING|1:00|Priority", "pending"),
    ("", "5|FAILED|0:00|None", "failed"),
    ("", "", "gone"),
    ("", "fails", "unknown"),
]


@pytest.mark.parametrize(("events", "answer", "expected"), ENDS)
def test_the_state(
    events: str, answer: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "runs", "exp", events, job="5")
    squeue = "exit 9" if answer in (None, "fails") else f"echo '{answer}'" if answer else "true"
    monkeypatch.setenv("PATH", f"{path_with(tmp_path / 'bin', squeue=squeue, sacct=NO_SACCT)}:/usr/bin:/bin")
    [state], _ = states.states([run])
    assert state.state == expected


def test_an_array_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, "exp", job="5")
    make_run(run, "task-0", "1 began 5_0\n9 ended 0\n", plan=False)
    make_run(run, "task-1", "1 began 5_1\n9 ended 3\n", plan=False)
    squeue = "printf '%s\\n' '5_1|FAILED|0:00|None' '5_2|RUNNING|1:00|None' '5_3|PENDING|1:00|Resources'"
    monkeypatch.setenv("PATH", f"{path_with(tmp_path / 'bin', squeue=squeue)}:/usr/bin:/bin")
    [state], _ = states.states([run])
    assert state.tasks == {"finished": 1, "failed": 1, "running": 1, "pending": 1}
    assert state.state == "running"
    make_run(run, "task-2", "1 began 5_2\n", plan=False)
    make_run(run, "task-3", "1 began 5_3\n", plan=False)
    found, _ = states.states([run / "task-3", run / "task-2"])
    assert [(one.name, one.state) for one in found] == [("exp/task-3", "pending"), ("exp/task-2", "running")]
    [saved], _ = states.states([make_run(run, "task-4", "1 began 5_4\n9 ended 75\n", plan=False)])
    assert (saved.state, saved.reason) == (
        "resumable",
        f"not finished; to go on, submit task 4 of job.sh again from {run}",
    )


SAVED = {0: 75, 1: 75}
RANKS: list[tuple[str, str, str, dict[int, int], str]] = [
    # the events, the answer of squeue, the state, the statuses of two ranks, what is said of them
    (
        "1 began 5\n",
        "5|CANCELLED|0:00|None",
        "cancelled",
        SAVED,
        "all 2 ranks saved (status 75); to go on, submit job.sh again from RUN",
    ),
    (
        "1 began 5\n",
        "5|TIMEOUT|0:00|None",
        "timeout",
        SAVED,
        "all 2 ranks saved (status 75); to go on, submit job.sh again from RUN",
    ),
    (
        "1 began 5\n",
        "5|NODE_FAIL|0:00|None",
        "node failed",
        {0: 75},
        "of 2 ranks 1 saved (status 75), 1 recorded no end",
    ),
    ("1 began 5\n", "5|OUT_OF_MEMORY|0:00|None", "out of memory", {}, "all 2 ranks recorded no end"),
    ("1 began 5\n", "5|CANCELLED|0:00|None", "cancelled", {0: 0, 1: 0}, "all 2 ranks finished (status 0)"),
    (
        "1 began 5\n",
        "5|CANCELLED|0:00|None",
        "cancelled",
        {0: 0, 1: 75},
        "of 2 ranks 1 finished (status 0), 1 saved (status 75); to go on, submit job.sh again from RUN",
    ),
    (
        "1 began 5\n",
        "",
        "lost",
        SAVED,
        "its script recorded no exit status, and the scheduler no longer knows the job; all 2 ranks saved (status 75); to go on, submit job.sh again from RUN",
    ),
    (
        "1 began 5\n9 ended 143\n",
        "",
        "failed",
        SAVED,
        "status 143: killed by SIGTERM; all 2 ranks saved (status 75); to go on, submit job.sh again from RUN",
    ),
    (
        "1 began 5\n9 ended 75\n",
        "5|TIMEOUT|0:00|None",
        "timeout",
        SAVED,
        "not finished; to go on, submit job.sh again from RUN",
    ),
    ("1 began 5\n9 ended 1\n", "", "failed", {0: 1, 1: 75}, "status 1: failed"),
    ("1 began 5\n", "fails", "unknown", SAVED, "squeue does not answer: it ended with status 9"),
    (
        "1 began 5\n9 ended 75\n",
        "fails",
        "unknown",
        SAVED,
        "its last attempt saved (status 75), and squeue does not answer: it ended with status 9",
    ),
]


@pytest.mark.parametrize(("events", "answer", "word", "statuses", "reason"), RANKS)
def test_what_the_ranks_saved_is_said_after_every_end(
    events: str,
    answer: str,
    word: str,
    statuses: dict[int, int],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make_run(tmp_path / "runs", "exp", events, job="5")
    (run / "hostfile").write_text("node1 slots=1\nnode2 slots=1\n")
    made.nodes(run / "attempt-1", ranks=2, statuses=statuses)
    squeue = "exit 9" if answer == "fails" else f"echo '{answer}'"
    monkeypatch.setenv("PATH", f"{path_with(tmp_path / 'bin', squeue=squeue, sacct=NO_SACCT)}:/usr/bin:/bin")
    [state], _ = states.states([run])
    assert (state.state, state.reason) == (word, reason.replace("RUN", str(run)))


def test_status_names_the_rank_that_failed_first_and_its_error(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", "exp", "1 began 5\n9 ended 1\n")
    log = "Traceback (most recent call last):\nValueError: api_key=hf_abcdefghijklmnopqrstuvwxyz\nbye\n"
    made.nodes(run / "attempt-1", ranks=2, statuses={1: 1}, log=log)
    [state], _ = states.states([run])
    reason = "status 1: failed; rank 1 on node2 failed first: ValueError: api_key=***"
    assert states.with_cause(state).reason == reason


def test_status_names_what_the_script_missed(tmp_path: Path) -> None:
    fault = "cannot run ./a in /home/me: token=hf_abcdefghijklmnopqrstuvwxyz"
    run = make_run(tmp_path / "runs", "exp", f"1 began 5\n2 fault {fault}\n2 ended 71\n")
    [state], _ = states.states([run])
    assert states.with_cause(state).reason == (
        "status 71: a file, a module, a command or the program is missing; cannot run ./a in /home/me: token=***"
    )


def test_only_the_ranks_that_began_are_known_to_have_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "runs", "exp", "1 began 5\n", job="5")
    (run / "hostfile").write_text("node1 slots=1\nnode2 slots=1\n")
    made.nodes(run / "attempt-1", ranks=1, statuses={0: 75})
    monkeypatch.setenv("PATH", f"{path_with(tmp_path / 'bin', squeue='true', sacct=NO_SACCT)}:/usr/bin:/bin")
    [state], _ = states.states([run])
    assert "; the rank that began saved (status 75); to go on" in state.reason


def test_the_tasks_of_an_array_that_saved_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, "exp", job="5")
    for index, end in ((10, "9 ended 75\n"), (2, "9 ended 75\n"), (3, "9 ended 0\n"), (4, "")):
        task = make_run(run, f"task-{index}", f"1 began 5_{index}\n{end}", plan=False)
        made.nodes(task / "attempt-1", statuses={0: 75 if index != 3 else 0})
    squeue = "echo '5_4|CANCELLED|0:00|None'"
    monkeypatch.setenv("PATH", f"{path_with(tmp_path / 'bin', squeue=squeue, sacct=NO_SACCT)}:/usr/bin:/bin")
    [state], _ = states.states([run])
    assert state.tasks == {"resumable": 2, "finished": 1, "cancelled": 1}
    assert state.reason == f"to go on, submit task 2, 4, 10 of job.sh again from {run}"


ARRAYS = [
    # the directive, the answer of squeue, whether it was cancelled, the counts; tasks 0 and 1 began
    ("--array=0-9%2", "", True, {"cancelled": 8, "lost": 2}),
    ("--array=0-9%2", "5_0|CANCELLED|0:00|None\n5_1|CANCELLED|0:00|None", False, {"cancelled": 10}),
    ("--array=0-9%2", "5_0|RUNNING|1:00|None\n5_1|RUNNING|1:00|None", True, {"running": 2, "cancelled": 8}),
    ("--array=0-9%2", "5_0|CANCELLED|0:00|None\n5_7|CANCELLED|0:00|None", True, {"cancelled": 9, "lost": 1}),
    ("-J 0-20:10", "5_0|CANCELLED|0:00|None", True, {"cancelled": 3, "lost": 1}),
    ("-t 0,1,3,7%1", "", False, {"gone": 2, "lost": 2}),
    (
        "--array=0-9%2",
        "5_0|COMPLETING|0:00|None\n5_1|COMPLETING|0:00|None",
        True,
        {"cancelled": 8, "ending": 2},
    ),
    ("--array=0-9%2", "fails", True, {"unknown": 2}),
    ("", "", True, {"lost": 2}),
]


@pytest.mark.parametrize(("directive", "answer", "cancelled", "counts"), ARRAYS)
def test_the_tasks_of_an_array_that_never_began_are_counted(
    directive: str,
    answer: str,
    cancelled: bool,
    counts: dict[str, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = make_run(tmp_path, "exp", job="5")
    option = {"value": directive or None, "origin": "command line"}
    (run / "plan.json").write_text(json.dumps({"scheduler": "slurm", "options": {"array": option}}))
    for index in (0, 1):
        make_run(run, f"task-{index}", f"1 began 5_{index}\n", plan=False)
    if cancelled:
        (run / "cancelled").touch()
    squeue = "exit 9" if answer == "fails" else f"cat << 'X'\n{answer}\nX"
    monkeypatch.setenv("PATH", f"{path_with(tmp_path / 'bin', squeue=squeue, sacct=NO_SACCT)}:/usr/bin:/bin")
    [state], _ = states.states([run])
    assert state.tasks == counts
    assert state.live == any(word in LIVE for word in counts)


CUT_OFF = "printf '5_%s|COMPLETED|0:00|None\\n' 0 1; printf '5_2|RUNNI'"


def array_of_five(root: Path) -> Path:
    run = make_run(root, "exp", job="5")
    option = {"value": "--array=0-4", "origin": "command line"}
    (run / "plan.json").write_text(json.dumps({"scheduler": "slurm", "options": {"array": option}}))
    return run


def test_tasks_that_may_be_missing_in_an_answer_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = array_of_five(tmp_path)
    make_run(run, "task-0", "1 began 5_0\n9 ended 0\n", plan=False)
    make_run(run, "task-2", "1 began 5_2\n", plan=False)
    make_run(run, "task-3", "1 began 5_3\n9 ended 75\n", plan=False)
    path = path_with(tmp_path / "bin", squeue=CUT_OFF, sacct=NO_SACCT)
    monkeypatch.setenv("PATH", f"{path}:/usr/bin:/bin")
    found, _ = states.states([run, *(run / f"task-{index}" for index in (0, 2, 3))])
    assert [state.state for state in found] == ["unknown", "finished", "unknown", "unknown"]
    assert found[0].tasks == {"finished": 2, "unknown": 3}
    assert found[0].reason == "the output of squeue ends in the middle of a line: 5_2|RUNNI"
    done = jobgen(tmp_path, "cancel", run, path=f"{path}:/usr/bin:/bin")
    assert done.stderr == f"jobgen: {found[0].reason}\n"
    (run / "plan.json").write_text('{"scheduler": "slurm"}')
    assert states.states([run])[0][0].state == "unknown"
    path_with(tmp_path / "bin", squeue=CUT_OFF.replace("COMPLETED", "RUNNING"))
    assert states.states([run])[0][0].state == "running"


def test_an_array_is_cancelled_though_its_list_is_cut_off(tmp_path: Path) -> None:
    run = array_of_five(tmp_path)
    scancel = f'echo "$@" > {tmp_path}/calls'
    path = path_with(tmp_path / "bin", squeue=CUT_OFF, sacct=NO_SACCT, scancel=scancel)
    assert jobgen(tmp_path, "cancel", run, path=f"{path}:/usr/bin:/bin").returncode == 0
    assert (tmp_path / "calls").read_text() == "--quiet 5\n"


def test_a_banner_beside_all_tasks_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = array_of_five(tmp_path)
    squeue = "echo Maintenance; printf '5_%s|COMPLETED|0:00|None\\n' 0 1 2 3 4"
    path = path_with(tmp_path / "bin", squeue=squeue, sacct=NO_SACCT)
    monkeypatch.setenv("PATH", f"{path}:/usr/bin:/bin")
    [state], _ = states.states([run])
    assert (state.state, state.reason, state.tasks) == ("finished", "", {"finished": 5})


def test_a_list_says_why_a_run_is_unknown(tmp_path: Path) -> None:
    for number in (5, 6):
        make_run(tmp_path / "runs", f"exp-{number}", job=str(number))
    squeue = "echo '6|RUNNING|1:00|None'; echo '<html>'"
    path = path_with(tmp_path / "bin", squeue=squeue, sacct=NO_SACCT)
    done = jobgen(tmp_path, "list", path=f"{path}:/usr/bin:/bin")
    assert "unknown" in done.stdout
    assert done.stderr == "jobgen: squeue prints <html>, which is no record of a job\n"


def test_a_job_that_was_cancelled_before_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path, "exp", job="5")
    (run / "cancelled").touch()
    monkeypatch.setenv("PATH", f"{path_with(tmp_path / 'bin', squeue='true', sacct=NO_SACCT)}:/usr/bin:/bin")
    [state], _ = states.states([run])
    assert (state.state, state.reason) == ("cancelled", "it never started")


def test_a_thousand_runs_are_one_question_and_quick(tmp_path: Path) -> None:
    for number in range(1000):
        events = "1 began 5\n" + ("9 ended 0\n" if number % 2 else "")
        line = json.dumps({"event": "step", "step": number, "loss": 0.5})
        make_run(
            tmp_path / "runs",
            f"exp-{number}",
            events,
            job=str(1000 + number),
            metrics_jsonl=f"{line}\n" * 200,
        )
    squeue = f'echo asked >> {tmp_path}/asked; for i in {{1000..1999}}; do echo "$i|RUNNING|1:00|None"; done'
    path = path_with(tmp_path / "bin", squeue=squeue) + ":/usr/bin:/bin"
    begun = os.times()
    found = json.loads(jobgen(tmp_path, "list", "--json", path=path).stdout)
    used = os.times()
    assert sum(used[2:4]) - sum(begun[2:4]) < 5  # seconds of CPU, so that a load beside it does not count
    assert len(found) == 1000
    assert (tmp_path / "asked").read_text() == "asked\n"
    assert sum(one["state"] == "running" for one in found) == 500
    assert {one["step"] for one in found} == set(range(1000))


# ----------------------------------------------------------------------------------------------------- logs


def test_follow_goes_over_attempts_and_ends_with_the_job(tmp_path: Path) -> None:
    """The job is pending, runs twice, and is then forgotten by a Slurm without accounting."""
    run = make_run(tmp_path / "runs", "exp", job="5")
    answer = tmp_path / "answer"
    answer.write_text("5|PENDING|1:00|Priority\n")
    path = path_with(tmp_path / "bin", squeue=f"cat {answer}", sacct=NO_SACCT) + ":/usr/bin:/bin"
    command = [sys.executable, "-m", "jobgen", "logs", "-f", "exp"]
    env = {**os.environ, "PATH": path}
    reader = subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert reader.stdout
    assert reader.stderr
    assert "exp is pending (Priority); waiting for its output" in reader.stderr.readline()
    for attempt in (1, 2):
        directory = run / f"attempt-{attempt}"
        made.nodes(directory, log=f"hello {attempt}\n")
        (directory / "events").write_text(f"1 began 5\n9 ended {75 if attempt == 1 else 0}\n")
        assert reader.stdout.readline() == f"0: hello {attempt}\n"
    printed, _ = reader.communicate(timeout=20)
    assert (reader.returncode, printed) == (0, "")


@pytest.mark.parametrize("name", ["exp-5.log", "exp.o5"])
def test_a_job_that_died_before_its_first_attempt_has_a_log(name: str, tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", "exp", job="5.server")
    (run / name).write_text("jobgen: cannot enter /nowhere\n")
    (run / "other-55.log").write_text("not this\n")
    path = path_with(tmp_path / "bin", squeue="true", sacct=NO_SACCT) + ":/usr/bin:/bin"
    for words in (("logs",), ("logs", "-f")):
        assert jobgen(tmp_path, *words, path=path).stdout == "jobgen: cannot enter /nowhere\n"


def test_output_from_before_the_first_attempt_is_printed_once(tmp_path: Path) -> None:
    """The job then names its output by an absolute path."""
    run = make_run(tmp_path / "runs", "exp", job="5")
    output = run / "exp-5.log"
    output.write_text("begins\n")
    path = path_with(tmp_path / "bin", squeue="echo '5|RUNNING|1:00|None'", sacct=NO_SACCT) + ":/usr/bin:/bin"
    command = [sys.executable, "-m", "jobgen", "logs", "-f", "exp"]
    env = {**os.environ, "PATH": path}
    reader = subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "begins\n"
    (run / "attempt-1").mkdir()
    (run / "attempt-1/events").write_text(f"1 output {output}\n1 began 5\n")
    with output.open("a") as log:
        log.write("goes on\n")
    assert reader.stdout.readline() == "goes on\n"
    path_with(tmp_path / "bin", squeue="true", sacct=NO_SACCT)
    with (run / "attempt-1/events").open("a") as events:
        events.write("9 ended 0\n")
    assert (*reader.communicate(timeout=20), reader.returncode) == ("", "", 0)


def test_on_pbs_the_first_node_is_followed_until_the_output_comes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", "exp", "1 began 5\n", job="5")
    (run / "plan.json").write_text('{"scheduler": "pbs"}')
    made.nodes(run / "attempt-1", ranks=4, per_node=2, log="I am RANK\n")
    answer = tmp_path / "answer"
    answer.write_text("Job Id: 5\n    job_state = R\n\n")
    path = path_with(tmp_path / "bin", qstat=f"cat {answer}") + ":/usr/bin:/bin"
    command = [sys.executable, "-m", "jobgen", "logs", "-f"]
    env = {**os.environ, "PATH": path}
    reader = subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    assert [reader.stdout.readline() for _ in range(2)] == ["0: I am 0\n", "1: I am 1\n"]
    (run / "exp.o5").write_text("all of it\n")
    (run / "attempt-1/events").write_text("1 began 5\n9 ended 0\n")
    printed, said = reader.communicate(timeout=20)
    assert (reader.returncode, printed) == (0, "")
    assert said == f"jobgen: the whole output is in {Path('runs/exp/exp.o5')}\n"
    assert jobgen(tmp_path, "logs").stdout == "all of it\n"


def test_rank_0_that_begins_during_a_look_does_not_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the events, read before, would not tell yet that the output is elsewhere, and all would come twice."""
    run = make_run(tmp_path / "runs", "exp", "1 began 5\n", job="5")
    read = run_directory.events

    def slowly(directory: Path) -> tuple[run_directory.Event, ...]:
        found = read(directory)
        made.nodes(directory)
        return found

    monkeypatch.setattr(run_directory, "events", slowly)
    assert logs.find(run, logs.Which(None, None)) == (1, None)
    assert logs.find(run, logs.Which(None, None)) == (1, Log(run / "attempt-1/nodes/0/node1.log"))


def test_logs_that_are_not_there(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "exp", "1 began 5\n9 ended 0\n")
    assert "exp has had 1" in jobgen(tmp_path, "logs", "--attempt", "2").stderr
    said = jobgen(tmp_path, "logs", "--rank", "x").stderr
    assert said == "jobgen: --rank x (command line): must be a whole number of at least 0\n"
    done = jobgen(tmp_path, "logs")
    assert (done.returncode, done.stderr) == (2, "jobgen: exp has no log: finished\n")


@pytest.mark.parametrize("kept", ["node", "rank"])
def test_the_log_of_a_rank_wherever_it_is(kept: str, tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", "exp", "1 began 5\n9 ended 0\n")
    made.nodes(run / "attempt-1", ranks=1204, per_node=2, log="I am RANK\nand end", kept=kept)
    for rank in (0, 1, 10, 399, 401, 1203):
        told = f"I am {rank}\n" + ("and end" if kept == "rank" else "")
        assert jobgen(tmp_path, "logs", "--rank", str(rank)).stdout == told
    assert "attempt-1 has the ranks 0 to 1203" in jobgen(tmp_path, "logs", "--rank", "1204").stderr


def test_ranks_that_are_dealt_out_in_turn(tmp_path: Path) -> None:
    """Then the files of a host are in several folders."""
    run = make_run(tmp_path / "runs", "exp", "1 began 5\n9 ended 0\n")
    for rank, folder in ((3, 0), (1003, 2)):
        (run / f"attempt-1/nodes/{folder}").mkdir(parents=True)
        place = run / f"attempt-1/nodes/{folder}/node3.x.ranks"
        place.write_text(f"began {rank} 1 5.5 node3.x\nended {rank} 0 6.5 node3.x\n")
        place.with_name("node3.x.log").write_text(f"{rank}: mine\n{rank}0: not mine\n")
    assert jobgen(tmp_path, "logs", "--rank", "1003").stdout == "mine\n"
    assert [(rank.number, rank.host) for rank in node_files.ranks(run / "attempt-1")] == [
        (3, "node3.x"),
        (1003, "node3.x"),
    ]


@pytest.mark.parametrize("kept", ["failed", "none"])
def test_logs_that_are_not_kept(kept: str, tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", "exp", "1 began 5\n9 ended 1\n")
    made.nodes(run / "attempt-1", ranks=2, statuses={0: 0, 1: 1}, log="I am RANK\n", kept=kept)
    for words in (("logs", "--rank", "0"), ("logs", "-f", "--rank", "0")):
        done = jobgen(tmp_path, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines()[-1] == (
            "jobgen: attempt-1 has no log of rank 0: --rank-logs failed keeps only the logs of the ranks that "
            "failed, none keeps no log"
        )
    assert jobgen(tmp_path, "logs", "--rank", "1").stdout == ("I am 1\n" if kept == "failed" else "")


def test_a_rank_is_followed_by_whole_lines(tmp_path: Path) -> None:
    """Whatever the other ranks of its node write between them, and whichever way the last line ends."""
    run = make_run(tmp_path / "runs", "exp", "1 began 5\n", job="5")
    made.nodes(run / "attempt-1", ranks=12, per_node=12)
    answer = tmp_path / "answer"
    answer.write_text("5|RUNNING|1:00|None\n")
    path = path_with(tmp_path / "bin", squeue=f"cat {answer}", sacct=NO_SACCT) + ":/usr/bin:/bin"
    command = [sys.executable, "-m", "jobgen", "logs", "-f", "--rank", "1"]
    env = {**os.environ, "PATH": path}
    reader = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "a log\n"
    with open(run / "attempt-1/nodes/0/node1.log", "a") as log:
        for part in ("0: no\n1: 10%\r20", "%\n1", "1: no\n1: the", " end"):
            log.write(part)
            log.flush()
            time.sleep(0.7)
    answer.write_text("")
    (run / "attempt-1/events").write_text("1 began 5\n9 ended 0\n")
    assert (reader.communicate(timeout=20)[0], reader.returncode) == ("10%\n20%\nthe end", 0)


# ----------------------------------------------------------------------------------------------------- diff


def planned(root: Path, name: str, case: str = "slurm_one_node", **changes: Any) -> Path:
    plan = plan_of(CASES[case])
    plan = resolve(plan.spec._replace(**changes))
    text = render(plan)
    run = make_run(root, name, "1 began 5\n9 ended 0\n")
    (run / "job.sh").write_text(text)
    (run / plan_file.NAME).write_text(plan_file.text(plan_file.of(plan, text, ["jobgen"], "/", (), (), None)))
    return run


def test_diff_names_exactly_what_differs(tmp_path: Path) -> None:
    one = planned(tmp_path, "one", program=("train.py", "--lr", "0.1", "--verbose", "--epochs=3"))
    two = planned(
        tmp_path, "two", program=("train.py", "--lr", "0.2", "--seed", "1", "--verbose", "--epochs=3")
    )
    assert [(row.section, row.name, row.values) for row in differences.compare(one, two).differences] == [
        ("program", "--lr", ("0.1", "0.2")),
        ("program", "--seed", (None, "1")),
    ]
    four = planned(tmp_path, "four", nodes=4, env=(("A", "1"), ("B", "2")))
    five = planned(tmp_path, "five", nodes=5, env=(("A", "1"), ("B", "3")))
    assert [(row.name, row.values) for row in differences.compare(four, five).differences] == [
        ("nodes", (4, 5)),
        ("env", (["B=2"], ["B=3"])),
    ]


def test_diff_of_tasks_shows_their_points(tmp_path: Path) -> None:
    array = planned(tmp_path, "sweep", "slurm_sweep_of_the_training_module")
    tasks = [make_run(array, f"task-{at}", "1 began 5\n9 ended 0\n", plan=False) for at in (0, 1)]
    for task, rate in zip(tasks, (0.1, 0.2), strict=True):
        (task / "sweep.json").write_text(json.dumps({"lr": rate, "batch_size": 32}))
    assert [row[:3] for row in differences.compare(*tasks).differences] == [("point", "lr", (0.1, 0.2))]
    other = planned(
        tmp_path, "other", "slurm_sweep_of_the_training_module", sweep=SweepRequest("zip", (("lr", (1, 2)),))
    )
    names = {(row.section, row.name) for row in differences.compare(array, other).differences}
    assert {("sweep", "mode"), ("sweep", "lr"), ("sweep", "batch_size")} <= names


def test_statuses_of_diff(tmp_path: Path) -> None:
    one, two = planned(tmp_path / "runs", "one"), planned(tmp_path / "runs", "two")
    assert jobgen(tmp_path, "diff", "one", "two").returncode == 0
    (two / "attempt-1/events").write_text("1 began 5\n9 ended 3\n")
    done = jobgen(tmp_path, "diff", "one", "two")
    assert (done.returncode, done.stdout) == (1, "results\n  state: finished -> failed\n  status: 0 -> 3\n")
    told = json.loads(jobgen(tmp_path, "diff", "--json", "one", "two").stdout)
    assert (told["same"], told["differences"][1]["values"]) == (False, [0, 3])
    (one / "plan.json").write_text("{")
    assert jobgen(tmp_path, "diff", "one", "two").returncode == 2
    assert "both names mean the run" in jobgen(tmp_path, "diff", "one", one.name).stderr


def test_diff_of_scripts_submitted_by_hand(tmp_path: Path) -> None:
    for name, nodes in (("one", 1), ("two", 2)):
        run = make_run(tmp_path / "runs", name, "1 began 5\n9 ended 0\n", plan=False)
        (run / "job.sh").write_text(f"#!/bin/bash\n#SBATCH --nodes={nodes}\n")
    done = jobgen(tmp_path, "diff", "one", "two")
    assert done.returncode == 1
    assert "-#SBATCH --nodes=1\n+#SBATCH --nodes=2\n" in done.stdout
    assert "without plan.json: one, two" in done.stderr


def test_the_runs_of_a_working_directory_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobgen.toml").write_text('scheduler = "local"\n[directories]\nworkdir = "~/w"\n')
    assert lookup.root_of(None) == tmp_path / "w/runs"
    (tmp_path / "jobgen.toml").write_text('scheduler = "local"\n[directories]\nworkdir = "$W/x"\n')
    assert str(lookup.root_of(None)) == "runs"
