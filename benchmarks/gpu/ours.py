"""Trainings of jobgen.train in this process, which is the only rank; and the data for them."""

from __future__ import annotations

import gc
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jobgen.train import config, data, device, engines, evaluation, loop, peers, ranks, report, size
from jobgen.train.addresses import free_port
from jobgen.train.config import recipe
from jobgen.train.data import sampling
from jobgen.train.data.text import Sequences
from jobgen.train.device import Device

IMAGES = ("--dataset", "benchmarks.gpu.data:images")  # the task, whose data `images` makes
VOCABULARY = 50304  # of GPT-2, rounded up to a multiple of 64


def alone() -> tuple[ranks.Ranks, Device]:
    """Make this process a group of one rank. Return it and its device."""
    me = ranks.Ranks(0, 1, 0, 1, "127.0.0.1", free_port(), "one process")
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    peers.connect(me, mine)
    return me, mine


def images(count: int) -> data.Data:
    """Return random images with labels that depend on them, so that there is something to learn."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 10, count)
    pictures = random.integers(0, 128, (count, 3, 32, 32), np.uint8)
    pictures[:, 0] += (12 * labels).astype(np.uint8)[:, None, None]
    train = data.Split(pictures, labels)
    test = data.Split(pictures[:1], labels[:1])  # the evaluation takes no time
    return data.Data(train, test, data.CIFAR_CLASSES, 255.0, data.CIFAR_MEAN, data.CIFAR_STD)


def tokens(count: int, context: int, vocabulary: int = VOCABULARY) -> np.ndarray:
    """Return the tokens of `count` sequences. Each is one of 64 words, to have something to learn."""
    random = np.random.default_rng(0)
    words = random.integers(0, vocabulary, 64)
    return words[random.integers(0, 64, count * context + 1)].astype(np.uint16)


def text(packed: np.ndarray, count: int, context: int, vocabulary: int = VOCABULARY) -> data.Task:
    """Return the prediction of the next token of these sequences."""
    train, test = Sequences([packed], context, 0, count), Sequences([packed], context, 0, 1)
    return data.Task(train, test, outputs=vocabulary, metrics=("perplexity",))


Work = Callable[[], None]


class Ours:
    """A training as options describe it. work: the work of a sample of a language model, or None"""

    def __init__(self, options: Sequence[str], task: data.Task, me: ranks.Ranks, mine: Device) -> None:
        settings = config.parse(["--epochs", "1", *options])
        self.how = recipe.resolve(settings, 1)
        self.task, self.mine = task, mine
        steps = sampling.steps_per_epoch(len(task.train), *self.how.batch, 1)
        self.engine = engines.build(self.how, self.how.schedule(steps), task, me, mine)
        self.work = size.of_work(settings, task, mine, 1)
        self.folder = Path(tempfile.mkdtemp())
        self.run = report.Run({"JOBGEN_RUN_DIR": str(self.folder)}, report.Clock(), 0)
        self.run.line = lambda text: None  # type: ignore[method-assign]
        self.run.prepare()
        self._measures = evaluation.measures(task)

    def epoch(self) -> None:
        """Train one epoch, with the loop of the training module."""
        settings = self.how.settings
        loop.Training(
            self.engine, self.task, self._measures, self.mine, self.how.batch, settings, self.run
        ).run()

    def losses(self) -> list[float]:
        """Return the losses that were logged."""
        rows = map(json.loads, (self.folder / "metrics.jsonl").read_text().splitlines())
        return [row["loss"] for row in rows if row["event"] == "step"]


def importable(package: str) -> bool:
    try:
        importlib.import_module(package)
    except Exception:  # a package may fail in any way on a machine that it was not made for
        return False
    return True


def forget(mine: Device) -> None:
    """Free the memory of models that are no longer used."""
    gc.collect()
    torch.compiler.reset()
    if mine.kind != "cpu":
        torch.get_device_module(mine.torch).empty_cache()


def used(mine: Device) -> int:
    """Return the bytes in use on the device; on the CPU those of this process."""
    if mine.kind == "cpu":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return int(torch.get_device_module(mine.torch).memory_allocated())


def peak(mine: Device, work: Work) -> int:
    """Return the most bytes in use on the device during the work; on the CPU those in use after it."""
    if mine.kind == "cpu":
        work()
        return used(mine)
    device = torch.get_device_module(mine.torch)
    device.reset_peak_memory_stats()
    work()
    return int(device.max_memory_allocated())


def language(name: str, *options: str) -> list[str]:
    """Return the options for a GPT of a size of config/language.py. The data are given by `text`."""
    return ["--task", "text", "--data", os.devnull, "--model", "gpt", "--size", name, *options]


def options_of(settings: dict[str, Any]) -> list[str]:
    """Return a dict as options of the command line."""
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]
