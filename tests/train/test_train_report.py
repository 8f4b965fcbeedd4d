"""status.json: whole or not there, the first failure counts, an earlier run's does not."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from jobgen.train import __main__ as command
from jobgen.train.report import Clock, Run


def run(directory: Path, rank: int, **env: str) -> Run:
    clock = Clock()
    clock.start = time.time() - 1  # not when this process of the test session did
    made = Run({"JOBGEN_RUN_DIR": str(directory), **env}, clock, rank)
    made.prepare()
    return made


def status(directory: Path) -> dict[str, object]:
    return json.loads((directory / "status.json").read_text())


def test_the_first_failure_counts(tmp_path: Path) -> None:
    zero, one = run(tmp_path, 0), run(tmp_path, 1)
    one.fail("no disk", "OSError", 1)
    assert zero.fail("lost a peer", "RuntimeError", 1)["message"] == "no disk"
    assert (status(tmp_path)["rank"], status(tmp_path)["state"]) == (1, "failed")
    assert [file.name for file in tmp_path.iterdir()] == ["status.json"]


def test_an_earlier_run_s_status_is_dropped(tmp_path: Path) -> None:
    old = {"state": "finished", "ended": time.time() - 60}
    (tmp_path / "status.json").write_text(json.dumps(old))
    run(tmp_path, 1, JOBGEN_START_TIME=str(time.time() - 30))
    assert status(tmp_path) == old  # rank 0 tidies up
    run(tmp_path, 0, JOBGEN_START_TIME=str(time.time() - 30))
    assert not (tmp_path / "status.json").exists()


def test_a_failure_of_this_run_is_kept(tmp_path: Path) -> None:
    start = str(time.time() - 30)
    run(tmp_path, 1, JOBGEN_START_TIME=start).fail("no data", "BadInput", 2)
    run(tmp_path, 0, JOBGEN_START_TIME=start)
    assert status(tmp_path)["message"] == "no data"


@pytest.mark.parametrize(
    "old",
    [
        pytest.param({"state": "finished"}, id="finished"),
        pytest.param({"state": "failed", "rank": None}, id="failed-before-it-knew-its-rank"),
        pytest.param({"state": "failed", "rank": 0}, id="the-same-rank"),
        pytest.param({"state": "failed", "rank": 1, "seconds": 60}, id="another-rank-that-began-before"),
        pytest.param({}, id="nothing"),
    ],
)
def test_a_status_just_written_by_an_earlier_run_does_not_count(
    tmp_path: Path, old: dict[str, object]
) -> None:
    zero = run(tmp_path, 0)
    (tmp_path / "status.json").write_text(json.dumps({"host": zero.host, "ended": time.time(), **old}))
    assert zero.fail("no disk", "OSError", 1)["message"] == "no disk"
    assert (status(tmp_path)["message"], status(tmp_path)["rank"]) == ("no disk", 0)


def test_a_rank_may_fail_after_rank_0_has_finished(tmp_path: Path) -> None:
    zero, one = run(tmp_path, 0), run(tmp_path, 1)
    zero.finish(accuracy=1.0)
    one.fail("no disk", "OSError", 1)
    assert (status(tmp_path)["state"], status(tmp_path)["rank"]) == ("failed", 1)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run directory for `command.main` in this process, where no launcher has set anything."""
    for name in set(os.environ) & {"RANK", "WORLD_SIZE", "LOCAL_RANK", "JOBGEN_START_TIME"}:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JOBGEN_RUN_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("state", ["finished", "failed"])
def test_a_mistake_right_after_another_run_is_told(
    alone: Path, state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (alone / "status.json").write_text(json.dumps({"state": state, "ended": time.time()}))
    assert command.main(["--task", "mnist"]) == 2
    assert capsys.readouterr().err.startswith("jobgen.train: --task mnist needs --data DIR")
    assert "needs --data" in str(status(alone)["message"])


def test_a_later_failure_is_told_too(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(alone, 1).fail("no disk", "OSError", 1)
    zero = run(alone, 0)
    assert command._fail(zero, RuntimeError("lost a peer"), 1) == 1
    assert "because rank 1 on" in (told := capsys.readouterr().err)
    assert told.endswith("failed first; error of this rank: RuntimeError: lost a peer\n")
    assert status(alone)["message"] == "no disk"


def test_startup_times(tmp_path: Path) -> None:
    one = run(tmp_path, 0, JOBGEN_START_TIME=str(time.time() - 1000))
    one.clock.mark("first_step")
    one.finish(accuracy=1.0)
    startup = status(tmp_path)["startup"]
    assert 995 < startup["first_step_from_job_start"] < 1005  # type: ignore[index]
    assert startup["first_step"] > 0  # type: ignore[index]


def test_metrics_are_there_at_once(tmp_path: Path) -> None:
    zero, one = run(tmp_path, 0), run(tmp_path, 1)
    zero.metric("step", loss=1.0)
    one.metric("step", loss=2.0)
    assert (tmp_path / "metrics.jsonl").read_text() == '{"event": "step", "loss": 1.0}\n'
