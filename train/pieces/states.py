"""Checkpoints: saving the states of a program's own objects, and resuming from them exactly."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .. import checkpoints, randomness
from ..checkpoints import directory, storage
from ..device import Device
from ..errors import BadInput, CannotSave
from . import contents
from .sealer import Sealer

STATE = "state.pt"
KIND = "program"  # in checkpoint.json; those of the training module have no kind


def step_name(step: int) -> str:
    """Return the id of the checkpoint after `step`."""
    return f"step-{step:06d}"


class Saved(NamedTuple):
    """The position of a checkpoint. step: 0 if there is none; values: the plain values that were saved"""

    step: int = 0
    values: Mapping[str, Any] = {}


class Checkpoints(Sealer):
    """The checkpoints in a directory. All ranks call every method, with the same arguments.

    folder: default: checkpoints, in JOBGEN_RUN_DIR or else in the current directory
    keep: number of checkpoints to keep (None: all)
    seconds: the duration of the last save

    A checkpoint is written to a draft folder, forced to the disk, renamed, and only then named in the file
    `latest`. Its checkpoint.json has the SHA-256 of every file. Raise CannotSave if the directory cannot be
    written.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, keep: int | None = 2) -> None:
        if keep is not None and keep < 1:
            raise BadInput(f"Checkpoints(keep={keep}): keep must be a whole number from 1, or None for all")
        default = Path(os.environ.get("JOBGEN_RUN_DIR", ""), checkpoints.FOLDER)
        super().__init__(Path(folder or default))
        self.seconds, self._keep = 0.0, keep
        self._random = Device(self.me.kind, self.me.device.index or 0)
        self._checkpoint: checkpoints.Checkpoint | None = None
        self._make_ready()

    def save(self, step: int, /, *, per_rank: Mapping[str, Any] | None = None, **state: Any) -> None:
        """Save a checkpoint of these objects and values after `step`, with the random states of all ranks.

        state: objects with state_dict(), such as a model, an optimizer or a scheduler, which are equal on all
        ranks, and plain values (numbers, texts, lists, dicts, tensors). per_rank: the same, with a state of
        its own on each rank. Raise BadInput for other values, and CannotSave on all ranks if any rank cannot
        write; the previous checkpoint is then kept.
        """
        whole = contents.split(state) if self.run.is_main else None
        own = {"own": contents.split(per_rank or {}), "buffers": contents.buffers(state)}
        with self._saving(step, own) as (draft, writer):
            if whole:
                writer.save(whole, draft / STATE)

    @contextmanager
    def saving(self, step: int) -> Iterator[Path]:
        """Make the files that are written to the yielded folder the checkpoint after `step`.

        For libraries that write files themselves, on one rank or on all. The random states of all ranks are
        added. `find` returns the folder, and `resume()` sets the random states.
        """
        with self._saving(step, {"own": contents.split({}), "buffers": {}}) as (draft, _):
            yield draft

    def find(self) -> Path | None:
        """Return the newest checkpoint whose files are all intact, or None if there is no checkpoint.

        A damaged one is reported, and an older one used. Raise BadInput if no checkpoint is intact.
        """
        [exists, *_] = self.agree("", None, checkpoints.any_in(self.directory))
        if exists and self._checkpoint is None:
            self._checkpoint = self.intact(checkpoints.at(self.directory))
            self.latest = self._checkpoint.directory.name
        return self._checkpoint and self._checkpoint.directory

    def resume(self, /, *, per_rank: Mapping[str, Any] | None = None, **objects: Any) -> Saved:
        """Load the newest intact checkpoint into these objects, and return its position.

        The random states of this rank are set, too. Without a checkpoint, nothing changes, and the step is 0.
        An object that is None is not loaded. With another number of ranks, running statistics become their
        mean over the old ranks. Raise BadInput if the checkpoint is not of these objects.
        """
        if self.find() is None or self._checkpoint is None:
            return Saved()
        folder, record = self._checkpoint.directory, self._checkpoint.record
        if record.get("kind") != KIND:
            raise BadInput(f"{folder} is a checkpoint of python -m jobgen.train, not of Checkpoints")
        whole = storage.load(folder / STATE) if STATE in record["files"] else contents.split({})
        before, now = record["world_size"], self.me.world_size
        own = storage.load(storage.rank_file(folder, self.me.rank % before))
        if before != now and any(own["own"].values()):
            raise BadInput(f"{folder} has states per rank, of {before} ranks: it cannot resume with {now}")
        contents.match(folder, whole["objects"], objects)
        contents.match(folder, own["own"]["objects"], per_rank or {})
        contents.load(whole["objects"], objects)
        contents.load(own["own"]["objects"], per_rank or {})
        contents.load_buffers(own["buffers"] if before == now else storage.buffers(self._checkpoint), objects)
        if self.me.rank < before:
            randomness.restore(own["random"], self._random)
        else:  # a rank that the run did not have: its random numbers are those of no other rank
            randomness.seed(self.me.rank, record["step"])
        self.run.line(f"resumes from {folder}, after step {record['step']}")
        return Saved(record["step"], {**whole["values"], **own["own"]["values"]})

    def _make_ready(self) -> None:
        failure = None
        if self.run.is_main:
            try:
                directory.make_ready(self.directory)
            except CannotSave as error:
                failure = str(error)
        if message := self.agree("", None, failure)[0]:
            raise CannotSave(message)

    @contextmanager
    def _saving(self, step: int, own: Mapping[str, Any]) -> Iterator[tuple[Path, storage.FileWriter]]:
        start, name = time.monotonic(), step_name(step)
        draft = self.begin(name)
        writer = storage.FileWriter(draft)
        try:
            yield draft, writer
        except OSError as error:
            writer.fail(error, draft)
        mine = {"random": randomness.state(self._random), **own}
        writer.save(mine, storage.rank_file(draft, self.me.rank))
        ranks = self.agree(name, writer.failure, writer.entries, draft)
        before = {file: entry for entries in ranks for file, entry in entries.items()}
        files = self.seal(draft, before)
        record = {"format": 1, "kind": KIND, "id": name, "step": step, "world_size": len(ranks)}
        self.finish(draft, name, {**record, "files": files}, step, self._keep)
        self.latest, self.seconds, self._checkpoint = name, time.monotonic() - start, None
