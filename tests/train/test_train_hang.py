"""Hangs: real runs of two ranks in which one stops going on."""

from __future__ import annotations

import json
import re
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from jobgen.train import hang, nodefiles
from jobgen.train.errors import BadInput, CommonMistake
from train_support import Finished, start

# A model that hangs on one rank in the forward pass of its 6th step.
MODEL = """
    import ctypes, os, time
    from torch import nn

    class Hanging(nn.Linear):
        passes = 0

        def forward(self, x):
            Hanging.passes += self.training
            if Hanging.passes == 6 and os.environ["RANK"] == os.environ["HANGS"]:
                hang_here()
            return super().forward(x.flatten(1))

    def hang_here():
        {hang}

    def build(shape, classes):
        channels, height, width = shape
        return Hanging(channels * height * width, classes)
"""
SLEEP = "time.sleep(1000)"
# With Python's lock held: no other thread of the rank can run Python.
C_SLEEP = "ctypes.PyDLL(None).sleep(1000)"


def hung_run(
    tmp_path: Path, how: str, *options: str, ranks: int = 2, rank: int = 1, launcher: str = "warm"
) -> Finished:
    (tmp_path / "hanging.py").write_text(textwrap.dedent(MODEL.format(hang=how)))
    env = {"PYTHONPATH": str(tmp_path), "HANGS": str(rank)}
    always = ["--model", "hanging:build", "--epochs", "2", "--hang-timeout", "3s"]
    return start(tmp_path, launcher, [*always, *options], ranks, env)


def stacks_file(directory: Path) -> Path:
    [file] = directory.glob("stacks/0/*.txt")
    return file


def stacks(directory: Path) -> dict[int, str]:
    """The blocks of the ranks of this host; the last one of a rank counts."""
    blocks = re.split(r"(?m)^(?=\S+ \S+ rank \d+ on \S+ hangs)", stacks_file(directory).read_text())
    found = [(re.match(r"\S+ \S+ rank (\d+) on ", block), block) for block in blocks]
    return {int(match[1]): block for match, block in found if match}


@pytest.mark.parametrize(
    ("engine", "rank"), [(["--engine", "ddp"], 1), (["--engine", "ddp"], 0), (["--zero-stage", "2"], 1)]
)
def test_a_rank_that_hangs(engine: list[str], rank: int, tmp_path: Path) -> None:
    done = hung_run(tmp_path, SLEEP, *engine, "--save-every", "4", rank=rank)
    assert done.returncode == 75, done.stderr
    status = done.status
    assert (status["state"], status["exit_status"], status["reason"]) == ("resumable", 75, "hang")
    saved = 5 if engine == ["--engine", "ddp"] else 4  # what every rank has whole is saved after all
    assert (status["rank"], status["step"], status["from_step"]) == (rank, saved, 0)
    assert status["checkpoint"] == f"step-00000{saved}"
    assert f"the run can resume from step-00000{saved}" in status["message"]
    assert not list((done.directory / "checkpoints").glob(".*"))
    assert f"rank {rank} after step 5 in hang_here (hanging.py:" in status["message"]
    found = stacks(done.directory)
    assert "hang_here" in found[rank]
    assert "train_step" in found[1 - rank]
    assert all("hangs after step 5, for 3 s" in block.splitlines()[0] for block in found.values())
    for each in range(2):
        said = rf"rank {each} on \S+ hangs after step 5, for 3 s; its stacks are in {stacks_file(done.directory)}"
        assert re.search(said, done.stderr)
    assert {file.name for file in (done.directory / "hang").iterdir()} == {"nodes", "verdict.json"}


def test_the_run_goes_on_and_forgets(tmp_path: Path) -> None:
    assert hung_run(tmp_path, SLEEP, "--engine", "ddp", "--save-every", "4").returncode == 75
    assert (tmp_path / "run" / "hang").is_dir()
    done = hung_run(tmp_path, SLEEP, "--engine", "ddp", "--save-every", "4", "--resume", rank=7)
    assert done.returncode == 0, done.stderr
    assert done.status["state"] == "finished"
    assert "after step 5" in done.stdout
    assert not (tmp_path / "run" / "hang").exists()
    assert "hang_here" in stacks(tmp_path / "run")[1]  # for whoever looks into it later


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_hangs_with_python_s_lock(rank: int, tmp_path: Path) -> None:
    """Its watchdog cannot run: faulthandler's C thread writes the stacks, and the other rank leaves."""
    options = ("--engine", "ddp", "--save-every", "4")
    done = hung_run(tmp_path, C_SLEEP, *options, rank=rank, launcher="mpirun")  # which ends the hung rank
    assert done.returncode == 75, done.stderr
    status = done.status
    assert (status["state"], status["reason"], status["rank"]) == ("resumable", "hang", rank)
    assert f"rank {rank} did not answer" in status["message"]
    block = stacks(done.directory)[1 - rank]
    assert "train_step" in block.partition("Timeout (")[0]
    text = stacks_file(done.directory).read_text()
    timeout = text[text.index("Timeout (") :]
    assert "hang_here" in timeout
    assert f"in watchdog_of_rank_{rank}\n" in timeout


def test_one_rank_without_a_checkpoint_saves_one(tmp_path: Path) -> None:
    done = hung_run(tmp_path, SLEEP, "--engine", "ddp", ranks=1, rank=0)
    assert done.returncode == 75, done.stderr
    assert done.status["checkpoint"] == "step-000005"


def test_without_a_checkpoint(tmp_path: Path) -> None:
    done = hung_run(tmp_path, SLEEP, "--zero-stage", "1", rank=0)
    assert done.returncode == 75, done.stderr
    assert done.status["checkpoint"] is None
    assert "no checkpoint: the next attempt starts over" in done.stderr


def test_nothing_is_left_of_a_run_that_goes_on(tmp_path: Path) -> None:
    words = ["--epochs", "1", "--engine", "ddp", "--no-save"]
    done = start(tmp_path, "warm", words, ranks=1, env={"JOBGEN_HANG_TIMEOUT": "20"})
    assert done.returncode == 0, done.stderr
    assert {file.name for file in done.directory.iterdir()} == {"metrics.jsonl", "status.json"}


def test_the_limit() -> None:
    assert hang.limit(None, {}) == 1800
    assert hang.limit(None, {"JOBGEN_HANG_TIMEOUT": "90s"}) == 90
    assert hang.limit(7.0, {"JOBGEN_HANG_TIMEOUT": "90s"}) == 7
    assert hang.limit(0.0, {"JOBGEN_HANG_TIMEOUT": "90s"}) == 0
    with pytest.raises(BadInput, match="JOBGEN_HANG_TIMEOUT: 'soon' is not a time"):
        hang.limit(None, {"JOBGEN_HANG_TIMEOUT": "soon"})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("90s", 90), ("1.5h", 5400), ("30m", 1800), ("2h", 7200), ("1d", 86400)],
)
def test_times(text: str, seconds: float) -> None:
    from jobgen.train import config

    assert config.parse(["--hang-timeout", text]).hang_timeout == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "1w", "1h30m", "nan", "1e3", "٣"])
def test_what_is_no_time(text: str) -> None:
    from jobgen.train import config

    with pytest.raises(CommonMistake, match="is not a time"):
        config.parse([f"--hang-timeout={text}"])


def report(step: int, at: str = "wait (c10d.py:1)", in_torch: bool = True) -> dict[str, Any]:
    return {"host": "n", "step": step, "at": at, "in_torch": in_torch}


@pytest.mark.parametrize(
    ("reports", "rank", "says"),
    [
        ({0: report(5), 2: report(5)}, 1, "rank 1 did not answer"),
        ({0: report(5), 1: report(4), 2: report(5)}, 1, "rank 1 after step 4"),
        ({0: report(5), 1: report(5), 2: report(5, "read (own.py:3)", False)}, 2, "in read (own.py:3)"),
        ({0: report(5), 1: report(5, "save (x.py:1)"), 2: report(5)}, 1, "ranks 0, 2 after step 5"),
    ],
)
def test_whom_the_others_wait_for(reports: dict[int, dict[str, Any]], rank: int, says: str) -> None:
    message, named = hang.describe(reports, 3)
    assert named == rank
    assert says in message


class FakeSaver:
    latest, saved_step = None, 0
    start: Any = type("Progress", (), {"step": 0})


def watchdog(tmp_path: Path, seconds: float) -> hang.Watchdog:
    from jobgen.train.ranks import Ranks
    from jobgen.train.report import Clock, Run

    run = Run({"JOBGEN_RUN_DIR": str(tmp_path)}, Clock(), 0)
    me = Ranks(0, 1, 0, 1, "127.0.0.1", 1, "test")
    return hang.Watchdog(seconds, run, me, FakeSaver())  # type: ignore[arg-type]


def test_progress_costs_next_to_nothing(tmp_path: Path) -> None:
    with watchdog(tmp_path, 60.0) as dog:
        best = 1.0
        for _ in range(5):
            began = time.thread_time()
            for step in range(10_000):
                dog.progress(step)
            best = min(best, (time.thread_time() - began) / 10_000)
    assert best < 5e-6


def test_switched_off(tmp_path: Path) -> None:
    with watchdog(tmp_path, 0.0) as dog:
        dog.progress(1)
        assert list(tmp_path.iterdir()) == []


def test_the_reports_that_are_there(tmp_path: Path) -> None:
    whole = json.dumps({"rank": 3, **report(1)})
    nodefiles.append(tmp_path / "nodes" / "0" / "n.json", whole + "\n" + '{"rank": 4, "st')
    nodefiles.append(tmp_path / "nodes" / "21" / "m.json", whole.replace("3", "8400", 1) + "\n")
    assert set(hang._reports(tmp_path)) == {3, 8400}


def test_what_is_said_of_thousands_of_ranks_is_short() -> None:
    reports = {rank: report(5) for rank in range(8192)}
    assert "ranks 0-8191 after step 5" in hang.describe(reports, 8192)[0]
    assert "ranks 1-8191 did not" in hang.describe({0: report(5)}, 8192)[0]
    assert hang._steps(reports | {9: report(4)}) == {"0-8,10-8191": 5, "9": 4}
