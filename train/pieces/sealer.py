"""Checkpoints whose files a library has written: their sizes and SHA-256, found by all ranks together."""

import os
from datetime import timedelta
from pathlib import Path

from torch import distributed

from .. import atomic, report
from ..checkpoints import agreement, directory, storage
from ..checkpoints.directory import RECORD, Checkpoint, Entries
from ..checkpoints.publication import Publisher, note_step
from ..device import Device
from .process import Process, init

PATIENCE = timedelta(hours=1)  # while one rank writes the state of a large model


class Sealer(Publisher):
    """Records the files of checkpoints in a directory. All ranks call every method.

    The ranks exchange facts on the host, whatever the backend of the program is.
    """

    def __init__(self, folder: Path) -> None:
        self.me: Process = init()
        self.run = report.Run(os.environ, report.Clock(), self.me.rank)
        self.directory, self.latest = folder.absolute(), None
        self.device, self.group = Device("cpu", 0), distributed.new_group(backend="gloo", timeout=PATIENCE)

    def seal(self, folder: Path, before: Entries) -> Entries:
        """Return the entries of all files below `folder`: `entries_before`, and those of the other files.

        Called when all ranks have written. Each rank reads a share of the files, and forces it to the disk.
        Raise CannotSave on all ranks if a file cannot be read.
        """
        # On a network file system, ranks may see different files for a moment: all use the list of rank 0.
        [others, *_] = self.agree(folder.name, None, _others(folder, before) if self.run.is_main else None)
        mine, failure = {}, None
        try:
            for name in directory.share(others, self.me.rank, self.me.world_size):
                mine[name] = _entry(folder / name)
        except OSError as error:
            failure = storage.failure(error, Path(error.filename or folder))
        ranks = self.agree(folder.name, failure, mine)
        return before | {name: entry for entries in ranks for name, entry in entries.items()}

    def add(self, name: str, step: int) -> None:
        """Record the files of the checkpoint `name`, which a library has written in place.

        Each rank calls it when it has written its own files. `newest` returns recorded checkpoints only.
        """
        self.agree(name, None, None)  # all have written
        files, failure = self.seal(self.directory / name, {}), None
        if self.run.is_main:
            try:
                atomic.write_json(self.directory / name / RECORD, {"format": 1, "id": name, "files": files})
                note_step(self.run, step)
            except OSError as error:
                failure = storage.failure(error, self.directory / name / RECORD)
        self.agree(name, failure, None)
        self.latest = name

    def newest(self) -> Path | None:
        """Return the recorded checkpoint that was written last and is intact, or None if there is none."""
        [names, *_] = self.agree("", None, directory.complete(self.directory)[::-1])
        if not names:
            return None
        paths = [self.directory / name for name in names]
        newest = directory.read(paths[0])._replace(by_user=False, before=tuple(paths[1:]))
        return self.intact(newest).directory

    def intact(self, checkpoint: Checkpoint) -> Checkpoint:
        """Return `checkpoint`, or the newest one before it whose files are intact; see agreement.settle."""
        check = directory.Check(checkpoint, self.me.rank, self.me.world_size)
        return agreement.settle(checkpoint, check, self.device, self.run, self.group)


def _others(folder: Path, before: Entries) -> Entries:
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    return {
        name: {"bytes": file.stat().st_size} for name, file in files.items() if name not in (*before, RECORD)
    }


def _entry(file: Path) -> dict[str, str | int]:
    with open(file, "rb") as stream:
        os.fsync(stream.fileno())
        return {"bytes": os.fstat(stream.fileno()).st_size, "sha256": directory.sha256(stream)}
