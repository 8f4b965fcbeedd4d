"""What the commands do at a terminal, and without one: the live table, colours, questions, a line about long work."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from support.jobs import path_with
from test_runs import NO_SACCT, jobgen, make_run

from jobgen.runs import waiting
from jobgen.runs.node_files import Log, last_lines

ANSWER = "41|RUNNING|1:00|None\n42|PENDING|1:00|Priority\n"


class Terminal:
    """A command at a terminal of 80 columns and 24 lines."""

    def __init__(self, cwd: Path, path: str, *words: str, **env: str) -> None:
        here, there = pty.openpty()
        command = ["setsid", "--ctty", sys.executable, "-m", "jobgen", *words]
        env = {**os.environ, "PATH": path, "TERM": "xterm", "COLUMNS": "80", "LINES": "24", **env}
        self.process = subprocess.Popen(command, cwd=cwd, env=env, stdin=there, stdout=there, stderr=there)
        os.close(there)
        self._side, self.text = here, ""

    def until(self, found: str) -> None:
        while found not in self.text and (more := self._more()):
            self.text += more
        assert found in self.text

    def _more(self) -> str:
        if not select.select([self._side], [], [], 120)[0]:
            self.process.kill()
            raise AssertionError(f"nothing more after {self.text!r}")
        try:
            return os.read(self._side, 4096).decode()
        except OSError:  # the end
            return ""

    def type(self, keys: str) -> None:
        os.write(self._side, keys.encode())

    def end(self) -> int:
        while more := self._more():
            self.text += more
        os.close(self._side)
        return self.process.wait(120)


@pytest.fixture
def slurm(tmp_path: Path) -> str:
    """A PATH with a squeue that prints a file, and notes when it was asked; three runs: two go on, one has ended."""
    (tmp_path / "answer").write_text(ANSWER)
    squeue = f"date +%s.%N >> {tmp_path}/asked; cat {tmp_path}/answer"
    for age, (name, events) in enumerate(
        (("exp-1", "1 began 5\n"), ("exp-2", ""), ("exp-3", "1 began 5\n9 ended 0\n"))
    ):
        run = make_run(
            tmp_path / "runs", name, events, job=f"4{name[-1]}", metrics_jsonl='{"step": 7, "loss": 0.5}\n'
        )
        os.utime(run / "plan.json", (time.time() - age,) * 2)
    return path_with(tmp_path / "bin", squeue=squeue, sacct=NO_SACCT, qstat="exit 1") + ":/usr/bin:/bin"


# ---------------------------------------------------------------------------------------------------- the log


@pytest.mark.parametrize("prefix", [b"", b"3: "])
def test_the_last_lines_are_those_of_tail(
    prefix: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobgen.runs.node_files._CHUNK", 7)
    texts = [
        b"",
        b"\n",
        b"a",
        b"3: a\n13: b\n3: c",
        b"3: \n3: x\n\n3: y\n",
        b"x\n" * 20,
        b"3: long line of words\n" * 3,
    ]
    for text in texts:
        (tmp_path / "log").write_bytes(text)
        mine = [line for line in text.splitlines(keepends=True) if line.startswith(prefix)]
        for lines in range(6):
            begin = last_lines(Log(tmp_path / "log", prefix), lines)
            found = [line for line in text[begin:].splitlines(keepends=True) if line.startswith(prefix)]
            assert found == (mine[-lines:] if lines else []), (text, lines)


def test_logs_tail(tmp_path: Path, slurm: str) -> None:
    output = tmp_path / "runs/exp-1/exp-5.log"
    output.write_text("one\ntwo\nthree\n")
    assert jobgen(tmp_path, "logs", "exp-1", "--tail", "2", path=slurm).stdout == "two\nthree\n"
    assert jobgen(tmp_path, "logs", "exp-1", "--tail", "0", path=slurm).stdout == ""
    assert "--tail -1 (command line): must be" in jobgen(tmp_path, "logs", "--tail", "-1").stderr
    command = [sys.executable, "-m", "jobgen", "logs", "-f", "--tail", "1", "exp-1"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PATH": slurm}, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout
        assert reader.stdout.readline() == "three\n"
        with output.open("a") as file:
            file.write("four\n")
        assert reader.stdout.readline() == "four\n"
        reader.send_signal(signal.SIGINT)
        assert reader.wait(30) == 130


# ----------------------------------------------------------------------------------------------------- cancel


def test_without_a_name_the_newest_run_is_cancelled_only_after_a_question(tmp_path: Path, slurm: str) -> None:
    slurm = path_with(tmp_path / "more", scancel=f'echo "$@" >> {tmp_path}/ended') + f":{slurm}"
    done = jobgen(tmp_path, "cancel", path=slurm)
    assert (done.returncode, done.stderr) == (
        2,
        "jobgen: cancel: the newest run is exp-1 (job 41, running): name it, or give --yes; without a terminal nobody can be asked\n",
    )
    for answer in ("\n", "n\n"):
        terminal = Terminal(tmp_path, slurm, "cancel", "--now")
        terminal.until("jobgen: cancel exp-1 (job 41, running)? [y/N]: ")
        terminal.type(answer)
        assert terminal.end() == 1
        assert "nothing is cancelled" in terminal.text
    terminal = Terminal(tmp_path, slurm, "cancel", "--now")
    terminal.until("[y/N]: ")
    while terminal.process.poll() is None:  # Python misses one that comes just before it reads
        terminal.type("\x03")
        with suppress(subprocess.TimeoutExpired):
            terminal.process.wait(5)
    assert terminal.end() == 130
    assert not (tmp_path / "ended").exists()
    terminal = Terminal(tmp_path, slurm, "cancel", "--now")
    terminal.until("[y/N]: ")
    terminal.type("y\n")
    assert terminal.end() == 0
    assert (tmp_path / "ended").read_text() == "--quiet 41\n"


def test_cancel_without_a_question(tmp_path: Path, slurm: str) -> None:
    slurm = path_with(tmp_path / "more", scancel=f'echo "$@" >> {tmp_path}/ended') + f":{slurm}"
    assert (
        jobgen(tmp_path, "cancel", "--now", "--yes", path=slurm).stderr
        == "jobgen: exp-1: job 41 is cancelled\n"
    )
    (tmp_path / "answer").write_text("")
    done = jobgen(tmp_path, "cancel", "--yes", path=slurm)
    assert (done.returncode, done.stderr) == (2, "jobgen: exp-1 is lost: there is nothing to cancel\n")


# ------------------------------------------------------------------------------------------------ live table


def test_the_live_table_is_drawn_in_place_until_all_have_ended(tmp_path: Path, slurm: str) -> None:
    terminal = Terminal(tmp_path, slurm, "status", "--watch", "2")
    terminal.until("pending")
    (tmp_path / "answer").write_text("41|COMPLETED|0:00|None\n42|FAILED|0:00|None\n")
    assert terminal.end() == 0
    first, *_, last = terminal.text.replace("\r\n", "\n").split("\x1b[3F\x1b[J")
    assert [line.split()[:3] for line in first.splitlines()] == [
        ["RUN", "JOB", "STATE"],
        ["exp-1", "41", "\x1b[36mrunning\x1b[0m"],
        ["exp-2", "42", "pending"],
    ]  # exp-3 had ended before
    assert re.findall(r"exp-\d .*m(\w+)\x1b\[0m", last) == ["finished", "failed"]
    asked = [float(time) for time in (tmp_path / "asked").read_text().split()]
    assert len(asked) >= 2
    assert all(later - sooner >= 2 for sooner, later in pairwise(asked))


def test_a_watch_is_ended_quietly(tmp_path: Path, slurm: str) -> None:
    terminal = Terminal(tmp_path, slurm, "status", "exp-1", "--watch")
    terminal.until("running")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert "interrupted" not in terminal.text


def test_without_a_terminal_each_change_is_a_line(tmp_path: Path, slurm: str) -> None:
    squeue = f"""
        [[ -f {tmp_path}/asked ]] || {{ touch {tmp_path}/asked; echo 'cannot \x1b[31mconnect' >&2; exit 1; }}
        echo '42|COMPLETED|0:00|None'"""
    slurm = path_with(tmp_path / "more", squeue=squeue) + f":{slurm}"
    done = jobgen(tmp_path, "status", "--watch", "2", "exp-2", "exp-3", path=slurm)
    lines = [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", "", line) for line in done.stdout.splitlines()]
    assert lines == [
        "exp-2, job 42, attempt 0, unknown, squeue does not answer: cannot \\x1b[31mconnect",
        "exp-3, job 43, attempt 1, finished",
        "exp-2, job 42, attempt 0, finished",
    ]
    assert (done.returncode, done.stderr) == (0, "jobgen: squeue does not answer: cannot \\x1b[31mconnect\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--watch 1", "--watch 1 (command line): must be a whole number from 2 to 3600"),
        ("--watch 4711", "RUN comes before --watch"),
        ("--watch nothing", "there is no run nothing in runs"),
        ("--watch --json", "--json and --watch contradict each other; leave one of them out"),
    ],
)
def test_a_watch_that_cannot_be(words: str, sentence: str, tmp_path: Path, slurm: str) -> None:
    done = jobgen(tmp_path, "status", *words.split(), path=slurm)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_waiting_has_a_time_limit_and_tells_each_change(
    tmp_path: Path, slurm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", slurm)
    runs = [tmp_path / "runs" / name for name in ("exp-3", "exp-2")]
    seen: list[list[str]] = []
    note: Callable[[waiting.Look], None] = lambda look: seen.append([one.state for one in look.states])  # noqa: E731
    with pytest.raises(TimeoutError, match="after 0.1 s not ended: exp-2"):
        waiting.wait(runs, timeout=0.1, on_change=note)
    (tmp_path / "answer").write_text("42|CANCELLED|0:00|None\n")
    assert [one.state for one in waiting.wait(runs, on_change=note)] == ["finished", "cancelled"]
    assert seen == [["finished", "pending"], ["finished", "cancelled"]]


def test_a_run_that_may_be_requeued_is_waited_for_while_its_scheduler_is_silent(
    tmp_path: Path, slurm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", slurm)
    (tmp_path / "answer").write_text("")
    run = make_run(tmp_path / "runs", "exp-4", "1 began 5\n9 ended 75\n", job="44")
    [look] = waiting.looks([run])
    assert (look.states[0].state, look.over) == ("resumable", True)
    monkeypatch.setenv("PATH", path_with(tmp_path / "more", squeue="exit 9", sacct="exit 9"))
    [look] = waiting.looks([run], timeout=0)
    assert (look.states[0].state, look.over) == ("unknown", False)
    assert look.states[0].reason.startswith("its last attempt saved (status 75), and squeue does not answer")


# ------------------------------------------------------------------------------------- colours and progress


@pytest.mark.parametrize(
    ("command", "env", "coloured"),
    [
        ("list", {}, True),
        ("status", {"NO_COLOR": ""}, True),
        ("list", {"NO_COLOR": "0"}, False),
        ("status", {"TERM": "dumb"}, False),
    ],
)
def test_states_have_colours_only_at_a_terminal(
    command: str, env: dict[str, str], coloured: bool, tmp_path: Path, slurm: str
) -> None:
    terminal = Terminal(tmp_path, slurm, command, **env)
    assert terminal.end() == 0
    assert ("\x1b[36mrunning\x1b[0m" in terminal.text) == coloured
    assert ("\x1b" in terminal.text) == coloured
    assert "\x1b" not in jobgen(tmp_path, command, path=slurm).stdout


def test_long_work_is_told_at_a_terminal_and_the_line_is_erased(tmp_path: Path, slurm: str) -> None:
    slow = path_with(tmp_path / "more", squeue=f"sleep 1.5; cat {tmp_path}/answer") + f":{slurm}"
    terminal = Terminal(tmp_path, slow, "list", NO_COLOR="1")
    assert terminal.end() == 0
    before, line, after = re.fullmatch(
        r"(.*?)\r\x1b\[K(jobgen: reading runs: .*)\r\x1b\[K(.*)", terminal.text, re.DOTALL
    ).groups()  # type: ignore[union-attr]
    assert (before, line.split("\r")[0]) == ("", "jobgen: reading runs: 3 of 3, 1 s")
    assert after.startswith("RUN ")
    assert jobgen(tmp_path, "list", path=slow).stderr == ""
