"""The directory of a run's checkpoints: which there are, what a crash has left, what is too old to keep."""

import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..config import Settings, restored
from ..errors import BadInput, CannotSave
from . import files

RECORD, LATEST, FOLDER = "checkpoint.json", "latest", "checkpoints"
WRITING, REPLACED, REMOVING = ".writing", ".replaced", ".removing"  # after a name that begins with a dot


@dataclass
class Progress:
    """Where the training is: in epoch `epoch` (from 1), of which `in_epoch` steps are done; `step` in all.

    epoch_loss: summed over this epoch's samples, as far as reported; since_log: this rank's losses of the
    steps after that, with `samples` samples over all ranks; scores: of the last evaluation.
    """

    epoch: int = 1
    step: int = 0
    in_epoch: int = 0
    epoch_loss: float = 0.0
    samples: int = 0
    seconds: float = 0.0
    scores: dict[str, Any] | None = None
    since_log: list[Any] = field(default_factory=list)

    def numbers(self) -> dict[str, Any]:
        """All but this rank's tensors."""
        return {key: value for key, value in asdict(self).items() if key != "since_log"}


class Checkpoint(NamedTuple):
    """A directory that holds one, and its checkpoint.json.

    asked: the user named this one, and no other will do; else `before` are those to fall back on, the
    newest first, and `trouble` is what was wrong with newer ones.
    """

    directory: Path
    record: dict[str, Any]
    asked: bool = True
    before: tuple[Path, ...] = ()
    trouble: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        return restored(self.record["settings"])


def place(settings: Settings, run_directory: Path | None) -> Path | None:
    """Where this run's checkpoints are; None where it has no directory yet."""
    if settings.checkpoint_dir is not None:
        return settings.checkpoint_dir.absolute()
    return run_directory / FOLDER if run_directory else None


def read(directory: Path) -> Checkpoint:
    """The checkpoint in `directory`. Raises BadInput if its checkpoint.json cannot be read; of the other
    files it looks at none."""
    file = directory / RECORD
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        known, names = record["format"] == 1, record["files"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{file} cannot be read as a checkpoint's: {reason}") from None
    if not known or not names:
        raise BadInput(f"{file} has format {record['format']}; this version of jobgen reads 1")
    return Checkpoint(directory.absolute(), record)


def ids(directory: Path) -> list[str]:
    """The ids of the checkpoints in `directory`, that saved last at the end."""
    return [file.parent.name for file in sorted(directory.glob(f"[!.]*/{RECORD}"), key=_saved)]


def complete(directory: Path) -> list[str]:
    """Of these ids, those whose files are all there in their sizes; their contents are not looked at."""
    return [name for name in ids(directory) if _complete(directory / name)]


def _complete(directory: Path) -> bool:
    try:
        files.verify_sizes(directory, read(directory).record["files"])
    except BadInput:
        return False
    return True


def _saved(file: Path) -> tuple[float, str]:
    # Not by step: a run that went on from an older checkpoint saves smaller steps than those left there.
    return file.stat().st_mtime, file.parent.name


def prune(directory: Path, keep: int | None) -> None:
    """Remove all but the `keep` checkpoints saved last (None: keep all), and what crashes have left."""
    for name in ids(directory)[:-keep] if keep else ():
        # Under this name it is no checkpoint any more, however far the removal comes.
        (directory / name).rename(directory / f".{name}{REMOVING}")
    sweep(directory)


def sweep(directory: Path) -> None:
    """Remove what is no checkpoint, or not any more: drafts of runs that were killed, and old ones."""
    put_back(directory)
    for kind in (WRITING, REPLACED, REMOVING):
        for rest in directory.glob(f".*{kind}"):
            shutil.rmtree(rest, ignore_errors=True)
            if not rest.is_dir():
                rest.unlink(missing_ok=True)


def put_back(directory: Path) -> None:
    """Give a checkpoint its name back if its run was killed before the one that should replace it had it."""
    for old in directory.glob(f".*{REPLACED}"):
        name = old.name[1:].partition(".")[0]
        with suppress(OSError):  # another rank has done it
            if not (directory / name).exists():
                old.rename(directory / name)


def make_ready(directory: Path) -> None:
    """Called before the training, on one rank: sweep, and find out whether checkpoints can be written there.

    Raises CannotSave.
    """
    there = next(folder for folder in (directory, *directory.parents) if folder.exists())
    probe = there / f".{os.getpid()}.probe"
    try:
        files.write_text(probe, "Can this be written?\n")
        probe.unlink()
    except OSError as error:
        for rest in (probe, probe.with_name(f".{probe.name}{WRITING}")):
            with suppress(OSError):
                rest.unlink()
        raise CannotSave(
            f"checkpoints cannot be written to {directory}: {error.strerror or error}; nothing was trained"
        ) from None
    sweep(directory)
