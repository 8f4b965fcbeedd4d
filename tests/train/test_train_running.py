"""How long a run is, when it evaluates and saves, which checkpoint is its best, and how it goes on elsewhere."""

# ruff: noqa: E402 (packages are looked for before they are imported)
from __future__ import annotations

import fcntl
import json
import math
import os
import pty
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from support.require import need_package
from train_support import clean_environment, launcher_command, module_needs, start

module_needs("torch", "numpy", "sklearn", "hypothesis")

import torch
from hypothesis import given
from hypothesis import strategies as st
from jobgen.train import best, checkpoints, config
from jobgen.train.checkpoints import storage
from jobgen.train.config import batches, recipe, schedules
from jobgen.train.errors import BadInput, CommonMistake

pytestmark = pytest.mark.xdist_group("running")  # its tests share processes that have imported torch

MINE = """
import os
import numpy as np
import torch
from torch import nn

def build(shape, classes):
    pixels = shape[0] * shape[1] * shape[2]
    layers = (nn.Linear(pixels, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(16, classes))

class Mask(nn.Module):
    def forward(self, inputs):
        if self.training:
            mask = nn.functional.dropout(torch.ones(64), 0.5)
            with open(f"masks-{os.environ['RANK']}", "a") as file:
                print("".join(str(int(each > 0)) for each in mask), file=file)
        return inputs

def masked(shape, classes):
    return nn.Sequential(Mask(), build(shape, classes))

class Numbers:
    def __init__(self, optimizer):
        self.optimizer, self.done = optimizer, np.int64(0)

    def step(self):
        self.done += 1
        for group in self.optimizer.param_groups:
            group["lr"] = np.float64(0.01) / self.done

    def state_dict(self):
        return {"done": self.done, "every": np.arange(3.0)}

    def load_state_dict(self, state):
        self.done = state["done"]

class Closed(Numbers):
    def state_dict(self):
        return {"range": range(3), "path": type(self)}
"""
DDP = ["--engine", "ddp"]


@pytest.fixture
def mine(tmp_path: Path) -> list[str]:
    """The options of the model above, which runs in tmp_path and in the folders below it have."""
    for folder in (tmp_path, tmp_path / "other"):
        folder.mkdir(exist_ok=True)
        (folder / "mine.py").write_text(MINE)
    return [*DDP, "--model", "mine:build"]


def weights(place: Path) -> dict[str, torch.Tensor]:
    return storage.load(checkpoints.at(place).directory / "model.pt")["model"]


def numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("seconds", "samples_per_second")} for row in rows]


def test_steps_evaluations_and_the_best(tmp_path: Path, mine: list[str]) -> None:
    """720 samples fill 11 steps of 128, the last smaller: 27 steps are two epochs and 3 steps."""
    options = [*mine, "--global-batch", "128", "--max-steps", "27", "--log-every", "4"]
    more = ["--eval-every", "5", "--keep-best", "loss", "--keep", "1", "--lr", "0.1"]
    done = start(tmp_path, "warm", [*options, *more])
    assert done.returncode == 0, done.stderr
    assert done.status["steps"] == 27
    assert done.status["epochs"] == 3
    assert [row["step"] for row in done.metrics("evaluation")] == [5, 10, 15, 20, 25]
    assert [(row["epoch"], row["step"]) for row in done.metrics("epoch")] == [(1, 12), (2, 24), (3, 27)]
    assert all(row["gradient_norm"] > 0 for row in done.metrics("step"))
    assert "epoch 1/3 step 5/12: test loss" in done.stdout
    place = done.directory / "checkpoints"
    evaluations = sorted([*done.metrics("evaluation"), *done.metrics("epoch")], key=lambda row: row["step"])
    lowest = min(evaluations, key=lambda row: row["test_loss"])
    found = checkpoints.at(place / "best")
    assert found == checkpoints.find("best", place)
    assert found.record["progress"]["step"] == lowest["step"]
    assert found.record["progress"]["scores"]["loss"] == lowest["test_loss"]
    assert checkpoints.ids(place) == sorted({found.directory.name, "step-000027"})
    # An evaluation does not change the training, not even the running statistics.
    other = start(tmp_path / "other", "warm", [*options, "--lr", "0.1"])
    assert other.returncode == 0, other.stderr
    assert checkpoints.ids(other.directory / "checkpoints") == ["step-000027"]
    ours, theirs = weights(place), weights(other.directory)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_killed_run_stops_early_at_the_same_step(tmp_path: Path, mine: list[str]) -> None:
    options = [*mine, "--lr", "0.3", "--eval-every", "4", "--early-stopping", "3", "--max-steps", "4000"]
    options += ["--scheduler", "plateau", "--patience", "1", "--save-every", "3", "--keep-best", "accuracy"]
    whole = start(tmp_path / "other", "warm", options, 1)
    assert whole.returncode == 0, whole.stderr
    assert 12 < whole.status["steps"] < 4000
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(tmp_path / "run")}
    place = tmp_path / "run" / "checkpoints"
    command = [*launcher_command("one", 1), *options]
    process = subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL)
    middle = f"step-{whole.status['steps'] // 2:06d}"
    until = time.monotonic() + 120
    while not (place / "latest").exists() or (place / "latest").read_text() < middle:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.001)
    process.kill()
    process.wait()
    done = start(tmp_path, "warm", [*options, "--resume"], ranks=1)
    assert done.returncode == 0, done.stderr
    assert "resumes from" in done.stdout
    for event in ("step", "evaluation", "epoch"):
        assert numbers(done.metrics(event)) == numbers(whole.metrics(event))
    rates = [row["lr"] for row in done.metrics("step")]
    assert rates[0] == 0.3
    assert rates == sorted(rates, reverse=True)
    assert (place / "best").read_text() == (whole.directory / "checkpoints" / "best").read_text()
    # Nothing is left to do for a run that has ended.
    again = start(tmp_path, "warm", [*options, "--resume"], ranks=1)
    assert again.status["steps"] == whole.status["steps"]


def test_the_end_of_a_run_is_saved_unless_told_otherwise(tmp_path: Path) -> None:
    short = [*DDP, "--epochs", "1", "--batch-size", "500"]
    done = start(tmp_path / "one", "warm", short, 1)
    assert checkpoints.ids(done.directory / "checkpoints") == ["step-000003"]
    assert start(tmp_path / "none", "warm", [*short, "--no-save"], 1).returncode == 0
    assert not list((tmp_path / "none").rglob("step-*"))
    with pytest.raises(BadInput, match=r"best names no checkpoint: the run .* has --keep-best METRIC"):
        checkpoints.find("best", done.directory / "checkpoints")


def test_an_unknown_metric_is_refused(tmp_path: Path) -> None:
    done = start(tmp_path, "warm", [*DDP, "--keep-best", "acuracy"], 1)
    assert done.returncode == 2
    assert "--keep-best acuracy is not a metric of this run: it has" in done.stderr
    assert "(did you mean 'accuracy'?)" in done.stderr


@pytest.mark.parametrize("given", ["--drop-last", "dataloader_drop_last"])
def test_a_left_over_batch_of_one_sample(given: str, tmp_path: Path, mine: list[str]) -> None:
    """BatchNorm refuses one sample: 1437 are two batches of 718 and one."""
    size = ["--batch-size", "718", "--epochs", "1", "--no-save"]
    if given == "--drop-last":
        done = start(tmp_path, "warm", [*mine, *size], 1)
        assert done.returncode == 0, done.stderr
        assert done.status["steps"] == 3
        drop = ["--drop-last"]
        done = start(tmp_path, "warm", [*mine, *drop, "--batch-size", "2000"], 1)
        assert done.returncode == 2
        assert "--drop-last leaves no step: the 1437 training samples do not fill" in done.stderr
    else:
        (tmp_path / "ds.json").write_text(json.dumps({given: True}))
        drop = ["--deepspeed_config", "ds.json"]
    done = start(tmp_path, "warm", [*mine, *size, *drop], 1)
    assert done.returncode == 0, done.stderr
    assert done.status["steps"] == 2


def test_each_rank_has_its_own_dropout(tmp_path: Path, mine: list[str]) -> None:
    options = [*mine[:-1], "mine:masked", "--global-batch", "480", "--epochs", "2", "--save-every", "1"]
    done = start(tmp_path, "warm", options)
    assert done.returncode == 0, done.stderr
    ours, theirs = ((tmp_path / f"masks-{rank}").read_text().splitlines() for rank in range(2))
    assert len({*ours, *theirs}) == len(ours) + len(theirs) == 12  # none is drawn twice
    # From a checkpoint of two ranks, each goes on with its own, and a third begins with its own.
    for rank in range(3):
        (tmp_path / f"masks-{rank}").unlink(missing_ok=True)
    found = str(done.directory / "checkpoints" / "step-000003")
    done = start(tmp_path, "warm", [*options, "--resume", found], ranks=3)
    assert done.returncode == 0, done.stderr
    again = [(tmp_path / f"masks-{rank}").read_text().splitlines() for rank in range(3)]
    # A resumed run begins with a pass whose gradients are discarded, with the same random numbers.
    assert again[0][0] == again[0][1] == ours[3]
    assert again[1][0] == again[1][1] == theirs[3]
    assert len({row for rows in again for row in rows}) == 9


def resolved(world: int, before: batches.Before, *argv: str) -> recipe.Recipe:
    return recipe.resolve(config.parse([*DDP, *argv]), world, before)


def test_another_number_of_ranks_keeps_the_global_batch() -> None:
    before = batches.Before(total=128, micro=32, parallel=4, lr_ranks=4)
    for world, expected in ((2, (32, 2)), (1, (32, 4)), (8, (16, 1)), (16, (8, 1)), (4, (32, 1))):
        how = resolved(world, before, "--batch-size", "32", "--scale-lr", "linear")
        assert how.batch == expected
        assert how.config["train_batch_size"] == 128
        assert how.config["optimizer"]["params"]["lr"] == pytest.approx(0.008)  # as it was for 4 ranks
        said = [note for note in how.notes if "the global batch stays 128" in note]
        assert len(said) == (world != 4)
    assert resolved(2, before, "--batch-size", "20").batch == (16, 4)  # less memory than before
    assert resolved(2, before, "--global-batch", "128", "--batch-size", "64").notes == []
    with pytest.raises(CommonMistake, match="3 data-parallel ranks cannot divide the global batch of 128"):
        resolved(3, before)
    # Another global batch that is asked for is told by the comparison with the checkpoint.
    assert resolved(2, before, "--global-batch", "64").batch == (32, 1)


def test_one_rank_goes_on_where_two_were(tmp_path: Path) -> None:
    options = [*DDP, "--batch-size", "100", "--accumulation", "2", "--epochs", "1", "--save-every", "2"]
    both = start(tmp_path / "two", "warm", options)
    assert both.returncode == 0, both.stderr
    place = str(both.directory / "checkpoints" / "step-000002")
    alone = start(tmp_path / "one", "warm", [*options, "--resume", place], 1)
    assert alone.returncode == 0, alone.stderr
    note = "the global batch stays 400 = micro batch 100 x accumulation 4 x 1"
    assert f"note: resumed with 1 data-parallel rank(s) instead of 2: {note}" in alone.stdout
    assert alone.metrics("step")[-1]["loss"] == pytest.approx(both.metrics("step")[-1]["loss"], rel=1e-4)
    refused = start(tmp_path / "three", "warm", [*options, "--resume", place], 3)
    assert refused.returncode == 2
    assert "3 data-parallel ranks cannot divide the global batch of 400" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_schedule_that_is_continued_differently_is_told(tmp_path: Path) -> None:
    options = [*DDP, "--batch-size", "500", "--scheduler", "cosine"]
    done = start(tmp_path, "warm", [*options, "--epochs", "1"], 1)
    assert done.returncode == 0, done.stderr
    done = start(tmp_path, "warm", [*options, "--epochs", "2", "--resume"], 1)
    assert done.returncode == 0, done.stderr
    note = "the schedule is now one of 6 steps, and was one of 3: the learning rate goes on with 0.001, and was 0"
    assert f"note: {note}" in done.stdout
    done = start(tmp_path, "warm", [*options, "--epochs", "2", "--resume"], 1)
    assert "note:" not in done.stdout


def test_numpy_s_numbers_in_the_state_of_a_scheduler(tmp_path: Path, mine: list[str]) -> None:
    options = [*mine, "--batch-size", "500", "--scheduler", "mine:Numbers"]
    assert start(tmp_path, "warm", [*options, "--epochs", "1"], 1).returncode == 0
    done = start(tmp_path, "warm", [*options, "--epochs", "2", "--resume"], 1)
    assert done.returncode == 0, done.stderr
    assert done.metrics("step")[-1]["lr"] == pytest.approx(0.01 / 5)
    done = start(tmp_path, "warm", [*options[:-1], "mine:Closed"], 1)
    assert done.returncode == 2
    assert "its state_dict() has builtins.range, mine.Closed, which" in done.stderr


@pytest.mark.parametrize("higher", [False, True])
def test_plateau_is_torch_s(higher: bool) -> None:
    optimizers = [torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1) for _ in range(3)]
    block = {"type": "ReduceLROnPlateau", "params": {"factor": 0.5, "patience": 1}}
    plan = schedules.Plan(block, 0.1, 10, False, higher)
    ours = plan.attach(optimizers[0])
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizers[1], "max" if higher else "min", factor=0.5, patience=1
    )
    for place, value in enumerate([1.0, 0.9, 0.9, 0.95, 0.9, 1.1, 1.2, 1.3, 1.1, 1.0]):
        ours.step()
        ours.after_evaluation(value)
        theirs.step(value)
        assert ours.get_last_lr() == [optimizers[1].param_groups[0]["lr"]]
        if place == 5:
            again = plan.attach(optimizers[2])
            again.load_state_dict(ours.state_dict())
            assert again.get_last_lr() == ours.get_last_lr()
            ours = again
    assert ours.get_last_lr()[0] < 0.1


@given(values=st.lists(st.floats(width=16), min_size=1), higher=st.booleans(), cut=st.integers(0, 20))
def test_the_best_is_the_first_of_the_best(values: list[float], higher: bool, cut: int) -> None:
    now = fresh = best.of("accuracy" if higher else None, {"loss": False, "accuracy": True})
    for step, value in enumerate(values, 1):
        if step == cut:
            now = best.from_record(fresh, json.loads(json.dumps(now.numbers())))
        now = now.after(value, step)
    real = [value for value in values if not math.isnan(value)]
    if real:
        assert now.value == (max if higher else min)(real)
        assert now.step == values.index(now.value) + 1
        assert now.since == len(values) - now.step
    else:
        assert (now.value, now.since) == (None, len(values))
    assert best.from_record(best.Best("other", higher), now.numbers()) == best.Best("other", higher)


def test_on_a_terminal_a_bar_shows_loss_and_time_left(tmp_path: Path) -> None:
    need_package("tqdm")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))  # tqdm needs columns
    command = [*launcher_command("one", 1), *DDP, "--epochs", "1", "--no-save"]
    env = {**clean_environment(), "JOBGEN_RUN_DIR": str(tmp_path / "run")}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    assert process.stdout is not None
    lines = process.stdout.read().decode()
    assert process.wait(60) == 0, shown
    bars = [bar for bar in shown.decode().split("\r") if "loss" in bar]
    assert any("epoch 1/1" in bar and "<" in bar and "samples/s" in bar and "/s]" in bar for bar in bars), (
        bars
    )
    assert "step 10/45" not in lines


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed
        return b""
