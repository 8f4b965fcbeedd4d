"""The training loop: epochs of steps, an evaluation after each epoch, and the metrics of both."""

import math
import time
from dataclasses import replace
from typing import Any, NoReturn

from torch import distributed

from .checkpoints import Progress
from .checkpoints.saving import Saver
from .config import Settings
from .config.batches import Batch
from .data import Data, augment, sampling
from .data.feed import Feed
from .device import Device
from .engines import Engine
from .errors import RESUMABLE, Resumable, TrainingFailure
from .hang import Watchdog
from .losses import Losses, Place
from .report import Run
from .scoring import Scores, evaluate
from .stopping import Reason, Stopping
from .watch import Bar, Profile, Stopwatch, table


class Training:
    """A training: the parts of a run, and its position."""

    def __init__(
        self,
        engine: Engine,
        data: Data,
        device: Device,
        batch: Batch,
        settings: Settings,
        run: Run,
        saver: Saver | None = None,
        stopping: Stopping | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        changes = augment.parse(settings.augment, *data.train.images.shape[2:])
        self._train_set = Feed(data.train, data, device.torch, settings.workers, changes, settings.seed)
        self._test_set = Feed(data.test, data, device.torch, settings.workers)
        self._watch = Stopwatch(device.torch, settings.wall_clock_breakdown, bool(settings.profile))
        self._profile = Profile(settings.profile, device, run)
        self._per_epoch = sampling.steps_per_epoch(self._train_set.size, *batch, engine.share.size)
        self._engine, self._device, self._classes = engine, device, data.classes
        self._batch, self._settings, self._run = batch, settings, run
        self._saver, self._stopping, self._watchdog = saver, stopping, watchdog
        self._at = saver.start if saver else Progress()  # the position at which the next epoch begins
        self._step, self._scores = self._at.step, self._at.scores
        self._began = time.monotonic() - self._at.seconds
        self._evaluation = 0.0  # seconds that the last evaluation took
        self._rows: list[dict[str, Any]] = []

    def run(self) -> tuple[Scores, int]:
        """Train, and evaluate after each epoch. Return the last scores and the number of optimizer steps.

        Raise TrainingFailure if the loss is not finite. Raise Resumable, after saving, if `stopping` requests
        a stop.
        """
        for epoch in range(self._at.epoch, self._settings.epochs + 1):
            train_loss, throughput = self._steps(epoch)
            self._score(epoch, train_loss, throughput)
        self._profile.finish()
        for line in (*table(self._rows), *self._watch.lines()):
            self._run.line(line)
        self._run.metric("time", **self._watch.rounded())
        assert self._scores is not None  # a run without remaining epochs was evaluated before
        return Scores(**self._scores), self._step

    def _steps(self, epoch: int) -> tuple[float, float]:
        """Do the remaining steps of an epoch. Return its mean loss and the samples per second."""
        engine, batch, in_epoch = self._engine, self._batch, self._at.in_epoch
        done = in_epoch * batch.micro * batch.accumulation * engine.share.size
        order = sampling.order(self._train_set.size, self._settings.seed, epoch)
        steps = sampling.steps(order[done:], *batch, *engine.share)
        losses, bar = Losses(self._at), Bar(self._run, self._per_epoch - in_epoch, self._title(epoch))
        epoch_began = step_began = time.monotonic()
        for micro_batches, samples in self._watch.each("data", self._train_set.batches(steps, epoch)):
            rate = engine.learning_rate()
            self._profile.before_step()
            with self._watch.part("train"):
                losses.add(engine.train_step(micro_batches, samples), samples)
            self._profile.after_step()
            self._step, in_epoch = self._step + 1, in_epoch + 1
            bar.advance()
            self._alive()
            last = in_epoch == self._per_epoch
            self._report(losses, bar)  # the report that was posted one step ago
            if self._step == 1 or in_epoch % self._settings.log_every == 0 or last:
                norm = _finite(engine.gradient_norm())
                losses.post(Place(epoch, self._step, in_epoch, rate, norm, self._seconds()))
            if self._step == 1 or last:
                self._report(losses, bar)
            self._after_step(epoch, in_epoch, losses, bar, time.monotonic() - step_began)
            step_began = time.monotonic()
        bar.close()
        engine.end_epoch()
        throughput = max(0, self._train_set.size - done) / (time.monotonic() - epoch_began)
        return losses.reported / self._train_set.size, throughput

    def _report(self, losses: Losses, bar: Bar) -> None:
        """Print the posted report, if any. Raise TrainingFailure if the loss is not finite."""
        if not (collected := losses.collect()):
            return
        place, loss, throughput = collected
        if not math.isfinite(loss):
            raise TrainingFailure(
                f"the loss is {loss} at step {place.step} (epoch {place.epoch}): try a smaller --lr"
            )
        if "first_step" not in self._run.clock.marks:
            self._run.clock.mark("first_step")
        self._run.metric(
            "step",
            epoch=place.epoch,
            step=place.step,
            loss=loss,
            lr=place.lr,
            gradient_norm=place.gradient_norm,
            samples_per_second=round(throughput, 1),
            seconds=place.seconds,
        )
        if not bar.visible:
            self._run.line(
                f"{self._title(place.epoch)} step {place.in_epoch}/{self._per_epoch} loss {loss:.4f} "
                f"lr {place.lr:.3g} {throughput:.0f} samples/s"
            )

    def _after_step(self, epoch: int, in_epoch: int, losses: Losses, bar: Bar, seconds: float) -> None:
        """Save and stop, if it is time to, after a step.

        After the last step of an epoch, the checkpoint is saved only after the evaluation.
        """
        if self._saver is None:
            return

        def here() -> Progress:
            return Progress(
                epoch=epoch,
                step=self._step,
                in_epoch=in_epoch,
                epoch_loss=losses.reported,
                samples=losses.samples,
                seconds=time.monotonic() - self._began,
                scores=self._scores,
                since_log=losses.since,
            )

        self._saver.here = here()
        last = in_epoch == self._per_epoch
        if not last and self._saver.due(self._step):
            self._report(losses, bar)
            self._save(here())
        if self._stopping:
            needed = self._saver.seconds + seconds + (self._evaluation if last else 0.0)
            if reason := self._stopping.after_step(needed, last):
                self._report(losses, bar)
                _stop(reason, here(), self._saver, self._run)

    def _score(self, epoch: int, train_loss: float, throughput: float) -> None:
        """Evaluate after an epoch, then save and stop, if it is time to."""
        began = time.monotonic()
        with self._watch.part("evaluate"):
            scores = evaluate(self._engine, self._test_set, self._classes, self._device, self._batch.micro)
        self._evaluation = time.monotonic() - began
        self._alive()
        self._scores = scores._asdict()
        row: dict[str, Any] = {
            "epoch": epoch,
            "step": self._step,
            "train_loss": train_loss,
            "test_loss": scores.loss,
            "accuracy": scores.accuracy,
            "per_class": scores.per_class,
            "samples_per_second": round(throughput, 1),
            "seconds": self._seconds(),
        }
        self._rows.append(row)
        self._run.metric("epoch", **row)
        self._run.line(
            f"{self._title(epoch)} done: train loss {train_loss:.4f}, "
            f"test loss {scores.loss:.4f}, accuracy {scores.accuracy:.2%}"
        )
        self._at = Progress(epoch + 1, self._step)
        if self._saver:
            self._after_epoch(epoch, self._saver)

    def _after_epoch(self, epoch: int, saver: Saver) -> None:
        here = replace(self._at, seconds=time.monotonic() - self._began, scores=self._scores)
        if saver.due(self._step, epoch):
            self._save(here)
        more = epoch < self._settings.epochs
        if more and self._stopping and (reason := self._stopping.after_step(saver.seconds, True)):
            _stop(reason, here, saver, self._run)

    def _save(self, here: Progress) -> None:
        assert self._saver
        self._saver.save(here)
        self._alive()

    def _alive(self) -> None:
        if self._watchdog:
            self._watchdog.progress(self._step)

    def _title(self, epoch: int) -> str:
        return f"epoch {epoch}/{self._settings.epochs}"

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)


def _stop(reason: Reason, here: Progress, saver: Saver, run: Run) -> NoReturn:
    """Save a checkpoint and stop, on all ranks: raise Resumable."""
    saver.save(here)
    message = f"stopped after step {here.step}, because {reason.text}; the run can resume from {saver.latest}"
    run.stop(
        message,
        reason=reason.kind,
        exit_status=RESUMABLE,
        step=here.step,
        from_step=saver.start.step,
        checkpoint=saver.latest,
    )
    run.line(message)
    distributed.barrier()  # launchers may end all ranks when the first one exits
    raise Resumable(message)


def _finite(value: float | None) -> float | None:
    """Return `value`, or None if it is not finite, such as an overflowed norm: JSON cannot express it."""
    return value if value is not None and math.isfinite(value) else None
