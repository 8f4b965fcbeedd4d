"""The directory of a run's checkpoints: list and verify them, remove old ones and leftovers of killed runs.

The verification of a checkpoint starts in a thread as soon as the checkpoint is known, and each rank verifies
a share of the files. For most checkpoints it takes less time than importing torch and loading the data.
"""

import hashlib
import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, BinaryIO, NamedTuple

from .. import atomic
from ..config import Settings, from_record
from ..errors import BadInput, CannotSave

STEP = re.compile(r"step-(\d+)")  # the names of checkpoints
RECORD, LATEST, BEST, FOLDER = "checkpoint.json", "latest", "best", "checkpoints"
WRITING, REPLACED, REMOVING = ".writing", ".replaced", ".removing"  # suffixes of names that begin with a dot

CHUNK = 1 << 22  # bytes
Entries = dict[str, dict[str, Any]]  # {relative path: {"bytes": size, "sha256": hexadecimal digest}}


@dataclass
class Progress:
    """The position of a training, with the intermediate results at this position.

    epoch: current epoch, from 1; in_epoch: steps done in this epoch; step: steps done in all epochs
    epoch_loss: sum of the losses of this epoch's samples that have been reported
    since_log: this rank's losses of the steps since the last report
    samples: number of samples of these steps, over all ranks
    seconds: duration of the training; scores: results of the last evaluation; evaluated: its step
    best: the best evaluation so far, see best.py
    """

    epoch: int = 1
    step: int = 0
    in_epoch: int = 0
    epoch_loss: float = 0.0
    samples: int = 0
    seconds: float = 0.0
    scores: dict[str, Any] | None = None
    evaluated: int = 0
    best: dict[str, Any] | None = None
    since_log: list[Any] = field(default_factory=list)

    def numbers(self) -> dict[str, Any]:
        """Return all fields except since_log, which holds tensors."""
        return {key: value for key, value in asdict(self).items() if key != "since_log"}


class Checkpoint(NamedTuple):
    """The directory of a checkpoint, and the content of its checkpoint.json as `record`.

    by_user: the user selected this checkpoint, and no other one may be used. Otherwise, `before` lists older
    checkpoints to fall back on, newest first, and `trouble` describes the problems of newer ones.
    """

    directory: Path
    record: dict[str, Any]
    by_user: bool = True
    before: tuple[Path, ...] = ()
    trouble: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        """The settings of the training. Raise BadInput if the checkpoint is not of the training module."""
        return from_record(self.of_training("settings"))

    def of_training(self, key: str) -> Any:
        """Return a value of the training module's own checkpoints. Raise BadInput if it is missing."""
        if key not in self.record:
            raise BadInput(
                f"{self.directory} is a checkpoint of another program: it has no {key} of jobgen.train"
            )
        return self.record[key]


def place(settings: Settings, run_directory: Path | None) -> Path | None:
    """Return the directory of this run's checkpoints, or None if the run has no directory yet."""
    if settings.checkpoint_dir is not None:
        return settings.checkpoint_dir.absolute()
    return run_directory / FOLDER if run_directory else None


def read(directory: Path) -> Checkpoint:
    """Return the checkpoint in `directory`. Raise BadInput if its checkpoint.json cannot be read."""
    file = directory / RECORD
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        valid, names = record["format"] == 1, record["files"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{file} cannot be read as a checkpoint's: {reason}") from None
    if not valid or not names:
        raise BadInput(f"{file} has format {record['format']}; this version of jobgen reads 1")
    return Checkpoint(directory.absolute(), record)


def ids(directory: Path) -> list[str]:
    """Return the ids of the checkpoints in `directory`, in the order in which they were saved."""
    return [file.parent.name for file in sorted(directory.glob(f"[!.]*/{RECORD}"), key=_age)]


def complete(directory: Path) -> list[str]:
    """Return the ids of the checkpoints whose files have the recorded sizes. Contents are not verified."""
    return [name for name in ids(directory) if _complete(directory / name)]


def _complete(directory: Path) -> bool:
    try:
        verify_sizes(directory, read(directory).record["files"])
    except BadInput:
        return False
    return True


def _age(file: Path) -> tuple[float, str]:
    # Not by step: a run that resumed from an older checkpoint saves lower steps than some existing ones.
    return file.stat().st_mtime, file.parent.name


def prune(directory: Path, keep: int | None) -> None:
    """Remove leftovers of killed runs, and all but the `keep` checkpoints saved last (None: keep all).

    The best checkpoint is kept, too.
    """
    best = id_in(directory / BEST)
    for name in ids(directory)[:-keep] if keep else ():
        if name == best:
            continue
        # Renamed first: an interrupted removal then leaves no damaged checkpoint.
        (directory / name).rename(directory / f".{name}{REMOVING}")
    sweep(directory)


def id_in(file: Path) -> str | None:
    """Return the id of a checkpoint in a file such as `best`; None if there is no such file or checkpoint."""
    try:
        name = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    valid = name.isprintable() and name and not name.startswith(".") and "/" not in name
    return name if valid and (file.parent / name).is_dir() else None


def sweep(directory: Path) -> None:
    """Remove drafts of killed runs and old checkpoints, after `put_back`."""
    put_back(directory)
    for kind in (WRITING, REPLACED, REMOVING):
        for rest in directory.glob(f".*{kind}"):
            shutil.rmtree(rest, ignore_errors=True)
            if not rest.is_dir():
                rest.unlink(missing_ok=True)


def put_back(directory: Path) -> None:
    """Restore the name of a replaced checkpoint if its run was killed before the new one had this name."""
    for old in directory.glob(f".*{REPLACED}"):
        name = old.name[1:].partition(".")[0]
        with suppress(OSError):  # another rank has already done it
            if not (directory / name).exists():
                old.rename(directory / name)


def make_ready(directory: Path) -> None:
    """Check that checkpoints can be written to `directory`, and clean it up.

    One rank calls this before the training. Raise CannotSave if the directory cannot be written.
    """
    parent = next(folder for folder in (directory, *directory.parents) if folder.exists())
    probe = parent / f".{os.getpid()}.probe"
    try:
        atomic.write_text(probe, "Can this be written?\n")
        probe.unlink()
    except OSError as error:
        for rest in (probe, probe.with_name(f".{probe.name}{WRITING}")):
            with suppress(OSError):
                rest.unlink()
        raise CannotSave(
            f"checkpoints cannot be written to {directory}: {error.strerror or error}; nothing was trained"
        ) from None
    sweep(directory)


def verify(directory: Path, entries: Entries, from_disk: bool = False) -> None:
    """Raise BadInput, naming the file, if a file is missing or differs from `entries` in size or SHA-256.

    from_disk: what has just been written is read from the disk, not from memory, where the system can do so
    """
    verify_sizes(directory, entries)
    for name, entry in entries.items():
        file = directory / name
        try:
            with open(file, "rb") as stream:
                if from_disk and hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                digest = sha256(stream)
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error.strerror}") from None
        if digest != entry["sha256"]:
            raise BadInput(f"{file} is damaged: its SHA-256 differs from that of the written data")


def sha256(stream: BinaryIO) -> str:
    """Return the SHA-256 of a file, as a hexadecimal number."""
    digest = hashlib.sha256()
    while chunk := stream.read(CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def verify_sizes(directory: Path, entries: Entries) -> None:
    """Raise BadInput, naming the file, if one is missing or has another size. Contents are not read."""
    for name, entry in entries.items():
        file = directory / name
        try:
            size = file.stat().st_size
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error.strerror}") from None
        if size != entry["bytes"]:
            raise BadInput(f"{file} is damaged: it has {size} bytes, but {entry['bytes']} were written")


def share(entries: Entries, rank: int, ranks: int) -> Entries:
    """Return the entries that `rank` verifies: about the same number of bytes on each rank."""
    by_size = sorted(entries.items(), key=lambda item: (-item[1]["bytes"], item[0]))
    return dict(by_size[rank::ranks])


class Check:
    """The verification of one rank's share of a checkpoint, in a background thread."""

    def __init__(self, checkpoint: Checkpoint, rank: int, ranks: int) -> None:
        self.directory = checkpoint.directory
        self._damage: str | None = None
        self._thread = Thread(target=self._look, args=(checkpoint, rank, ranks), daemon=True)
        self._thread.start()

    def _look(self, checkpoint: Checkpoint, rank: int, ranks: int) -> None:
        self._damage = damage(checkpoint.directory, rank, ranks)

    def damage(self) -> str | None:
        """Wait for the end of the verification. Return a description of the damage, or None."""
        self._thread.join()
        return self._damage


def damage(directory: Path, rank: int, ranks: int) -> str | None:
    """Verify the sizes of all files in `directory` and the SHA-256 of this rank's share of them.

    Return one sentence that describes the damage, or None if there is none.
    """
    try:
        entries = read(directory).record["files"]
        verify_sizes(directory, entries)
        verify(directory, share(entries, rank, ranks))
    except BadInput as error:
        return str(error)
    except (KeyError, TypeError, AttributeError) as error:
        return f"{directory} has an invalid record: {error!r}"
    return None
