"""Submission with schedulers that lie, hang and fail: a job is never lost and never made twice."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from golden.cases import CASES, plan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from support import jobs
from support.jobs import LAUNCHER_NOTE, path_with

from jobgen.commands import watch
from jobgen.errors import JobgenError
from jobgen.runs import cancellation, intent, job_recovery, run_files, states, submission, waiting
from jobgen.runs.states import State

# A job in the queue is a line "ID DIRECTORY". The file "act" is what the command for submission does, and "mute"
# exists if the scheduler does not answer.
TAKE = """
cd -P .; exec 3>> {q}/lock; flock 3
id=$((4711 + $(wc -l < {q}/queue))){server}
take() {{ echo "$id $PWD" >> {q}/queue; }}
exec 3>&-
. {q}/act
"""
MUTE = "[[ ! -e {q}/mute ]] || {{ echo 'cannot connect' >&2; exit 2; }}\n"
SLURM = {
    "sbatch": TAKE,
    "squeue": MUTE
    + "while read -r id path; do\n"
    + 'if [[ $* == *%o* ]]; then echo "$id|$path/job.sh"; else echo "$id|PENDING|1:00|None"; fi\n'
    + "done < {q}/queue",
    "sacct": "echo 'Slurm accounting storage is disabled' >&2; exit 1",
}
PBS = {
    "qsub": TAKE,
    "qselect": MUTE + "sed 's/ .*//' {q}/queue",
    "qstat": MUTE
    + "while read -r id path; do printf 'Job Id: %s\\n    job_state = Q\\n' $id\n"
    + "printf '    Variable_List = PBS_O_HOME=/,PBS_O_WORKDIR=%s,PBS_O_HOST=h\\n\\n' \"$path\"; done < {q}/queue",
}


PLANS = {"slurm": "slurm_one_node", "pbs": "pbspro_mpirun_two_nodes"}


@dataclass(frozen=True)
class Fake:
    """A scheduler whose queue is a file."""

    root: Path
    scheduler: str

    @classmethod
    def make(cls, root: Path, scheduler: str) -> Fake:
        q = root / "q"
        q.mkdir(parents=True)
        (q / "queue").touch()
        (root / "train.py").touch()
        server = ".head" if scheduler == "pbs" else ""
        programs = {"slurm": SLURM, "pbs": PBS}[scheduler]
        path_with(root / "bin", **{name: text.format(q=q, server=server) for name, text in programs.items()})
        return cls(root, scheduler)

    @property
    def path(self) -> str:
        return f"{self.root / 'bin'}:/usr/bin:/bin"

    @property
    def queue(self) -> list[str]:
        return [line.split()[0] for line in (self.root / "q/queue").read_text().splitlines()]

    @property
    def runs(self) -> list[Path]:
        return sorted((self.root / "runs").glob("*")) if (self.root / "runs").exists() else []

    def act(self, code: str, mute: bool = False) -> None:
        (self.root / "q/act").write_text(code)
        (self.root / "q/mute").touch() if mute else (self.root / "q/mute").unlink(missing_ok=True)

    def submit(self, patience: float = 0) -> submission.Submission:
        """Submit in this process, as the command does."""
        plan = plan_of(CASES[PLANS[self.scheduler]])
        job = submission.submit(submission.Order(plan, (), (), str(self.root)), "#!/bin/bash\n", patience)
        submission.finish(job)
        return job

    def refused(self) -> str:
        """Submit in this process and return the error."""
        with pytest.raises(JobgenError) as error:
            self.submit()
        return str(error.value)

    def submission(self, *words: str) -> list[str]:
        return ["submit", self.scheduler, "--name", "exp", *words, "--", "train.py"]

    def words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "jobgen", *self.submission(*words)]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Submit by the command."""
        return jobs.jobgen(*self.submission(*words), cwd=self.root, env=self.env)

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "PATH": self.path}

    def start(self) -> subprocess.Popen[str]:
        """Start a submission whose command waits for the file "go"."""
        self.act(
            f"touch {self.root}/begun; until [[ -e {self.root}/go ]]; do sleep 0.05; done; take; echo $id"
        )
        quiet: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(self.words(), cwd=self.root, env=self.env, **quiet)
        until((self.root / "begun").exists)
        return process

    def states(self) -> list[State]:
        return states.states(self.runs)[0]


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def old(run: Path, seconds: float) -> None:
    """Make the last sign of a submission older."""
    os.utime(run / intent.NAME, (time.time() - seconds,) * 2)


@pytest.fixture(params=["slurm", "pbs"])
def fake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake.make(tmp_path, request.param)
    monkeypatch.setenv("PATH", made.path)
    return made


LATER = "the job is queued all the same"
WELL = {
    "take; echo $id": "",
    "take; printf '%s \\r\\n' $id": "",
    "take; echo Welcome to the site; echo; echo \" $id\"; echo '*** 12 jobs of yours are queued ***'": "",
    "take; echo Job id: $id": "?",  # PBS Pro and Torque have other words for Slurm
    "take; echo Submitted batch job $id": "?",
    "take; echo $id; echo 5": "?",  # on PBS an id has a server
    "take; echo $id; echo 7.x; echo 8": "?",
    "take; echo thank you": f"printed: thank you; {LATER}",
    "take; echo 22.05.11": LATER,  # a version
    "take; exit 0": LATER,
    "take; echo 'Socket timed out on send/recv operation' >&2; exit 1": LATER,
    "take; echo $id; exit 3": LATER,
    "take; kill -9 $$": LATER,
    "take; echo 'Batch job submission failed: Resource temporarily unavailable' >&2; exit 1": LATER,
    "mkdir job-id; take; echo $id": "",  # the id cannot be written
}


@pytest.mark.parametrize("act", WELL)
def test_a_job_that_was_made_is_reported(act: str, fake: Fake) -> None:
    fake.act(act)
    job = fake.submit()
    assert fake.queue == [job.id]
    assert WELL[act] == "?" or (job.remark.endswith(WELL[act]) and bool(WELL[act]) == bool(job.remark))
    assert [(one.id, one.state) for one in fake.states()] == [(job.id, "pending")]
    assert not (job.directory / intent.NAME).exists()
    assert [fake.submit().id, len(fake.queue)] == [fake.queue[1], 2]  # another job, as it was asked for


def test_the_command_prints_only_the_id(fake: Fake) -> None:
    fake.act("take; echo a banner; echo $id; echo another one >&2")
    done = fake.run()
    assert (done.returncode, done.stdout) == (0, f"{fake.queue[0]}\n")
    [run] = fake.runs
    lines = ["submitted; jobgen status, logs -f and cancel know it as " + run.name, f"its files are in {run}"]
    assert LAUNCHER_NOTE.sub("", done.stderr).splitlines() == [f"jobgen: {line}" for line in lines]
    assert sorted(path.name for path in run.iterdir()) == ["job-id", "job.sh", "plan.json", "submitted-from"]


@pytest.mark.parametrize("act", ["echo 'no such queue' >&2; exit 1", "echo 'no such queue'; exit 170"])
def test_a_refused_job_leaves_nothing(act: str, fake: Fake) -> None:
    fake.act(act)
    assert re.fullmatch(r"(sbatch|qsub) refuses the job: no such queue", fake.refused())
    assert not (fake.root / "runs").exists()


@pytest.mark.parametrize(
    "act",
    [
        "exit 137",
        "echo 'Socket timed out on send/recv operation' >&2; exit 1",
        "echo 'Failed to recv data from background qsub' >&2; exit 255",
    ],
)
def test_a_failure_after_which_a_job_may_appear(act: str, fake: Fake) -> None:
    fake.act(act)
    assert "the scheduler lists no job, but there may be one: jobgen status" in fake.refused()
    [state] = fake.states()
    assert state.state == "submitting"


UNCLEAR = {
    "take; echo thank you": "printed no id of a job: thank you; it is unknown whether there is a job, because",
    "take; echo timeout >&2; exit 1": "refuses the job: timeout; it is unknown whether there is a job, because",
    "echo timeout >&2; exit 1": "refuses the job: timeout; it is unknown whether there is a job, because",
    "exit 0": "printed no id of a job",
    "kill -9 $$": "it is unknown whether there is a job",
}


@pytest.mark.parametrize("act", UNCLEAR)
def test_what_is_unknown_is_said_and_found_later(act: str, fake: Fake) -> None:
    fake.act(act, mute=True)
    said = fake.refused()
    [run] = fake.runs
    assert UNCLEAR[act] in said
    assert said.endswith(f"jobgen status {run.name} asks again")
    [state] = fake.states()
    assert state.state == "unknown"
    assert "no id of a job was recorded, and " in state.reason
    again = f"the same script is submitted as {run.name}: "
    assert f"{again}no id of a job was recorded" in fake.refused()

    fake.act("take; echo $id")
    if act.startswith("take"):
        job = fake.submit()
        assert (fake.queue, fake.runs, job.directory) == ([job.id], [run], run)
        assert job.remark == "this job was made by an earlier submission, which was interrupted"
        return
    assert fake.states()[0].state == "submitting"
    assert re.search(
        f"{again}no job is listed; this is certain in [0-9]+ s.*--new makes another", fake.refused()
    )
    old(run, job_recovery.GRACE + 1)
    [state] = fake.states()
    assert state.state == "never submitted"
    assert state.reason.startswith("the scheduler lists no job of its directory: submit it again")
    assert fake.queue == []
    assert fake.submit().id == fake.queue[0]
    assert [one.state for one in fake.states()] == ["never submitted", "pending"]


def test_an_id_with_an_error_does_not_remove_the_directory(fake: Fake) -> None:
    fake.act("echo $id; exit 1")
    assert "the scheduler lists no job, but there may be one" in fake.refused()
    assert [(one.id, one.state) for one in fake.states()] == [(None, "submitting")]


def test_an_earlier_job_that_has_ended_is_no_obstacle(fake: Fake) -> None:
    fake.act("take; echo thank you", mute=True)
    fake.refused()
    run = fake.runs[0]
    (run / "attempt-1").mkdir()
    (run / "attempt-1/events").write_text("1 began 4711\n2 ended 0\n")
    (run / "job-id").write_text("4711\n")
    fake.act("take; echo $id")
    assert fake.submit().directory != run


def test_an_earlier_submission_that_another_one_completes_meanwhile(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.act("take; echo thank you", mute=True)
    fake.refused()
    fake.act("take; echo $id")
    search, first = submission._earlier, []

    def late(others: list[Path]) -> submission.Submission | None:
        monkeypatch.setattr(submission, "_earlier", search)
        first.append(fake.submit())
        return search(others)

    monkeypatch.setattr(submission, "_earlier", late)
    second = fake.submit()
    assert (second.id, second.directory) == (first[0].id, first[0].directory)
    assert (fake.queue, fake.runs) == ([second.id], [second.directory])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_interrupted_while_the_command_runs(number: signal.Signals, fake: Fake) -> None:
    process = fake.start()
    process.send_signal(number)
    said = process.communicate(timeout=20)
    assert said[0] == ""
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "may have made a job: jobgen status exp-" in said[1]
    [state] = fake.states()
    assert state.state == "submitting"
    assert "has not ended yet" in state.reason
    done = fake.run()
    assert (done.returncode, len(fake.runs)) == (1, 1)
    assert "the same script is submitted as exp-" in done.stderr
    with pytest.raises(JobgenError, match="cannot be cancelled now: (sbatch|qsub) runs on"):
        cancellation.cancel(fake.runs[0], at_once=True)
    (fake.root / "go").touch()
    until(lambda: fake.queue and not intent.under_way(fake.runs[0]))
    [state] = fake.states()
    assert (state.id, state.state) == (fake.queue[0], "pending")
    assert (fake.runs[0] / "job-id").read_text() == f"{fake.queue[0]}\n"
    done = fake.run()  # the job has not been reported by jobgen submit
    assert (done.stdout, len(fake.queue), len(fake.runs)) == (f"{fake.queue[0]}\n", 1, 1)


def test_two_submissions_at_once(fake: Fake) -> None:
    first = fake.start()
    done = fake.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert "--new makes another job" in done.stderr
    (fake.root / "go").touch()
    assert fake.run("--new").stdout == f"{fake.queue[-1]}\n"
    assert first.communicate(timeout=20)[0].strip() in fake.queue
    assert (len(fake.queue), len(fake.runs)) == (2, 2)
    assert [one.state for one in fake.states()] == ["pending"] * 2


def test_many_submissions_at_once_make_one_job(fake: Fake) -> None:
    fake.act("sleep 0.5; take; echo $id")
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    many = [subprocess.Popen(fake.words(), cwd=fake.root, env=fake.env, **options) for _ in range(5)]
    said = [one.communicate(timeout=60)[0] for one in many]
    # One may begin after another one has ended, and then is a second job that was asked for.
    assert set(filter(None, said)) == {f"{one}\n" for one in fake.queue}
    assert len(fake.runs) == len(fake.queue)


def test_a_run_that_was_not_yet_submitted(fake: Fake) -> None:
    """Killed after the run directory was made, and before its submission was recorded."""
    run = run_files.make_run_dir(fake.root / "runs", "exp")
    (run / "plan.json").write_text(json.dumps({"scheduler": fake.scheduler}))
    assert fake.states()[0].state == "submitting"
    os.utime(run, (1, 1))
    assert fake.states()[0].state == "never submitted"
    assert (run / intent.UNUSED).exists()  # so that nobody asks for it for ever
    fake.act("", mute=True)
    assert fake.states()[0].state == "never submitted"


def record(fake: Fake, **facts: object) -> Path:
    """Make a run whose submission was interrupted."""
    run = run_files.make_run_dir(fake.root / "runs", "exp")
    (run / "plan.json").write_text(json.dumps({"scheduler": fake.scheduler}))
    os.close(intent.begin(run, fake.scheduler, "0"))
    head = json.loads((run / intent.NAME).read_text())
    (run / intent.NAME).write_text(json.dumps(head | facts) + "\n")
    return run


@pytest.mark.parametrize("facts", [{"host": "login02"}, {"lockable": False}])
def test_the_command_may_run_where_nobody_sees_it(facts: dict[str, object], fake: Fake) -> None:
    run = record(fake, **facts)
    for seconds, expected in ((100, "unknown"), (3700, "never submitted")):
        old(run, seconds)
        assert fake.states()[0].state == expected


def test_a_job_is_found_if_only_the_record_reached_the_disk(fake: Fake) -> None:
    """As after a power failure: the other files have no contents."""
    run = record(fake)
    (fake.root / "q/queue").write_text(f"9 {run}\n")
    for name in ("plan.json", "job.sh"):
        (run / name).write_text("")
    assert [(one.id, one.state) for one in fake.states()] == [("9", "pending")]


def test_an_empty_record_is_as_old_as_its_file(fake: Fake) -> None:
    """Killed, or the disk full, after the file was made."""
    run = record(fake)
    (run / intent.NAME).write_text("")
    assert fake.states()[0].state == "submitting"
    old(run, job_recovery.GRACE + 1)
    assert fake.states()[0].state == "never submitted"


def test_the_run_of_another_user_is_not_asked_for(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    run = record(fake)
    (fake.root / "q/queue").write_text(f"9 {run}\n")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert [(one.id, one.state) for one in fake.states()] == [(None, "unknown")]


def test_a_record_that_does_not_fit_on_the_disk_stops_the_submission(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.act("take; echo $id")
    monkeypatch.setattr(os, "write", lambda handle, data: len(data) // 2)
    assert "cannot be written: No space left on device" in fake.refused()
    assert (fake.queue, fake.runs) == ([], [])


def test_a_run_that_was_moved_is_found_by_its_earlier_name(fake: Fake) -> None:
    run = record(fake)
    (fake.root / "q/queue").write_text(f"9 {run}\n")
    run.rename(fake.root / "runs/moved")
    assert [(one.name, one.state) for one in fake.states()] == [("moved", "pending")]


@contextmanager
def example(scheduler: str) -> Iterator[Fake]:
    """A scheduler for one example of hypothesis."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        fake = Fake.make(Path(folder), scheduler)
        patch.setenv("PATH", fake.path)
        yield fake


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["slurm", "pbs"]), st.binary(max_size=300), st.booleans())
def test_a_damaged_record_loses_no_job(scheduler: str, data: bytes, whole: bool) -> None:
    with example(scheduler) as fake:
        run = record(fake)
        (fake.root / "q/queue").write_text(f"9 {run}\n")
        kept = (run / intent.NAME).read_bytes() if whole else b""
        (run / intent.NAME).write_bytes(kept + data)
        assert fake.states()[0].state == "pending"


LINES = [
    *("", "echo welcome", "echo '9 jobs'", "echo warning: 3 >&2", "printf 'a\\rb\\n'", "echo $id"),
    "echo Job id: $id",
]
ENDS = ["exit 0", "exit 0", "exit 1", "exit 170", "kill -9 $$"]


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(["slurm", "pbs"]),
    st.lists(st.sampled_from(LINES), max_size=4),
    st.booleans(),
    st.booleans(),
    st.sampled_from(ENDS),
)
def test_whatever_the_command_does(
    scheduler: str, lines: list[str], takes: bool, mute: bool, end: str
) -> None:
    """No job is lost, and none is made twice."""
    with example(scheduler) as fake:
        fake.act("\n".join([*lines[:2], "take" if takes else "", *lines[2:], end]), mute)
        ids = [attempt(fake)]
        assert fake.runs or not (takes or ids[0])
        fake.act("take; echo $id")
        ids += [attempt(fake)] if ids[0] is None else []
        known = [one.id for one in fake.states() if one.state == "pending"]
        assert fake.queue == known
        assert len(known) <= 1
        assert not takes or ids[-1] == known[0]


def attempt(fake: Fake) -> str | None:
    try:
        return fake.submit().id
    except JobgenError:
        return None


def test_wait_ends_with_the_status_of_the_job(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = record(fake)
    (run / "job-id").write_text("9\n")
    (fake.root / "q/queue").write_text(f"9 {run}\n")

    def ends() -> None:
        (run / "attempt-1").mkdir()
        (run / "attempt-1/events").write_text("1 began 9\n2 ended 3\n")

    steps = iter([lambda: fake.act("", mute=True), ends])
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: next(steps)())
    monkeypatch.setattr(waiting, "time", clock)
    assert watch.until_end(run) == 3
    said = [line.partition("attempt ")[2] for line in capsys.readouterr().err.splitlines() if "exp" in line]
    assert [line.split(", ")[:2] for line in said] == [
        ["0", "pending"], ["0", "unknown"], ["1", "failed"]
    ]  # fmt: skip


def test_waiting_is_interrupted_and_the_job_goes_on(fake: Fake) -> None:
    fake.act("take; echo $id")
    quiet: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(fake.words("--wait"), cwd=fake.root, env=fake.env, **quiet)
    assert process.stderr
    assert ", pending" in [process.stderr.readline() for _ in range(4)][-1]
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[1]
    assert said.endswith(f"jobgen: the job goes on: jobgen status {fake.runs[0].name}\n")
    assert (process.returncode, len(fake.queue)) == (130, 1)


def test_an_array_of_which_nothing_has_finished_goes_on_where_it_was(fake: Fake) -> None:
    """The script is the same; it may hold a secret, which only the script has."""
    fake.act("take; echo $id")
    first = fake.run("--array", "0-1", "--env", "HF_TOKEN=hunter22")
    assert first.returncode == 0, first.stderr
    [run] = fake.runs
    (run / "task-0/attempt-1").mkdir(parents=True)
    (run / "task-0/attempt-1/events").write_text("1 began 4711_0\n2 ended 75\n")
    again = ("submit", "--again", run.name)
    refused = jobs.jobgen(*again, cwd=fake.root, env=fake.env)
    assert "; wait for its end, or cancel it" in refused.stderr
    (fake.root / "q/queue").write_text("")
    done = jobs.jobgen(*again, cwd=fake.root, env=fake.env)
    assert done.returncode == 0, done.stderr
    [later] = set(fake.runs) - {run}
    assert (later / "task-0").resolve() == run / "task-0"
    assert not (later / "task-1").exists()
    assert (later / "job.sh").read_text() == (run / "job.sh").read_text()
