"""status.json: whole or not there, the first failure counts, an earlier run's does not."""

from __future__ import annotations

import json
import time
from pathlib import Path

from jobgen.train.report import Clock, Run


def run(directory: Path, rank: int, **env: str) -> Run:
    made = Run({"JOBGEN_RUN_DIR": str(directory), **env}, Clock(), rank)
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
