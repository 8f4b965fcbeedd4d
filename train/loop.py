"""The training loop: epochs of steps, an evaluation after each, and the numbers that they give."""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed

from . import sampling
from .batches import Batch
from .checkpoints import Progress
from .config import Settings
from .data import Data, Split
from .device import Device
from .engine import Engine, Micro
from .errors import TrainingFailure
from .report import Run
from .saving import Saver


class Resident:
    """A split that lies on the device as bytes; each batch is normalised there."""

    def __init__(self, split: Split, data: Data, device: torch.device) -> None:
        self.images = torch.from_numpy(split.images).to(device)
        self.labels = torch.from_numpy(split.labels).to(device)
        self.size = len(split.labels)
        self._mean = torch.tensor(data.mean, device=device).view(1, -1, 1, 1) * data.full
        self._std = torch.tensor(data.std, device=device).view(1, -1, 1, 1) * data.full

    def take(self, piece: sampling.Piece) -> Micro:
        chosen = torch.from_numpy(piece.indices).to(self.labels.device)
        images = (self.images[chosen].float() - self._mean) / self._std
        return Micro(images, self.labels[chosen], piece.real)


class Scores(NamedTuple):
    """On the whole test set: mean loss, fraction right, and that per class (None: no such sample)."""

    loss: float
    accuracy: float
    per_class: dict[str, float | None]


def train(
    engine: Engine,
    data: Data,
    device: Device,
    batch: Batch,
    settings: Settings,
    run: Run,
    saver: Saver | None = None,
) -> tuple[Scores, int]:
    """Train, evaluate after each epoch; returns the last scores and the number of optimizer steps.

    Raises TrainingFailure when the loss is not finite.
    """
    train_set, test_set = (Resident(split, data, device.torch) for split in (data.train, data.test))
    per_epoch = sampling.steps_per_epoch(train_set.size, *batch, engine.share.size)
    epochs, log_every = settings.epochs, settings.log_every
    at = saver.start if saver else Progress()
    step, scored = at.step, at.scores
    began = time.monotonic() - at.seconds
    for epoch in range(at.epoch, epochs + 1):
        order = sampling.order(train_set.size, settings.seed, epoch)
        epoch_loss, since_log, samples, in_epoch = at.epoch_loss, at.since_log, at.samples, at.in_epoch
        done = in_epoch * batch.micro * batch.accumulation * engine.share.size
        logged_at = time.monotonic()
        bar = _progress(run, per_epoch - in_epoch, f"epoch {epoch}/{epochs}")
        for mine in sampling.steps(order[done:], *batch, *engine.share):
            rate = engine.learning_rate()
            since_log.append(engine.train_step([train_set.take(piece) for piece in mine.pieces], mine.total))
            step, in_epoch = step + 1, in_epoch + 1
            samples += mine.total
            bar(1)
            if step == 1 or in_epoch % log_every == 0 or in_epoch == per_epoch:
                # Only here do the ranks, and the device, wait for each other's loss.
                summed = torch.stack(since_log).sum()
                distributed.all_reduce(summed)
                loss, elapsed = summed.item() / samples, time.monotonic() - logged_at
                if not math.isfinite(loss):
                    raise TrainingFailure(
                        f"the loss is {loss} at step {step} (epoch {epoch}): try a smaller --lr"
                    )
                if "first_step" not in run.clock.marks:
                    run.clock.mark("first_step")
                run.metric(
                    "step",
                    epoch=epoch,
                    step=step,
                    loss=loss,
                    lr=rate,
                    samples_per_second=round(samples / elapsed, 1),
                    seconds=round(time.monotonic() - began, 3),
                )
                if not bar.visible:
                    run.line(
                        f"epoch {epoch}/{epochs} step {in_epoch}/{per_epoch} loss {loss:.4f} lr {rate:.3g} "
                        f"{samples / elapsed:.0f} samples/s"
                    )
                epoch_loss += loss * samples
                since_log, samples, logged_at = [], 0, time.monotonic()
            if saver and in_epoch < per_epoch and saver.due(step):
                seconds = time.monotonic() - began
                saver.save(Progress(epoch, step, in_epoch, epoch_loss, samples, seconds, scored, since_log))
        bar.close()
        engine.end_epoch()
        scores = evaluate(engine, test_set, data.classes, device, batch.micro)
        at, scored = Progress(epoch + 1, step), scores._asdict()
        run.metric(
            "epoch",
            epoch=epoch,
            step=step,
            train_loss=epoch_loss / train_set.size,
            test_loss=scores.loss,
            accuracy=scores.accuracy,
            per_class=scores.per_class,
            seconds=round(time.monotonic() - began, 3),
        )
        run.line(
            f"epoch {epoch}/{epochs} done: train loss {epoch_loss / train_set.size:.4f}, "
            f"test loss {scores.loss:.4f}, accuracy {scores.accuracy:.2%}"
        )
        if saver and saver.due(step, epoch):
            saver.save(replace(at, seconds=time.monotonic() - began, scores=scored))
    assert scored is not None  # a run that has nothing more to do has been evaluated before
    return Scores(**scored), step


def evaluate(engine: Engine, split: Resident, classes: tuple[str, ...], device: Device, micro: int) -> Scores:
    """Scores on the split, each sample counted once whatever the number of ranks."""
    right, seen = torch.zeros(2, len(classes), dtype=torch.int64, device=device.torch)
    loss = torch.zeros((), device=device.torch)
    with engine.evaluating():
        for mine in sampling.steps(np.arange(split.size), micro, 1, *engine.share):
            images, labels, real = split.take(mine.pieces[0])
            logits = engine.predict(images)
            if logits is None:
                continue
            logits, labels = logits[:real].float(), labels[:real]
            loss += torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
            seen.index_add_(0, labels, torch.ones_like(labels))
            right.index_add_(0, labels, (logits.argmax(1) == labels).to(torch.int64))
    for tensor in (right, seen, loss):
        distributed.all_reduce(tensor)
    per_class = {
        name: round(r / n, 6) if n else None
        for name, r, n in zip(classes, right.tolist(), seen.tolist(), strict=True)
    }
    return Scores(loss.item() / split.size, round(int(right.sum()) / split.size, 6), per_class)


def _progress(run: Run, steps: int, title: str) -> Any:
    """advance(1) moves a bar on rank 0's terminal; elsewhere it does nothing."""
    return _Bar(run.is_main and sys.stderr.isatty(), steps, title)


class _Bar:
    def __init__(self, visible: bool, steps: int, title: str) -> None:
        self._bar: Any = None
        if visible:
            try:
                from tqdm import tqdm
            except ImportError:
                pass
            else:
                self._bar = tqdm(total=steps, desc=title, unit="step", leave=False)
        self.visible = self._bar is not None
        self._advance: Callable[[int], Any] = (
            self._bar.update if self._bar is not None else lambda steps: None
        )

    def __call__(self, steps: int) -> None:
        self._advance(steps)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
