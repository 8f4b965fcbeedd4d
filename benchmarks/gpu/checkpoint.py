"""Part checkpoint: the time to save a checkpoint, forced to the disk and hashed, and to load it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from jobgen.train import checkpoints
from jobgen.train.checkpoints import Progress, agreement, save

from benchmarks.gpu import ours
from benchmarks.gpu.rows import Row

CONTEXT = 128


def rows(name: str, device: str, tiny: bool) -> Iterator[Row]:
    me, mine = ours.alone()
    vocabulary = 512 if tiny else ours.VOCABULARY
    task = ours.text(ours.tokens(2, CONTEXT, vocabulary), 2, CONTEXT, vocabulary)
    options = ours.language("tiny" if tiny else "124m", "--context", str(CONTEXT), "--batch-size", "1")
    training = ours.Ours([*options, "--engine", "ddp", "--precision", "autocast"], task, me, mine)
    training.epoch()
    folder = training.folder / "checkpoints"
    folder.mkdir()
    facts = save.facts(training.how, task, 1)
    saver = save.Saver(training.engine, mine, training.run, folder, facts, Progress())
    ours_seconds = timed(lambda: saver.save(Progress(step=1, in_epoch=1)))
    found = checkpoints.at(folder)
    size = sum(file.stat().st_size for file in found.directory.rglob("*") if file.is_file())
    by_hand = timed(lambda: save_by_hand(training, folder / "by-hand.pt"))
    yield Row(name, f"saving {size / 1e6:,.0f} MB", ours_seconds, "s", by_hand, "torch.save and fsync")

    def load() -> None:
        agreement.settle(found, checkpoints.Check(found, 0, 1), mine, training.run)
        save.restore(training.engine, found, False, mine, training.run)

    yield Row(name, "verifying and loading it", timed(load), "s")


def save_by_hand(training: ours.Ours, file: Path) -> None:
    engine = training.engine
    state = [engine.module.state_dict(), engine.optimizer.state_dict()]  # type: ignore[attr-defined]
    with open(file, "wb") as stream:
        torch.save(state, stream)
        stream.flush()
        os.fsync(stream.fileno())


def timed(work: ours.Work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
