"""The training loop: epochs of steps, an evaluation after each, and the numbers that they give."""

import math
import time
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import distributed

from .checkpoints import Progress
from .checkpoints.saving import Saver
from .config import Settings
from .config.batches import Batch
from .data import Data, augment, sampling
from .data.feed import Feed
from .device import Device
from .engines import Engine, Evaluator
from .errors import RESUMABLE, Resumable, TrainingFailure
from .report import Run
from .stall import Watchdog
from .stopping import Reason, Stopping
from .watch import Bar, Profile, Stopwatch, table


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
    stopping: Stopping | None = None,
    watchdog: Watchdog | None = None,
) -> tuple[Scores, int]:
    """Train, evaluate after each epoch; returns the last scores and the number of optimizer steps.

    Raises TrainingFailure when the loss is not finite, and Resumable where `stopping` says so, after saving.
    """
    changes = augment.parse(settings.augment, *data.train.images.shape[2:])
    train_set = Feed(data.train, data, device.torch, settings.workers, changes, settings.seed)
    test_set = Feed(data.test, data, device.torch, settings.workers)
    watch = Stopwatch(device.torch, settings.wall_clock_breakdown)
    profile = Profile(settings.profile, device.torch, run)
    per_epoch = sampling.steps_per_epoch(train_set.size, *batch, engine.share.size)
    epochs, log_every = settings.epochs, settings.log_every
    at = saver.start if saver else Progress()
    step, scored = at.step, at.scores
    began = time.monotonic() - at.seconds
    evaluation = 0.0  # seconds of the last one
    rows: list[dict[str, Any]] = []
    for epoch in range(at.epoch, epochs + 1):
        order = sampling.order(train_set.size, settings.seed, epoch)
        epoch_loss, since_log, samples, in_epoch = at.epoch_loss, at.since_log, at.samples, at.in_epoch
        done = in_epoch * batch.micro * batch.accumulation * engine.share.size
        epoch_began = logged_at = time.monotonic()
        bar = Bar(run, per_epoch - in_epoch, f"epoch {epoch}/{epochs}")
        steps = sampling.steps(order[done:], *batch, *engine.share)
        step_began = time.monotonic()
        for micro_batches, total in watch.each("data", train_set.batches(steps, epoch)):
            rate = engine.learning_rate()
            profile.before_step()
            with watch.part("train"):
                since_log.append(engine.train_step(micro_batches, total))
            profile.after_step()
            step, in_epoch = step + 1, in_epoch + 1
            samples += total
            bar.advance()
            if watchdog:
                watchdog.progress(step)
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
                    gradient_norm=_finite(engine.gradient_norm()),
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
            now = time.monotonic()
            here = Progress(epoch, step, in_epoch, epoch_loss, samples, now - began, scored, since_log)
            if saver:
                saver.here = here
            last, step_seconds, step_began = in_epoch == per_epoch, now - step_began, now
            if saver and not last and saver.due(step):
                saver.save(here)
                if watchdog:
                    watchdog.progress(step)
            if saver and stopping:
                needed = saver.seconds + step_seconds + (evaluation if last else 0.0)
                if reason := stopping.after_step(needed, last):
                    _stop(reason, here, saver, run)
        bar.close()
        engine.end_epoch()
        evaluation_began = time.monotonic()
        throughput = max(0, train_set.size - done) / (evaluation_began - epoch_began)
        with watch.part("evaluate"):
            scores = evaluate(engine, test_set, data.classes, device, batch.micro)
        evaluation = time.monotonic() - evaluation_began
        if watchdog:
            watchdog.progress(step)
        at, scored = Progress(epoch + 1, step), scores._asdict()
        row: dict[str, Any] = {
            "epoch": epoch,
            "step": step,
            "train_loss": epoch_loss / train_set.size,
            "test_loss": scores.loss,
            "accuracy": scores.accuracy,
            "per_class": scores.per_class,
            "samples_per_second": round(throughput, 1),
            "seconds": round(time.monotonic() - began, 3),
        }
        rows.append(row)
        run.metric("epoch", **row)
        run.line(
            f"epoch {epoch}/{epochs} done: train loss {epoch_loss / train_set.size:.4f}, "
            f"test loss {scores.loss:.4f}, accuracy {scores.accuracy:.2%}"
        )
        if saver and saver.due(step, epoch):
            saver.save(replace(at, seconds=time.monotonic() - began, scores=scored))
            if watchdog:
                watchdog.progress(step)
        if saver and stopping and epoch < epochs and (reason := stopping.after_step(saver.seconds, True)):
            _stop(reason, replace(at, seconds=time.monotonic() - began, scores=scored), saver, run)
    profile.finish()
    for line in (*table(rows), *watch.lines()):
        run.line(line)
    run.metric("time", **watch.rounded())
    assert scored is not None  # a run that has nothing more to do has been evaluated before
    return Scores(**scored), step


def _stop(reason: Reason, here: Progress, saver: Saver, run: Run) -> NoReturn:
    """Save and leave, on all ranks; raises Resumable."""
    saver.save(here)
    message = f"stopped after step {here.step}, because {reason.text}; {saver.latest} is where to go on"
    run.stop(
        message,
        reason=reason.kind,
        exit_status=RESUMABLE,
        step=here.step,
        from_step=saver.start.step,
        checkpoint=saver.latest,
    )
    run.line(message)
    distributed.barrier()  # the first rank that leaves may have the others ended
    raise Resumable(message)


def evaluate(engine: Evaluator, split: Feed, classes: tuple[str, ...], device: Device, micro: int) -> Scores:
    """Scores on the split, each sample counted once whatever the number of ranks."""
    right, seen = torch.zeros(2, len(classes), dtype=torch.int64, device=device.torch)
    loss = torch.zeros((), device=device.torch)
    with engine.evaluating():
        steps = sampling.steps(np.arange(split.size), micro, 1, *engine.share)
        for ((images, labels, real),), _ in split.batches(steps):
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


def _finite(value: float | None) -> float | None:
    """None also for what JSON has no word for: the norm of gradients that overflowed."""
    return value if value is not None and math.isfinite(value) else None
