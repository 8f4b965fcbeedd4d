"""Saving checkpoints and resuming from them, on all ranks. For the files see __init__.py."""

import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from threading import Thread
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed, nn

from .. import randomness, report
from ..config import to_record
from ..config.recipe import Recipe
from ..device import Device
from ..errors import TrainingFailure
from ..report import Run
from . import fingerprint, storage
from .directory import Checkpoint, Entries, Progress
from .publication import Publisher
from .resume import identity

if TYPE_CHECKING:
    from ..data import Task
    from ..engines import Engine


@dataclass
class Saver(Publisher):
    """Saves checkpoints at the steps and epochs that --save-every and --save-every-epochs select; see `due`.

    `save` may also be called after any other step. With --async-save, it copies the states to the host's
    memory, and a thread writes and publishes them while the training goes on. The thread has its own group.

    facts: the part of checkpoint.json that is the same for all checkpoints of the run
    start: the position at which this run starts
    seconds: the duration of the last save, until it was published
    here: the position after the last step
    """

    engine: "Engine"
    device: Device
    run: Run
    directory: Path
    facts: dict[str, Any]
    start: Progress
    seconds: float = 0.0
    latest: str | None = None
    here: Progress | None = None
    _saved_at: tuple[int, int, int] | None = None
    _thread: Thread | None = None
    _error: BaseException | None = None  # of the thread
    _event: dict[str, Any] | None = None  # of a save that is complete, for the metrics

    def __post_init__(self) -> None:
        if self.facts["settings"].get("async_save"):
            self.group = distributed.new_group(backend="gloo")

    @property
    def needed(self) -> float:
        """The seconds that another save would take, after the one that is under way."""
        return self.seconds * (2 if self._thread and self._thread.is_alive() else 1)

    @property
    def saved_step(self) -> int:
        """The step from which another run would resume."""
        return self._saved_at[0] if self._saved_at else self.start.step

    def due(self, step: int, epoch: int | None = None, end: bool = False) -> bool:
        """Return whether to save after `step`.

        epoch: the epoch that this step completes, or None; end: the training ends with this step
        """
        settings = self.facts["settings"]
        every, every_epochs = settings["save_every"], settings["save_every_epochs"]
        if end:
            return not settings["no_save"]
        by_epoch = epoch is not None and bool(every_epochs) and epoch % every_epochs == 0
        return by_epoch or (bool(every) and step % every == 0)

    def save(self, progress: Progress, best: bool = False) -> None:
        """Save a checkpoint. Called on all ranks. A second call at the same position does nothing.

        best: name it in the file `best`. Raise CannotSave on all ranks if any rank cannot write, also in the
        save before this one, and TrainingFailure if a loss or a weight is not finite. The previous checkpoint
        is then kept.
        """
        self.wait()
        if _place(progress) == self._saved_at:
            return
        start = time.monotonic()
        self._check_numbers(progress)
        draft = self.begin(_name(progress))
        writer = storage.FileWriter(draft, self.group)
        if self.group is None:
            self._states(draft, progress, writer, writer.save)
            self._complete(draft, progress, writer, best, start)
            self.report()
            return
        snapshot = storage.Snapshot()
        self._states(draft, progress, writer, snapshot.save)
        arguments = snapshot, draft, progress, writer, best, start
        self._thread = Thread(target=self._write_later, args=arguments, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the save and the removal of older checkpoints that are under way are complete.

        Raise the error of the save.
        """
        thread, self._thread = self._thread, None
        for one in (thread, self.removal):
            if one:
                one.join()
        error, self._error = self._error, None
        if error:
            raise error
        self.report()

    def report(self) -> None:
        """Write the event of a save that is complete into the metrics."""
        event, self._event = self._event, None
        if event:
            self.run.metric("checkpoint", **event)

    def _check_numbers(self, progress: Progress) -> None:
        """Raise TrainingFailure, on all ranks, if a loss not yet reported or a weight is not finite."""
        weight = largest(self.engine.module)
        losses = [loss.float().to(weight.device) for loss in progress.since_log]
        values = torch.stack([sum(losses, torch.zeros_like(weight)), weight]).to(self.device.torch)
        distributed.all_reduce(values)
        loss, weights = values.tolist()
        if math.isfinite(loss) and math.isfinite(weights):
            return
        what = "a weight" if math.isfinite(loss) else "a loss"
        rest = f"{self.latest} is intact and is kept" if self.latest else "there is no earlier checkpoint"
        raise TrainingFailure(
            f"{what} is not finite at step {progress.step}, which is not saved: try a smaller --lr; {rest}",
        )

    def mark(self, progress: Progress) -> None:
        """Note that there is a checkpoint of this position."""
        self._saved_at = _place(progress)

    def _states(
        self, draft: Path, progress: Progress, writer: storage.FileWriter, save: Callable[[Any, Path], None]
    ) -> None:
        """Save the states of this rank by `save`: by `writer`, or by a snapshot for it."""
        try:
            self.engine.save(draft, save, progress.numbers())
        except OSError as error:
            writer.fail(error, draft)
        rank, part = distributed.get_rank(), self.engine.part
        save(storage.own_state(self.engine, self.device, progress), storage.rank_file(draft, rank))
        average = self.engine.average
        average_state = average.state_dict() if average and (part.writes or average.spread) else None
        if average_state and part.writes:
            save(average_state, draft / f"ema-{part.number:02d}.pt")

    def _write_later(self, snapshot: storage.Snapshot, *arguments: Any) -> None:
        """Write the states, verify the files, and publish the checkpoint, in the thread."""
        try:
            _, _, writer, *_ = arguments
            snapshot.write(writer)
            writer.verify()  # the training does not wait for it
            self._complete(*arguments)
        except BaseException as error:
            self._error = error

    def _complete(
        self, draft: Path, progress: Progress, writer: storage.FileWriter, best: bool, start: float
    ) -> None:
        """Publish the checkpoint when the files of all ranks are on the disk."""
        name = _name(progress)
        entries = self.agree(name, writer.failure, writer.entries, draft)
        files = {file: entry for some in entries for file, entry in some.items()}
        record, keep = self.record(name, progress, files), self.facts["settings"]["keep"]
        self.finish(draft, name, record, progress.step, keep, best, verified=self.group is not None)
        self.mark(progress)
        self.latest, self.seconds = name, time.monotonic() - start
        seconds = round(self.seconds, 3)
        self._event = {
            "id": name,
            "epoch": progress.epoch,
            "step": progress.step,
            "save_seconds": seconds,
        }

    def record(self, name: str, progress: Progress, files: Entries) -> dict[str, Any]:
        """Return the content of checkpoint.json."""
        return {"format": 1, "id": name, **self.facts, "progress": progress.numbers(), "files": files}


def largest(module: nn.Module) -> torch.Tensor:
    """Return the sum of the greatest magnitudes of the weights to train, not finite if one of them is not."""
    weights = [fingerprint.held(p) for p in module.parameters() if p.requires_grad]
    weights = [each for each in weights if each.numel() and each.untyped_storage().nbytes()]
    device = weights[0].device if weights else "cpu"
    norms = [each.abs().amax().float().to(device) for each in weights]
    return torch.stack(norms).sum() if norms else torch.zeros(())


def _name(progress: Progress) -> str:
    return f"step-{progress.step:06d}"


def _place(progress: Progress) -> tuple[int, int, int]:
    return progress.step, progress.epoch, progress.in_epoch


def facts(how: Recipe, samples: "Task", world_size: int) -> dict[str, Any]:
    """Return what checkpoint.json says of the run: enough to resume, export and evaluate it."""
    return {
        "world_size": world_size,
        "lr_ranks": how.lr_ranks,
        "identity": identity(how, world_size),
        "data": samples.identity(how.settings.loss_by, how.settings.loss),
        "settings": to_record(how.settings),
        "deepspeed": how.config,
        "shape": samples.train.shape,
        "outputs": samples.outputs,
        "classes": list(samples.classes),
        "versions": {name: report.version_of(name) for name in ("torch", "deepspeed")},
    }


def restore(engine: "Engine", checkpoint: Checkpoint, universal: bool, device: Device, run: Run) -> Progress:
    """Load the checkpoint on all ranks and return its position. agreement.py must have verified it.

    universal: load DeepSpeed's universal form of it
    """
    directory, before = checkpoint.directory, checkpoint.record["world_size"]
    fingerprint.check(engine.module, checkpoint)
    rank, now = distributed.get_rank(), distributed.get_world_size()
    with _universal(checkpoint, run) if universal else nullcontext() as universal_form:
        engine.load(directory, universal_form)
    if engine.average:
        engine.average.load_state_dict(storage.load(directory / f"ema-{engine.part.number:02d}.pt"))
    mine = storage.load(storage.rank_file(directory, rank % before))
    state = mine["buffers"] if now == before else mine["buffers"] | storage.buffers(checkpoint)
    for name, buffer in engine.module.named_buffers():
        buffer.copy_(state[name])
    # With another number of ranks, the losses of the old ranks are distributed over the new ones.
    old = [storage.load(storage.rank_file(directory, other)) for other in range(rank, before, now)]
    losses = [loss.to(device.torch) for state in old for loss in state["since_log"]]
    if rank < before:
        randomness.restore(mine["random"], device)
    else:  # a rank that the run did not have: its random numbers are those of no other rank
        randomness.seed(checkpoint.settings.seed, rank, checkpoint.record["progress"]["step"])
    return replace(Progress(**checkpoint.record["progress"]), since_log=losses)


@contextmanager
def _universal(checkpoint: Checkpoint, run: Run) -> Iterator[Path]:
    """Yield the path of DeepSpeed's universal form of the checkpoint, which exists within the context."""
    assert run.directory is not None
    target = run.directory / ".universal"
    if run.is_main:
        rmtree(target, ignore_errors=True)
        tool = [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--inject_missing_state"]
        folders = ["--input_folder", str(checkpoint.directory / "deepspeed"), "--output_folder", str(target)]
        result = subprocess.run([*tool, *folders], capture_output=True, text=True, check=False)
        if result.returncode:
            last = (result.stderr.strip().splitlines() or ["no message"])[-1]
            raise TrainingFailure(f"DeepSpeed cannot make {checkpoint.directory} universal: {last}")
    distributed.barrier()
    yield target
    distributed.barrier()
    if run.is_main:
        rmtree(target, ignore_errors=True)
