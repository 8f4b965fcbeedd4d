"""The checkpoints on disk: which there are, what made them, whether this run can go on from one. No torch.

DIR/latest                   the id of the newest one
DIR/step-000123/             that after 123 steps; it has its name only when all of it is on the disk
    checkpoint.json          what made it, where the training was, and the SHA-256 of every file
    rank-00000.pt            of each rank: random states, buffers, losses not yet reported
    ema-00.pt                averaged weights, of each part that the ranks share the model in
    model.pt                 ddp: model, optimizer, schedule, loss scale
    model.pt, colossalai-00000.pt   colossalai: the optimizer apart, of each rank that has a share of it
    deepspeed/               deepspeed, pipeline: a checkpoint of DeepSpeed, readable by its own tools
DIR/.step-000123.writing     one that is being written, or was when the run ended
"""

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..config import MOE_OPTIONS, Settings, plugins, restored
from ..config.batches import stages_of
from ..config.dsconfig import PRECISION_BLOCKS, enabled, optimizer_name
from ..config.recipe import Recipe
from ..errors import BadInput, CommonMistake, suggestion

RECORD, LATEST, FOLDER = "checkpoint.json", "latest", "checkpoints"


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
    """A directory that holds one, and its checkpoint.json."""

    directory: Path
    record: dict[str, Any]

    @property
    def settings(self) -> Settings:
        return restored(self.record["settings"])


def place(settings: Settings, run_directory: Path | None) -> Path | None:
    """Where this run's checkpoints are; None where it has no directory yet."""
    if settings.checkpoint_dir is not None:
        return settings.checkpoint_dir.absolute()
    return run_directory / FOLDER if run_directory else None


def find(wanted: str, directory: Path | None) -> Checkpoint:
    """The checkpoint that --resume names: an id in `directory`, any of the places that `at` knows, or
    'latest'. Raises BadInput if there is none."""
    if wanted != LATEST and Path(wanted).is_dir():
        return at(Path(wanted))
    if directory is None:
        what = "" if wanted == LATEST else f" {wanted}"
        raise CommonMistake(
            f"--resume{what}: give --checkpoint-dir DIR, or JOBGEN_RUN_DIR, of the run to go on with"
        )
    if wanted == LATEST:
        return at(directory)
    if not (directory / wanted / RECORD).is_file():
        there = ids(directory)
        has = f"it has {', '.join(there)}" if there else "it has none"
        raise BadInput(
            f"--resume {wanted}: there is no such checkpoint in {directory}; {has}{suggestion(wanted, there)}"
        )
    return _read(directory / wanted)


def at(place: Path) -> Checkpoint:
    """The checkpoint in `place`, or the latest of the directory of checkpoints, or of the run, there.

    Raises BadInput if there is none.
    """
    if (place / RECORD).is_file():
        return _read(place)
    for folder in (place, place / FOLDER):
        if (folder / LATEST).is_file():
            name = (folder / LATEST).read_text(encoding="utf-8").strip()
            if not (folder / name / RECORD).is_file():
                there = ", ".join(ids(folder)) or "none"
                raise BadInput(f"{folder / LATEST} names {name!r}, which is not there; there are: {there}")
            return _read(folder / name)
    raise BadInput(f"there is no checkpoint in {place}: neither {RECORD} nor {LATEST}")


def _read(directory: Path) -> Checkpoint:
    file = directory / RECORD
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        known = record["format"] == 1
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{file} cannot be read as a checkpoint's: {error}") from None
    if not known:
        raise BadInput(f"{file} has format {record['format']}; this version of jobgen reads 1")
    return Checkpoint(directory.absolute(), record)


def ids(directory: Path) -> list[str]:
    """The ids of the checkpoints in `directory`, that saved last at the end."""
    return [file.parent.name for file in sorted(directory.glob(f"[!.]*/{RECORD}"), key=_saved)]


def _saved(file: Path) -> tuple[float, str]:
    # Not by step: a run that went on from an older checkpoint saves smaller steps than those left there.
    return file.stat().st_mtime, file.parent.name


def prune(directory: Path, keep: int | None) -> None:
    """Remove all but the `keep` checkpoints saved last (None: keep all), and what crashes have left."""
    for name in ids(directory)[:-keep] if keep else ():
        # Under this name it is no checkpoint any more, however far the removal comes.
        (directory / name).rename(directory / f".{name}.removing")
    for rest in (*directory.glob(".*.writing"), *directory.glob(".*.removing")):
        shutil.rmtree(rest, ignore_errors=True)


def identity(how: Recipe, world_size: int) -> dict[str, Any]:
    """The options in which a run must agree with the checkpoint from which it goes on: those that shape
    the states, and those on which the position in the data rests."""
    settings, config = how.settings, how.config
    same: dict[str, Any] = {
        "task": settings.task,
        "model": settings.model,
        "engine": settings.engine,
        "plugin": plugins.name(settings) if settings.engine == "colossalai" else None,
        "stages": stages_of(settings, world_size),
        "partition": settings.partition,
        "seed": settings.seed,
        "augment": ",".join(settings.augment) or "none",
        "optimizer": optimizer_name(config),
        "zero-stage": config["zero_optimization"]["stage"],
        "precision": next((p for block, p in PRECISION_BLOCKS.items() if enabled(config, block)), "fp32"),
        "ema": settings.ema,
        "global-batch": how.batch.micro * how.batch.accumulation * how.parallel,
    }
    return same | {name.replace("_", "-"): getattr(settings, name) for name in MOE_OPTIONS}


def check(found: Checkpoint, how: Recipe, world_size: int) -> bool:
    """Whether DeepSpeed's universal form is needed, which any number of ranks can read.

    Raises CommonMistake, with the reason, if this run cannot go on from there.
    """
    name, before = found.directory.name, found.record["world_size"]
    for option, value in identity(how, world_size).items():
        other = found.record["identity"].get(option, value)
        if other != value:
            raise CommonMistake(
                f"--resume {name} was trained with {_said(option, other)}, but this run has "
                f"{_said(option, value)}: a run goes on as it began"
            )
    if before == world_size or how.settings.engine == "ddp":
        return False
    ranks = f"--resume {name} was saved by {before} ranks and cannot go on with {world_size}"
    if how.settings.model == "moe":
        raise CommonMistake(f"{ranks}: DeepSpeed's universal checkpoint leaves the experts out")
    if not how.config["zero_optimization"]["stage"]:
        return False  # every rank has all of it
    if how.settings.engine == "colossalai":
        raise CommonMistake(
            f"{ranks}: each rank has saved its own share; --plugin torch_ddp spreads nothing, and can"
        )
    if optimizer_name(how.config) not in ("adam", "adamw", "lamb"):
        raise CommonMistake(
            f"{ranks}: DeepSpeed's universal checkpoint knows the states of adam, adamw and lamb only, not "
            f"of {optimizer_name(how.config)}; ZeRO stage 0 needs none"
        )
    return True


def _said(option: str, value: Any) -> str:
    return f"no --{option}" if value is None else f"--{option} {value}"
