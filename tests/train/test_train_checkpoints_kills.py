"""SIGKILL of one rank, or of all, at random moments while they save: nothing is lost, and a run that goes on
ends with the undisturbed run's weights. The short form of ``python -m benchmarks checkpoint_kills``."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support import warm
from train_support import PYTHON, clean_environment, module_needs

module_needs("torch", "deepspeed", "numpy", "sklearn")

from jobgen.train import checkpoints  # noqa: E402

from benchmarks.checkpoint_kills import BAD, kill  # noqa: E402


@pytest.mark.parametrize(
    ("kind", "moments"), [("ddp", 12), ("ddp-async", 8), ("fsdp", 5), ("fsdp-async", 8), ("zero1", 5)]
)
def test_killed_while_saving(kind: str, moments: int) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    counts = kill(kind, moments, seed)
    assert counts["moments"] == moments
    # All but the first two starts of a chain find a checkpoint: the second kill comes after a save.
    assert counts["resumes"] >= max(1, moments - counts["finished"])
    assert counts["finished"] >= 1
    assert {name: counts[name] for name in BAD} == dict.fromkeys(BAD, 0)


@pytest.mark.parametrize("engine", ["ddp", "fsdp"])
def test_a_stop_waits_for_the_save_that_is_under_way(engine: str, tmp_path: Path) -> None:
    run = ["--engine", engine, "--epochs", "1000", "--save-every", "1", "--async-save", "--keep", "2"]
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(tmp_path)}
    metrics = tmp_path / "metrics.jsonl"
    with warm.world(run, env, tmp_path, 2) as ranks:
        deadline = time.monotonic() + 120
        while not (metrics.exists() and '"checkpoint"' in metrics.read_text()):
            assert time.monotonic() < deadline, "nothing was saved"
            time.sleep(0.1)
        ranks[0].send_signal(signal.SIGUSR1)
        statuses, _, err = warm.finish(ranks, 120)
    assert statuses == [75, 75], err
    status = json.loads((tmp_path / "status.json").read_text())
    place = tmp_path / "checkpoints"
    found = checkpoints.at(place)
    assert found.trouble == ()
    assert (found.directory.name, found.record["progress"]["step"]) == (status["checkpoint"], status["step"])
    assert not list(place.glob(".*"))
    events = [json.loads(line) for line in metrics.read_text().splitlines()]
    steps = [event["step"] for event in events if event["event"] == "checkpoint"]
    assert steps == list(range(1, status["step"] + 1))


def test_killed_at_each_operation_on_a_file(tmp_path: Path) -> None:
    """Never does a run go on from an earlier step than after a kill one operation sooner."""
    script = Path(__file__).with_name("crashes.py")
    done = subprocess.run(
        [PYTHON, str(script), str(tmp_path)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) > 90
    assert {row["status"] for row in rows[:-1]} == {-9}
    assert rows[-1]["status"] == 0
    steps = [row["step"] for row in rows]
    assert steps == sorted(steps)
    assert set(steps) == {0, 1, 2, 3}
    # Only the first one of all has its name before `latest` is there.
    troubled = [row for row in rows if row["trouble"]]
    assert all(row["step"] == 1 and "latest cannot be read" in row["trouble"][0] for row in troubled)
    assert len(troubled) < 5
