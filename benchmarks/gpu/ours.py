"""Trainings of jobgen.train in this process, which is the only rank; and the data for them."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jobgen.train import config, data, device, engines, evaluation, loop, peers, ranks, report
from jobgen.train.addresses import free_port
from jobgen.train.config import recipe
from jobgen.train.data import sampling
from jobgen.train.data.text import Sequences
from jobgen.train.data.tokens import Corpus
from jobgen.train.device import Device

IMAGES = ("--dataset", "benchmarks.gpu.data:images")  # the task, whose data `images` makes
VOCABULARY = 50304  # of GPT-2, rounded up to a multiple of 64


class Here(NamedTuple):
    """This rank and its device. env: the environment for other processes, without this rank's variables"""

    me: ranks.Ranks
    device: Device
    env: dict[str, str]


def alone() -> Here:
    """Make this process a group of one rank."""
    me = ranks.Ranks(0, 1, 0, 1, "127.0.0.1", free_port(), "one process")
    env = dict(os.environ)
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    peers.connect(me, mine)
    return Here(me, mine, env)


def name(here: Here) -> str:
    if here.device.kind == "cpu":
        return f"CPU, {os.cpu_count()} cores"
    about = torch.cuda.get_device_properties(0)
    return f"{about.name}, {about.total_memory / 2**30:.0f} GiB"


def images(count: int) -> data.Data:
    """Return random images with labels that depend on them, so that there is something to learn."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 10, count)
    pictures = random.integers(0, 128, (count, 3, 32, 32), np.uint8)
    pictures[:, 0] += (12 * labels).astype(np.uint8)[:, None, None]
    train = data.Split(pictures, labels)
    test = data.Split(pictures[:1], labels[:1])  # the evaluation takes no time
    return data.Data(train, test, data.CIFAR_CLASSES, 255.0, data.CIFAR_MEAN, data.CIFAR_STD)


def first(samples: data.Data, count: int) -> data.Data:
    """Return the same data with the first `count` samples to train on."""
    return samples._replace(train=data.Split(*(each[:count] for each in samples.train)))


def tokens(count: int, context: int, vocabulary: int = VOCABULARY) -> np.ndarray:
    """Return the tokens of `count` sequences. Each is one of 64 words, to have something to learn."""
    random = np.random.default_rng(0)
    words = random.integers(0, vocabulary, 64)
    return words[random.integers(0, 64, count * context + 1)].astype(np.uint16)


def text(packed: np.ndarray, count: int, context: int, vocabulary: int = VOCABULARY) -> data.Task:
    """Return the prediction of the next token of these sequences."""
    corpus = Corpus((packed,), None, np.zeros(1, np.int64))
    train, test = (Sequences(corpus, context, 0, last) for last in (count, 1))
    return data.Task(train, test, outputs=vocabulary, metrics=("perplexity",))


class Ours:
    """A training as options describe it. events: the metrics of the last rounds, with their names"""

    def __init__(self, options: Sequence[str], task: data.Task, here: Here) -> None:
        self.how, self._here = recipe.resolve(config.parse(options), 1), here
        steps = sampling.steps_per_epoch(len(task.train), *self.how.batch, 1)
        self.engine = engines.build(self.how, self.how.schedule(steps), task, here.me, here.device)
        self._task = task
        self.events: list[dict[str, Any]] = []

    def rounds(
        self,
        task: data.Task | None = None,
        between: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
        epochs: int | None = None,
    ) -> list[float]:
        """Train all epochs, in one Training. Return the seconds of each.

        task, epochs: other ones than those of the options; between: called after each epoch
        """
        seconds, settings, self.events = [], self.how.settings, []
        settings = replace(settings, epochs=epochs or settings.epochs)
        start = clock()

        def metric(event: str, **values: Any) -> None:
            nonlocal start
            self.events.append({"event": event, **values})
            if event == "epoch":  # the evaluation has waited for the device
                seconds.append(clock() - start)
                between()
                start = clock()

        run = report.Run({"JOBGEN_RUN_DIR": tempfile.mkdtemp()}, report.Clock(), 0)
        run.line, run.metric = lambda text: None, metric  # type: ignore[method-assign, assignment]
        task = task or self._task
        measures = evaluation.measures(task)
        loop.Training(self.engine, task, measures, self._here.device, self.how.batch, settings, run).run()
        return seconds

    def losses(self) -> list[float]:
        """Return the losses of the reported steps."""
        return [row["loss"] for row in self.events if row["event"] == "step"]

    def last(self, event: str) -> dict[str, Any]:
        return next(row for row in reversed(self.events) if row["event"] == event)


def forget(here: Here) -> None:
    """Free the memory of models that are no longer used."""
    gc.collect()
    torch.compiler.reset()
    if here.device.kind != "cpu":
        torch.get_device_module(here.device.torch).empty_cache()


def used(here: Here) -> int:
    """Return the bytes in use on the device; on the CPU those of this process."""
    if here.device.kind == "cpu":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return int(torch.get_device_module(here.device.torch).memory_allocated())


def peak(here: Here, work: Callable[[], Any]) -> int:
    """Return the most bytes in use on the device during the work; on the CPU those in use after it."""
    if here.device.kind == "cpu":
        work()
        return used(here)
    module = torch.get_device_module(here.device.torch)
    module.reset_peak_memory_stats()
    work()
    return int(module.max_memory_allocated())


def language(size: Any, *options: str) -> list[str]:
    """Return the options for a GPT of this size. The data are given by `text`."""
    form = [word for key, value in size._asdict().items() for word in (f"--{key}", str(value))]
    return ["--task", "text", "--data", os.devnull, "--model", "gpt", *form, *options]


def compiled(mode: str = "default") -> list[str]:
    """Return the options of a compiled training that does what the loops by hand do."""
    return f"--precision autocast --compile {mode} --clip 0 --optimizer adamw --lr 0.0003".split()
