"""What a run leaves to be looked at: tables, TensorBoard's events, a trace, times."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jobgen.train import config, sinks
from jobgen.train.errors import BadInput, CommonMistake
from jobgen.train.flops import RATES
from support.require import need_package
from train_support import Finished, start

pytestmark = pytest.mark.xdist_group("watch")  # its tests share a training, which one worker runs


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Two ranks, two epochs of 23 steps, everything on; the blocks of DeepSpeed as well as the options."""
    need_package("tensorboard")
    folder = tmp_path_factory.mktemp("watched")
    block = {"enabled": True, "output_path": str(folder / "boards"), "job_name": "mine"}
    (folder / "ds.json").write_text(json.dumps({"tensorboard": block, "csv_monitor": block}))
    options = ["--epochs", "2", "--deepspeed_config", "ds.json", "--tensorboard", "--csv"]
    options += ["--profile", "3", "--wall-clock-breakdown", "--zero-stage", "1"]
    done = start(folder, "warm", options)
    assert done.returncode == 0, done.stderr
    return done


def test_metrics(watched: Finished) -> None:
    steps, epochs = watched.metrics("step"), watched.metrics("epoch")
    assert [row["step"] for row in steps] == [1, 10, 20, 23, 33, 43, 46]
    assert all(row["gradient_norm"] > 0 and row["samples_per_second"] > 0 for row in steps)
    assert [row["step"] for row in epochs] == [23, 46]
    assert epochs[1]["samples_per_second"] > 0
    assert watched.metrics("time")[0].keys() == {"event", "data", "train", "evaluate"}


@pytest.mark.parametrize("place", ["run/tensorboard", "boards/mine"])
def test_tensorboard(watched: Finished, place: str) -> None:
    found = scalars(watched.directory.parent / place)
    tags = {event: {k: tag for k, tag in of.items() if k not in RATES} for event, of in sinks.TAGS.items()}
    assert found.keys() == {*tags["step"].values(), *tags["epoch"].values(), "epoch/accuracy"}
    for event in ("step", "epoch"):
        for name, tag in tags[event].items():
            expected = [(row["step"], pytest.approx(row[name], rel=1e-5)) for row in watched.metrics(event)]
            assert found[tag] == expected


@pytest.mark.parametrize("place", ["run/metrics.csv", "boards/mine/metrics.csv"])
def test_csv(watched: Finished, place: str) -> None:
    with open(watched.directory.parent / place, encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["event"] for row in rows] == ["step"] * 4 + ["epoch"] + ["step"] * 3 + ["epoch"]
    assert [float(row["loss"]) for row in rows if row["loss"]] == watched.losses()
    assert float(rows[-1]["accuracy"]) == watched.status["accuracy"]


def test_deepspeed_writes_none_of_its_own(watched: Finished) -> None:
    assert not {"tensorboard", "csv_monitor"} & watched.metrics("start")[0]["deepspeed"].keys()
    left = sorted(
        file.name.partition(".")[0] for file in (watched.directory.parent / "boards" / "mine").iterdir()
    )
    assert left == ["events", "metrics"]


def test_profile(watched: Finished) -> None:
    folder = watched.directory / "profile"
    assert {file.name for file in folder.iterdir()} == {"rank-0.json.gz", "rank-1.json.gz", "operations.txt"}
    for rank in range(2):
        trace = json.loads(gzip.decompress((folder / f"rank-{rank}.json.gz").read_bytes()))
        parts = [event["name"] for event in trace["traceEvents"] if event.get("cat") == "user_annotation"]
        assert parts.count("train") == 3
    assert "aten::convolution" in (folder / "operations.txt").read_text()


def test_times_and_the_table_at_the_end(watched: Finished) -> None:
    lines = watched.stdout.splitlines()
    at = lines.index("epoch  train loss   test loss  accuracy  samples/s   seconds")
    for row, line in zip(watched.metrics("epoch"), lines[at + 1 : at + 3], strict=True):
        assert line.split()[:3] == [str(row["epoch"]), f"{row['train_loss']:.4f}", f"{row['test_loss']:.4f}"]
    assert lines[at + 3].startswith("best accuracy")
    assert [line.split()[0] for line in lines[at + 5 : at + 8]] == ["data", "train", "evaluate"]


def test_of_many_epochs_the_table_shows_some() -> None:
    need_package("torch")
    from jobgen.train.metrics import METRICS
    from jobgen.train.watch import table

    def row(epoch: int) -> dict[str, Any]:
        return {
            "epoch": epoch,
            "train_loss": 1.0,
            "test_loss": 1.0,
            "accuracy": 0.9 if epoch == 31 else 0.5,
            "samples_per_second": 1.0,
            "seconds": 1.0,
        }

    lines = table([row(epoch) for epoch in range(1, 101)], [METRICS["accuracy"]])
    assert [line.split()[0] for line in lines[1:-1]] == [*map(str, range(1, 101, 5)), "100"]
    assert lines[-1] == "best accuracy 90.00% in epoch 31"
    assert len(table([row(1)], [METRICS["accuracy"]])) == 2
    assert table([], []) == []


def test_a_run_too_short_to_profile_says_so(tmp_path: Path) -> None:
    done = start(tmp_path, "warm", ["--epochs", "1", "--batch-size", "1000", "--profile"], ranks=1)
    assert done.returncode == 0, done.stderr
    assert "note: --profile begins after 2 steps, and this run has 2" in done.stdout
    assert not (done.directory / "profile").exists()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CommonMistake, match="--tensorboard needs the Python package tensorboard: pip"):
        sinks.plan(config.parse(["--tensorboard"]), {})
    with pytest.raises(CommonMistake, match="the config file's tensorboard block needs"):
        sinks.plan(config.parse([]), {"tensorboard": {"enabled": True}})
    assert sinks.plan(config.parse(["--csv"]), {"tensorboard": {"enabled": False}}).tensorboard == []


@pytest.mark.parametrize("kind", ["csv", "tensorboard"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, kind: str) -> None:
    if kind == "tensorboard":
        need_package("torch", "tensorboard")
    (tmp_path / "file").touch()
    places = sinks.Places([], [])._replace(**{kind: [tmp_path / "file" / "below"]})
    with pytest.raises(BadInput, match="the metrics cannot be written to .*/file"):
        sinks.open_all(places, tmp_path)


def test_an_own_logger_gets_each_event(tmp_path: Path) -> None:
    """mlflow's, of the documentation. A logger that fails does not end the training."""
    need_package("torch", "mlflow")
    page = (Path(__file__).parents[2] / "docs/training-runs.md").read_text()
    (code,) = re.findall(r"cat > loggers.py <<'END'\n(.*?)^END$", page, re.S | re.M)
    broken = "def broken(directory, options):\n    return lambda event, values: 1 / 0\n"
    (tmp_path / "loggers.py").write_text(f"{code}\n\n{broken}")
    run = ["--engine", "ddp", "--epochs", "2", "--no-save", "--logger"]
    env = {"PYTHONPATH": str(tmp_path)}
    done = start(tmp_path, "warm", [*run, "loggers:mlflow"], env=env)
    assert done.returncode == 0, done.stderr
    (metric,) = (tmp_path / "mlruns").glob("*/*/metrics/test_loss")
    values = [float(line.split()[1]) for line in metric.read_text().splitlines()]
    assert values == [row["test_loss"] for row in done.metrics("epoch")]
    (record,) = (tmp_path / "mlruns").glob("*/*/meta.yaml")
    assert "status: 3" in record.read_text()  # finished
    done = start(tmp_path / "broken", "warm", [*run, "loggers:broken"], env=env)
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr.count("--logger loggers:broken failed, and is not called again: ZeroDivisionError") == 1
    )
    done = start(tmp_path / "none", "warm", [*run, "loggers:mlfow"], env=env)
    assert done.returncode == 2
    assert "--logger loggers:mlfow: loggers has no mlfow (did you mean 'mlflow'?)" in done.stderr


def test_a_table_that_goes_on(tmp_path: Path) -> None:
    """A resumed run's table begins with what metrics.jsonl still holds of the earlier one."""
    rows = [{"event": "start"}, {"event": "step", "step": 1, "loss": 2.0, "more": 1}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "metrics.csv").write_text("event\nstep\nstep\n")
    places = sinks.plan(config.parse(["--csv"]), {})
    (write,) = sinks.open_all(places, tmp_path, resume_step=1)
    write("step", {"step": 2, "loss": 1.0, "more": 2})
    lines = (tmp_path / "metrics.csv").read_text().splitlines()
    write("evaluation", {"step": 2, "test_loss": 0.5})
    assert (tmp_path / "metrics.csv").read_text().splitlines()[-1].startswith("evaluation,,2,,")
    assert lines == [",".join(sinks.columns(["accuracy"])), "step,,1,2.0,,,,,,,", "step,,2,1.0,,,,,,,"]
