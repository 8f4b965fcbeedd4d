"""The training loop: epochs of steps, an evaluation after each epoch, and the metrics of both."""

import math
import time
from functools import partial
from itertools import islice
from typing import Any, NoReturn

from torch import distributed

from . import flops
from .best import Best, from_record
from .checkpoints import Progress
from .checkpoints.save import Saver
from .config import Settings
from .config.batches import Batch
from .config.recipe import length
from .data import Task, sampling
from .data.feed import Feed, SideStream
from .device import Device
from .engines import Engine
from .epoch_losses import EpochLosses, Place
from .errors import RESUMABLE, Resumable, TrainingFailure
from .evaluation import Measures, Scores, evaluate
from .flops import Work
from .hang import Watchdog
from .report import Run
from .stop_vote import Reason, StopVote
from .watch import Bar, Profile, Stopwatch, table

LOG_EVERY = 10  # steps between two lines of metrics


class Training:
    """A training: the parts of a run, and its position."""

    def __init__(
        self,
        engine: Engine,
        task: Task,
        measures: Measures,
        device: Device,
        batch: Batch,
        settings: Settings,
        run: Run,
        saver: Saver | None = None,
        stop_vote: StopVote | None = None,
        watchdog: Watchdog | None = None,
        work: Work | None = None,
        best: Best | None = None,
    ) -> None:
        source = task.train.augmented(settings.augment, settings.seed)
        self._source = source.divided(*engine.share, *batch)
        self._watch = Stopwatch(device.torch, settings.wall_clock_breakdown, bool(settings.profile))
        data = partial(self._watch.part, "data")
        by_token = measures.objective.by_token
        self._train_set = Feed(
            self._source, device.torch, settings.workers, data, by_token, settings.seed, settings.task
        )
        test = task.test.divided(*engine.share, batch.micro, 1)
        self._test_set = Feed(test, device.torch, settings.workers, seed=settings.seed, name=settings.task)
        self._reports = SideStream(device.torch)
        self._profile = Profile(settings.profile, device, run)
        self._per_epoch = sampling.steps_per_epoch(
            self._train_set.size, *batch, engine.share.size, bool(settings.drop_last)
        )
        self._length = length(settings, self._per_epoch)
        self._engine, self._device, self._measures = engine, device, measures
        self._batch, self._settings, self._run = batch, settings, run
        self._log_every = settings.log_every or LOG_EVERY
        self._saver, self._stop_vote, self._watchdog, self._work = saver, stop_vote, watchdog, work
        self._at = saver.start if saver else Progress()  # the position at which the next epoch begins
        self._step, self._evaluation_step = self._at.step, self._at.evaluated
        self._scores = Scores(**self._at.scores) if self._at.scores else None
        self._best = from_record(best or Best("loss", higher=False), self._at.best)
        self._start = time.monotonic() - self._at.seconds
        self._evaluation = 0.0  # seconds that the last evaluation took
        self._rows: list[dict[str, Any]] = []

    def run(self) -> tuple[Scores, int]:
        """Train, and evaluate after each epoch. Return the last scores and the number of optimizer steps.

        Raise TrainingFailure if the loss is not finite. Raise Resumable, after saving, if the ranks vote for
        a stop. A save that is under way is complete in each case.
        """
        try:
            result = self._epochs()
        except TrainingFailure:  # raised on all ranks
            if self._saver:
                self._saver.wait()
            raise
        finally:
            self._train_set.close()
            self._test_set.close()
        if self._saver:
            self._saver.wait()
        return result

    def _epochs(self) -> tuple[Scores, int]:
        for epoch in range(self._at.epoch, self._length.epochs + 1):
            if self._is_over() and self._evaluation_step == self._step:
                break
            self._end_epoch(epoch, *self._steps(epoch))
        if self._scores is None:  # a run that resumes after its last step
            self._evaluate()
        self._profile.finish()
        for line in (*table(self._rows, self._measures.metrics), *self._watch.lines()):
            self._run.line(line)
        self._run.metric("time", **self._watch.times())
        assert self._scores is not None
        return self._scores, self._step

    def _steps(self, epoch: int) -> tuple[int, EpochLosses, float]:
        """Do the remaining steps of an epoch. Return its steps so far, its losses, and samples per second."""
        engine, in_epoch = self._engine, self._at.in_epoch
        end = min(self._per_epoch, in_epoch + max(0, self._length.steps - self._step))
        order = self._source.order(self._settings.seed, epoch)
        steps = islice(
            sampling.steps(order, *self._batch, *engine.share, in_epoch, bool(self._settings.drop_last)),
            end - in_epoch,
        )
        losses, bar = EpochLosses(self._at, self._reports), Bar(self._run, in_epoch, end, self._title(epoch))
        epoch_start = step_start = time.monotonic()
        evaluation_seconds = self._watch.seconds.get("evaluate", 0.0)
        if in_epoch and self._evaluation_due(in_epoch == end) and self._evaluation_step != self._step:
            self._evaluate_between(epoch, in_epoch, losses)  # the run hung before it
        for micro_batches, samples in self._watch.each("data", self._train_set.batches(steps, epoch)):
            if self._is_over():
                break
            rate = engine.learning_rate()
            self._profile.before_step()
            with self._watch.part("train"):
                losses.add(engine.train_step(micro_batches, samples), samples)
            self._profile.after_step()
            self._step, in_epoch = self._step + 1, in_epoch + 1
            bar.advance()
            self._alive()
            last = in_epoch == end
            now = self._step == 1 or last or self._evaluation_due(last)
            self._report(losses, bar)  # the report that was posted one step ago
            if now or in_epoch % self._log_every == 0:
                norm = engine.gradient_norm()
                losses.post(Place(epoch, self._step, in_epoch, rate, norm, self._seconds()))
            if now:
                self._report(losses, bar)
            self._after_step(epoch, in_epoch, losses, bar, time.monotonic() - step_start, last)
            step_start = time.monotonic()
        bar.close()
        count = self._samples(in_epoch) - self._samples(self._at.in_epoch)
        evaluation_seconds = self._watch.seconds.get("evaluate", 0.0) - evaluation_seconds
        return in_epoch, losses, count / (time.monotonic() - epoch_start - evaluation_seconds)

    def _samples(self, steps: int) -> int:
        """Return the number of samples of the first steps of an epoch."""
        batch = self._batch.micro * self._batch.accumulation * self._engine.share.size
        return min(steps * batch, self._train_set.size)

    def _is_over(self) -> bool:
        """Return whether the training ends here, by --max-steps, --epochs or --early-stopping."""
        patience = self._settings.early_stopping
        return self._step >= self._length.steps or (patience is not None and self._best.since >= patience)

    def _evaluation_due(self, last: bool) -> bool:
        """Return whether --eval-every requests an evaluation here. After the last step there always is."""
        return (
            self._settings.eval_every is not None and self._step % self._settings.eval_every == 0 and not last
        )

    def _report(self, losses: EpochLosses, bar: Bar) -> None:
        """Print the posted report, if any. Raise TrainingFailure if the loss is not finite."""
        if not (report := losses.collect()):
            return
        place, loss, throughput = report
        if not math.isfinite(loss):
            raise TrainingFailure(
                f"the loss is {loss} at step {place.step} (epoch {place.epoch}): try a smaller --lr"
            )
        rates = self._rates(throughput)
        if "first_step" not in self._run.clock.marks:
            self._run.clock.mark("first_step")
        self._run.metric(
            "step",
            epoch=place.epoch,
            step=place.step,
            loss=loss,
            lr=place.lr,
            gradient_norm=place.gradient_norm,
            **rates,
            seconds=place.seconds,
        )
        norm = "" if place.gradient_norm is None else f"norm {place.gradient_norm:.3g} "
        text = f"loss {loss:.4f} {norm}lr {place.lr:.3g} {throughput:.0f} samples/s{flops.text(rates)}"
        bar.show(text)
        if not bar.visible:
            self._run.line(f"{self._title(place.epoch)} step {place.in_epoch}/{self._per_epoch} {text}")

    def _after_step(
        self, epoch: int, in_epoch: int, losses: EpochLosses, bar: Bar, seconds: float, last: bool
    ) -> None:
        """Evaluate, save and stop, if it is time to, after a step.

        After the last step of an epoch, the checkpoint is saved only after the evaluation.
        """
        if self._saver:
            self._saver.report()
            self._saver.here = self._progress(epoch, in_epoch, losses)
        if self._evaluation_due(last):
            self._evaluate_between(epoch, in_epoch, losses)
        if self._saver is None:
            return
        if not last and self._saver.due(self._step):
            self._report(losses, bar)
            self._save(self._progress(epoch, in_epoch, losses))
        if self._stop_vote:
            over = last or self._is_over()
            soon = over or (self._step + 1) % (self._settings.eval_every or self._step + 2) == 0
            seconds_to_save = self._saver.needed + seconds + (self._evaluation if soon else 0.0)
            reason = self._stop_vote.after_step(seconds_to_save, over)
            if reason and (last or not over):
                self._report(losses, bar)
                _stop(reason, self._progress(epoch, in_epoch, losses), self._saver, self._run)

    def _evaluate_between(self, epoch: int, in_epoch: int, losses: EpochLosses) -> None:
        """Evaluate between two steps of an epoch, report the scores, and save if they are the best."""
        self._evaluate()
        assert self._scores is not None
        row = {"epoch": epoch, "step": self._step, **self._scores.row(), "seconds": self._seconds()}
        self._run.metric("evaluation", **row)
        self._run.line(f"{self._title(epoch)} step {in_epoch}/{self._per_epoch}: {self._test_text()}")
        if self._saver:
            self._saver.here = self._progress(epoch, in_epoch, losses)
            if self._is_best():
                self._save(self._saver.here)
        losses.restart_clock()

    def _test_text(self) -> str:
        assert self._scores is not None
        values = self._measures.text(self._scores.metrics)
        return f"test loss {self._scores.loss:.4f}{values and ', '}{values}"

    def _evaluate(self) -> None:
        """Evaluate, and update the best evaluation and a schedule that depends on it."""
        start = time.monotonic()
        steps = self._settings.eval_steps
        most = steps and steps * self._batch.micro * self._batch.accumulation * self._engine.share.size
        with self._watch.part("evaluate"):
            parts = self._engine, self._test_set, self._measures, self._device
            scores = evaluate(*parts, self._batch.micro, most)
        self._evaluation = time.monotonic() - start
        self._alive()
        self._scores, self._evaluation_step = scores, self._step
        value = {"loss": scores.loss, **scores.metrics}[self._best.metric]
        self._best = self._best.after(value, self._step)
        self._engine.after_evaluation(value)

    def _is_best(self) -> bool:
        """Return whether --keep-best wants a checkpoint of this step."""
        return bool(self._settings.keep_best) and self._best.step == self._step == self._evaluation_step

    def _end_epoch(self, epoch: int, in_epoch: int, losses: EpochLosses, throughput: float) -> None:
        """Evaluate after an epoch, or at the end of the training, then save and stop, if it is time to."""
        complete = in_epoch == self._per_epoch
        if complete:
            self._engine.end_epoch()
        if self._evaluation_step != self._step:
            self._evaluate()
        assert self._scores is not None
        train_loss = losses.report_total / max(1, self._samples(in_epoch))
        row: dict[str, Any] = {
            "epoch": epoch,
            "step": self._step,
            "train_loss": train_loss,
            **self._scores.row(),
            **self._rates(throughput),
            "seconds": self._seconds(),
        }
        self._rows.append(row)
        self._run.metric("epoch", **row)
        self._run.line(f"{self._title(epoch)} done: train loss {train_loss:.4f}, {self._test_text()}")
        self._at = self._progress(epoch + 1) if complete else self._progress(epoch, in_epoch, losses)
        if self._saver:
            self._after_epoch(epoch if complete else None, self._saver)

    def _after_epoch(self, epoch: int | None, saver: Saver) -> None:
        is_over = self._is_over()
        if self._is_best() or saver.due(self._step, epoch, is_over):
            self._save(self._at)
        if not is_over and self._stop_vote and (reason := self._stop_vote.after_step(saver.needed, True)):
            _stop(reason, self._at, saver, self._run)

    def _progress(self, epoch: int, in_epoch: int = 0, losses: EpochLosses | None = None) -> Progress:
        """Return the position after `in_epoch` steps of an epoch; losses: those of this epoch."""
        return Progress(
            epoch=epoch,
            step=self._step,
            in_epoch=in_epoch,
            epoch_loss=losses.report_total if losses else 0.0,
            samples=losses.samples if losses else 0,
            seconds=time.monotonic() - self._start,
            scores=self._scores._asdict() if self._scores else None,
            evaluated=self._evaluation_step,
            best=self._best.numbers(),
            since_log=losses.since if losses else [],
        )

    def _rates(self, throughput: float) -> dict[str, float]:
        more = self._work.rates(throughput) if self._work else {}
        return {"samples_per_second": round(throughput, 1), **more}

    def _save(self, here: Progress) -> None:
        assert self._saver
        self._saver.save(here, self._is_best())
        self._alive()

    def _alive(self) -> None:
        if self._watchdog:
            self._watchdog.progress(self._step)

    def _title(self, epoch: int) -> str:
        return f"epoch {epoch}/{self._length.epochs}"

    def _seconds(self) -> float:
        return round(time.monotonic() - self._start, 3)


def _stop(reason: Reason, here: Progress, saver: Saver, run: Run) -> NoReturn:
    """Save a checkpoint and stop, on all ranks: raise Resumable."""
    saver.stops = True
    saver.save(here)
    saver.wait()
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
