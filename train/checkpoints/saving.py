"""Saving checkpoints and resuming from them, on all ranks. For the files see __init__.py."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import rmtree
from typing import Any

from torch import distributed

from .. import atomic, peers, report
from ..config import recorded
from ..config.recipe import Recipe
from ..data import Data
from ..device import Device
from ..engines import Engine
from ..errors import CannotSave, TrainingFailure
from ..report import Run
from . import storage
from .directory import LATEST, RECORD, REPLACED, WRITING, Checkpoint, Entries, Progress, prune
from .finding import identity


@dataclass
class Saver:
    """Saves checkpoints at the steps and epochs that --save-every and --save-every-epochs select; see `due`.

    `save` may also be called after any other step.

    facts: the part of checkpoint.json that is the same for all checkpoints of the run
    start: the position at which this run starts
    seconds: the duration of the last save
    latest: the id of the last intact checkpoint; its path if it is in another directory
    here: the position after the last step
    """

    engine: Engine
    device: Device
    run: Run
    directory: Path
    facts: dict[str, Any]
    start: Progress
    seconds: float = 0.0
    latest: str | None = None
    here: Progress | None = None
    _saved_at: tuple[int, int, int] | None = None

    @property
    def saved_step(self) -> int:
        """The step from which another run would resume."""
        return self._saved_at[0] if self._saved_at else self.start.step

    def due(self, step: int, epoch: int | None = None) -> bool:
        """Return whether to save after `step`. epoch: the epoch that this step completes, or None."""
        settings = self.facts["settings"]
        every, every_epochs = settings["save_every"], settings["save_every_epochs"]
        if epoch is None:
            return bool(every) and step % every == 0
        if not every and not every_epochs:
            return False
        by_epoch = bool(every_epochs) and epoch % every_epochs == 0
        return epoch == settings["epochs"] or by_epoch or self.due(step)

    def save(self, progress: Progress) -> None:
        """Save a checkpoint. Called on all ranks. A second call at the same position does nothing.

        Raise CannotSave on all ranks if any rank cannot write. The previous checkpoint is then kept.
        """
        place = (progress.step, progress.epoch, progress.in_epoch)
        if place == self._saved_at:
            return
        began = time.monotonic()
        name = f"step-{progress.step:06d}"
        draft = self.directory / self._begin(name)
        files_of_all = self._write(draft, progress)
        self._finish(draft, self.directory / name, progress, files_of_all)
        self._saved_at, self.latest, self.seconds = place, name, time.monotonic() - began
        took = round(self.seconds, 3)
        self.run.metric("checkpoint", id=name, epoch=progress.epoch, step=progress.step, save_seconds=took)

    def _begin(self, name: str) -> str:
        """Create a draft directory, whose name no other run uses, and return its name."""
        draft, failed = f".{name}.{self.run.host}-{os.getpid()}{WRITING}", None
        if self.run.is_main:
            try:
                rmtree(self.directory / draft, ignore_errors=True)
                (self.directory / draft).mkdir(parents=True)
            except OSError as error:
                failed = storage.failure(error, self.directory / draft)
        return str(self._agree(name, failed, draft)[0])

    def _write(self, draft: Path, progress: Progress) -> Entries:
        """Write this rank's files. Return the entries of all ranks' files when they are on the disk."""
        written = storage.Written(draft)
        try:
            self.engine.save(draft, written.save, progress.numbers())
        except OSError as error:
            written.failed(error, draft)
        rank, part = distributed.get_rank(), self.engine.part
        written.save(storage.own_state(self.engine, self.device, progress), storage.rank_file(draft, rank))
        average = self.engine.average
        averaged = average.state_dict() if average and (part.writes or average.spread) else None
        if averaged and part.writes:
            written.save(averaged, draft / f"ema-{part.number:02d}.pt")
        entries = self._agree(f"step-{progress.step:06d}", written.failure, written.entries, draft)
        return {name: entry for some in entries for name, entry in some.items()}

    def _finish(self, draft: Path, final: Path, progress: Progress, written: Entries) -> None:
        failed = None
        if self.run.is_main:
            try:
                atomic.write_json(draft / RECORD, self.record(final.name, progress, written))
                self.publish(draft, final, progress)
            except OSError as error:
                failed = storage.failure(error, draft)
        self._agree(final.name, failed, None, draft)
        if self.run.is_main:
            try:
                prune(self.directory, self.facts["settings"]["keep"])
            except OSError as error:
                report.complain(f"warning: older checkpoints cannot be removed: {error}")

    def record(self, name: str, progress: Progress, written: Entries) -> dict[str, Any]:
        """Return the content of checkpoint.json."""
        return {"format": 1, "id": name, **self.facts, "progress": progress.numbers(), "files": written}

    def publish(self, draft: Path, final: Path, progress: Progress) -> None:
        """Rename the draft to `final`, and only then make it the latest. Called on rank 0."""
        for folder in {file.parent for file in draft.rglob("*")}:
            atomic.sync_directory(folder)
        if final.exists():  # this run resumed from an older checkpoint
            self._make_room(final)
        os.replace(draft, final)
        atomic.sync_directory(self.directory)
        atomic.write_text(self.directory / LATEST, final.name + "\n")
        if self.run.directory:  # the job script retries only while this increases
            atomic.write_text(self.run.directory / "saved-step", f"{progress.step}\n")
        self._saved_at, self.latest = (progress.step, progress.epoch, progress.in_epoch), final.name

    def _make_room(self, final: Path) -> None:
        """Rename the old checkpoint of this name, after `latest` names another one, if there is any."""
        other = self.directory / self.latest if self.latest else None
        if other and other != final and other.parent == self.directory and other.is_dir():
            atomic.write_text(self.directory / LATEST, other.name + "\n")
        old = self.directory / f".{final.name}.{self.run.host}-{os.getpid()}{REPLACED}"
        rmtree(old, ignore_errors=True)
        os.replace(final, old)

    def _agree(
        self, name: str, failed: dict[str, Any] | None, fact: Any, draft: Path | None = None
    ) -> list[Any]:
        """Return the facts of all ranks, in order. Raise CannotSave on all ranks if any has failed."""
        host = self.run.host
        told = peers.exchange({"fact": fact, "failed": failed and {**failed, "host": host}}, self.device)
        failures = [(rank, one["failed"]) for rank, one in enumerate(told) if one["failed"]]
        if not failures:
            return [one["fact"] for one in told]
        if self.run.is_main and draft:
            rmtree(draft, ignore_errors=True)
        rank, first = failures[0]
        free = "" if first["free"] is None else f", with {first['free'] / 2**20:.1f} MiB free"
        kept = f"{self.latest} is intact and is kept" if self.latest else "there is no earlier one"
        raise CannotSave(
            f"checkpoint {name} cannot be written: {first['reason']}: {first['file']} (rank {rank} on "
            f"{first['host']}{free}); {kept}",
            checkpoint=self.latest,
        )


def facts(how: Recipe, samples: Data, world_size: int) -> dict[str, Any]:
    """Return what checkpoint.json says of the run: enough to resume, export and evaluate it."""
    return {
        "world_size": world_size,
        "identity": identity(how, world_size),
        "settings": recorded(how.settings),
        "deepspeed": how.config,
        "shape": list(samples.train.images.shape[1:]),
        "classes": list(samples.classes),
        "versions": {name: _version(name) for name in ("torch", "deepspeed")},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def restore(engine: Engine, found: Checkpoint, universal: bool, device: Device, run: Run) -> Progress:
    """Load the checkpoint on all ranks and return its position. settling.py must have verified it.

    universal: load DeepSpeed's universal form of it
    """
    directory, before = found.directory, found.record["world_size"]
    rank, now = distributed.get_rank(), distributed.get_world_size()
    with _universal(found, run) if universal else nullcontext() as converted:
        engine.load(directory, converted)
    if engine.average:
        engine.average.load_state_dict(storage.load(directory / f"ema-{engine.part.number:02d}.pt"))
    mine = storage.load(storage.rank_file(directory, rank % before))
    state = mine["buffers"] if now == before else storage.buffers(found)
    for name, buffer in engine.module.named_buffers():
        buffer.copy_(state[name])
    # With another number of ranks, the losses of the old ranks are distributed over the new ones.
    old = [storage.load(storage.rank_file(directory, other)) for other in range(rank, before, now)]
    losses = [loss.to(device.torch) for state in old for loss in state["since_log"]]
    storage.set_random_state(mine["random"], device)
    return replace(Progress(**found.record["progress"]), since_log=losses)


@contextmanager
def _universal(found: Checkpoint, run: Run) -> Iterator[Path]:
    """Yield the path of DeepSpeed's universal form of the checkpoint, which exists within the context."""
    assert run.directory is not None
    target = run.directory / ".universal"
    if run.is_main:
        rmtree(target, ignore_errors=True)
        tool = [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--inject_missing_state"]
        folders = ["--input_folder", str(found.directory / "deepspeed"), "--output_folder", str(target)]
        done = subprocess.run([*tool, *folders], capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise TrainingFailure(f"DeepSpeed cannot make {found.directory} universal: {last}")
    distributed.barrier()
    yield target
    distributed.barrier()
    if run.is_main:
        rmtree(target, ignore_errors=True)
