"""Saving checkpoints and going on from one, on all ranks; see __init__.py for what lies where."""

import os
import random
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

import numpy as np
import torch
from torch import distributed

from .. import checkpoints, peers
from ..config import recorded
from ..config.recipe import Recipe
from ..data import Data
from ..device import Device
from ..engines import Engine
from ..errors import TrainingFailure
from ..report import Run
from . import LATEST, RECORD, Checkpoint, Progress, storage


@dataclass
class Saver:
    """Saves at the steps and epochs that --save-every and --save-every-epochs name; `due` says when. `save`
    may be called after any other step too.

    facts: what checkpoint.json says of the run, the same for each; start: where this run begins; seconds:
    what the last save took; latest: the id of the last one that is whole, of this run or where it began.
    """

    engine: Engine
    device: Device
    run: Run
    directory: Path
    facts: dict[str, Any]
    start: Progress
    seconds: float = 0.0
    latest: str | None = None
    _saved_at: tuple[int, int, int] | None = None

    def due(self, step: int, epoch: int | None = None) -> bool:
        """Whether to save after this step; `epoch` is given if it is that epoch's last."""
        settings = self.facts["settings"]
        every, every_epochs = settings["save_every"], settings["save_every_epochs"]
        if epoch is None:
            return bool(every) and step % every == 0
        if not every and not every_epochs:
            return False
        by_epoch = bool(every_epochs) and epoch % every_epochs == 0
        return epoch == settings["epochs"] or by_epoch or self.due(step)

    def save(self, progress: Progress) -> None:
        """Called on all ranks. Once more at the same place, it does nothing.

        Raises TrainingFailure if it cannot be written; the one before stays.
        """
        place = (progress.step, progress.epoch, progress.in_epoch)
        if place == self._saved_at:
            return
        began = time.monotonic()
        try:
            name = self._save(progress)
        except OSError as error:
            raise TrainingFailure(
                f"the checkpoint after step {progress.step} cannot be written to {self.directory}: "
                f"{error.strerror or error}; the one before is whole"
            ) from error
        self._saved_at, self.latest, self.seconds = place, name, time.monotonic() - began
        took = round(self.seconds, 3)
        self.run.metric("checkpoint", id=name, epoch=progress.epoch, step=progress.step, save_seconds=took)

    def _save(self, progress: Progress) -> str:
        name = f"step-{progress.step:06d}"
        draft = self.directory / f".{name}.writing"
        if self.run.is_main:
            rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
        distributed.barrier()
        written = storage.Written(draft)
        self.engine.save(draft, written.save, progress.numbers())
        rank, part = distributed.get_rank(), self.engine.part
        written.save(_own_state(self.engine, self.device, progress), rank_file(draft, rank))
        if self.engine.average and part.writes:
            written.save(self.engine.average.state_dict(), draft / f"ema-{part.number:02d}.pt")
        # It waits for all ranks: what they name is on the disk.
        entries = peers.exchange(written.entries, self.device)
        if self.run.is_main:
            files = {name: entry for some in entries for name, entry in some.items()}
            record = {"format": 1, "id": name, **self.facts, "progress": progress.numbers(), "files": files}
            storage.write_json(draft / RECORD, record)
            self._publish(draft, self.directory / name)
        return name

    def _publish(self, draft: Path, final: Path) -> None:
        """Give the draft its name, and only then say that it is the latest."""
        for folder in {file.parent for file in draft.rglob("*")}:
            storage.sync_directory(folder)
        if final.exists():  # this run began at an older checkpoint
            os.replace(final, old := final.with_name(f".{final.name}.old.writing"))
            rmtree(old, ignore_errors=True)
        os.replace(draft, final)
        storage.sync_directory(self.directory)
        storage.write_text(self.directory / LATEST, final.name + "\n")
        checkpoints.prune(self.directory, self.facts["settings"]["keep"])


def facts(how: Recipe, samples: Data, world_size: int) -> dict[str, Any]:
    """What every checkpoint of a run says of it, so that nothing else need be said to go on, to export
    and to evaluate."""
    return {
        "world_size": world_size,
        "identity": checkpoints.identity(how, world_size),
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


def _own_state(engine: Engine, device: Device, progress: Progress) -> dict[str, Any]:
    """What each rank has of its own. Engines that share out the weights still keep one copy of the
    buffers, although each rank's running statistics come from other samples."""
    return {
        "random": random_state(device),
        "buffers": {name: buffer.detach().cpu() for name, buffer in engine.module.named_buffers()},
        "since_log": torch.stack(progress.since_log).cpu() if progress.since_log else torch.zeros(0),
    }


def restore(engine: Engine, found: Checkpoint, universal: bool, device: Device, run: Run) -> Progress:
    """Bring the engine, on all ranks, to where the checkpoint was. Raises BadInput if it is damaged."""
    directory, before = found.directory, found.record["world_size"]
    rank, now = distributed.get_rank(), distributed.get_world_size()
    storage.verify(directory, dict(sorted(found.record["files"].items())[rank::now]))
    distributed.barrier()  # no rank goes on with what another one found damaged
    with _universal(found, run) if universal else nullcontext() as converted:
        engine.load(directory, converted)
    if engine.average:
        engine.average.load_state_dict(storage.load(directory / f"ema-{engine.part.number:02d}.pt"))
    mine = storage.load(rank_file(directory, rank % before))
    state = mine["buffers"] if now == before else buffers(found)
    for name, buffer in engine.module.named_buffers():
        buffer.copy_(state[name])
    # With another number of ranks, the losses that the old ones had are shared out.
    old = [storage.load(rank_file(directory, other)) for other in range(rank, before, now)]
    losses = [loss.to(device.torch) for state in old for loss in state["since_log"]]
    set_random_state(mine["random"], device)
    return replace(Progress(**found.record["progress"]), since_log=losses)


@contextmanager
def _universal(found: Checkpoint, run: Run) -> Iterator[Path]:
    """The checkpoint in DeepSpeed's universal form, made by its own tool, for as long as it is read."""
    assert run.directory is not None
    target = run.directory / ".universal"
    if run.is_main:
        rmtree(target, ignore_errors=True)
        tool = [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--inject_missing_state"]
        folders = ["--input_folder", str(found.directory / "deepspeed"), "--output_folder", str(target)]
        done = subprocess.run([*tool, *folders], capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise TrainingFailure(f"DeepSpeed cannot make {found.directory} a universal checkpoint: {last}")
    distributed.barrier()
    yield target
    distributed.barrier()
    if run.is_main:
        rmtree(target, ignore_errors=True)


def rank_file(directory: Path, rank: int) -> Path:
    return directory / f"rank-{rank:05d}.pt"


def buffers(found: Checkpoint) -> dict[str, torch.Tensor]:
    """The model's buffers as an evaluation has them: running statistics are the mean over the ranks."""
    columns: dict[str, list[torch.Tensor]] = {}
    for rank in range(found.record["world_size"]):
        for name, buffer in storage.load(rank_file(found.directory, rank))["buffers"].items():
            columns.setdefault(name, []).append(buffer)
    return {
        name: torch.stack(column).mean(0) if column[0].is_floating_point() else column[0]
        for name, column in columns.items()
    }


def random_state(device: Device) -> dict[str, Any]:
    """Of Python, NumPy, torch on the CPU and on the device, in plain values and tensors."""
    layout, numbers, gauss = random.getstate()
    kind, keys, *rest = np.random.get_state()
    on_device = None if device.kind == "cpu" else torch.get_device_module(device.torch).get_rng_state()
    return {
        "python": (layout, numbers, gauss),
        "numpy": (kind, torch.from_numpy(keys.astype(np.int64)), *rest),
        "torch": torch.get_rng_state(),
        "device": on_device,
    }


def set_random_state(state: dict[str, Any], device: Device) -> None:
    random.setstate(state["python"])
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if device.kind != "cpu" and state["device"] is not None:
        torch.get_device_module(device.torch).set_rng_state(state["device"])
