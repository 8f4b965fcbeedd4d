"""Selection of the checkpoint to resume from, and its comparison with the run. Does not import torch.

In agreement.py, all ranks verify its files together.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..config import MOE_OPTIONS, finetuning, language
from ..config.batches import ACCUMULATION, MICRO, TOTAL, Before, stages_of
from ..config.deepspeed.query import PRECISION_BLOCKS, enabled, optimizer_name
from ..config.engines import spec_of
from ..config.recipe import Recipe
from ..config.schedules import Plan
from ..errors import BadInput, CommonMistake, suggestion
from . import foreign
from .directory import BEST, FOLDER, LATEST, RECORD, STEP, Checkpoint, complete, id_in, ids, put_back, read


def find(request: str, directory: Path | None) -> Checkpoint:
    """Return the checkpoint that --resume names.

    request: an id in `directory`, a path as for `at`, 'latest' or 'best'. Raise BadInput if there is no such
    checkpoint.
    """
    if request != LATEST and Path(request).is_dir():
        return at(Path(request))
    if directory is None:
        what = "" if request == LATEST else f" {request}"
        raise CommonMistake(
            f"--resume{what}: give --checkpoint-dir DIR, or JOBGEN_RUN_DIR, of the run to resume"
        )
    if request == LATEST:
        return at(directory)
    put_back(directory)
    if request == BEST:
        return _best(directory / BEST)
    if not (directory / request).is_dir():
        choices = ids(directory)
        has = f"it has {', '.join(choices)}{suggestion(request, choices)}" if choices else "it has none"
        raise BadInput(f"--resume {request}: there is no such checkpoint in {directory}; {has}")
    return _by_id(directory / request)


def at(place: Path) -> Checkpoint:
    """Return the checkpoint in `place`.

    For a directory of checkpoints or a run directory, this is the newest one; for a file `best`, the one that
    it names. Raise BadInput if there is none.
    """
    if place.name == BEST and not place.is_dir():
        return _best(place)
    if (place / RECORD).is_file() or STEP.fullmatch(place.name):
        return _by_id(place)
    if what := foreign.description(place):
        raise BadInput(f"{place} is {what}; only a checkpoint of this module can be resumed")
    for folder in (place, place / FOLDER):
        put_back(folder)
        if any_in(folder):
            return _newest(folder.absolute())
    raise BadInput(f"there is no checkpoint in {place}: neither {RECORD} nor {LATEST}, nor step-*")


def any_in(directory: Path | None) -> bool:
    """Return whether `directory` contains a checkpoint, intact or damaged."""
    return directory is not None and (
        (directory / LATEST).is_file() or next(directory.glob("step-*"), None) is not None
    )


def _best(file: Path) -> Checkpoint:
    name = id_in(file)
    if name is None:
        raise BadInput(f"{file} names no checkpoint: the run that saves there has --keep-best METRIC")
    return _by_id(file.parent / name)


def _by_id(directory: Path) -> Checkpoint:
    try:
        return read(directory)
    except BadInput as error:
        others = [name for name in complete(directory.parent) if name != directory.name]
        raise CommonMistake(f"{error}; {whole_ones(others)}") from None


def whole_ones(names: list[str]) -> str:
    """Return the end of an error message about a requested checkpoint: the ids of the intact ones."""
    return f"intact checkpoints: {', '.join(names)}" if names else "there is no intact one"


def _newest(folder: Path) -> Checkpoint:
    """Return the checkpoint that `latest` names, with the older ones to fall back on.

    If it cannot be read, an older one is returned. Raise CommonMistake if none can be read.
    """
    candidates = _by_age(folder)
    name, trouble = _named(folder)
    if name and (folder / name).is_dir():
        candidates = [folder / name, *(path for path in candidates if path.name != name)]
    problems = [trouble] if trouble else []
    step = _step(name) if name else None
    if step is not None:
        # A checkpoint of a later step is not from this training, which resumed from an older checkpoint.
        candidates = [path for path in candidates if (_step(path.name) or 0) <= step]
    for number, path in enumerate(candidates):
        try:
            checkpoint = read(path)
        except BadInput as error:
            problems.append(str(error))
        else:
            return checkpoint._replace(
                by_user=False, before=tuple(candidates[number + 1 :]), trouble=tuple(problems)
            )
    raise CommonMistake(none_is_whole(folder, problems))


def none_is_whole(folder: Path, problems: list[str]) -> str:
    """Return the error if no checkpoint is left, with those of later steps that the user can select."""
    choices = complete(folder)
    later = f"; --resume can use {', '.join(choices)}" if choices else ""
    return f"--resume: no checkpoint in {folder} can be used: {'; '.join(problems)}{later}"


def _named(folder: Path) -> tuple[str | None, str | None]:
    """Return the id in the file `latest`, and a description of what is wrong with it; each may be None."""
    file = folder / LATEST
    try:
        name = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        return None, f"{file} cannot be read: {error.strerror}"
    if not name:
        return None, f"{file} is empty"
    if not name.isprintable() or name.startswith(".") or "/" in name:
        return None, f"{file} contains {name[:40]!r}, which is not the id of a checkpoint"
    if not (folder / name).is_dir():
        return name, f"{file} names {name!r}, which does not exist"
    return name, None


def _by_age(folder: Path) -> list[Path]:
    """Return all directories that are named like checkpoints, damaged or not, the one saved last first."""
    return sorted((path for path in folder.iterdir() if STEP.fullmatch(path.name)), key=_age, reverse=True)


def _age(path: Path) -> tuple[float, str]:
    record = path / RECORD
    return (record if record.is_file() else path).stat().st_mtime, path.name


def _step(name: str) -> int | None:
    match = STEP.fullmatch(name)
    return int(match[1]) if match else None


def identity(how: Recipe, world_size: int) -> dict[str, Any]:
    """Return the options that a run and the checkpoint from which it resumes must have in common.

    They determine the shapes of the states and the position in the data.
    """
    settings, config = how.settings, how.config
    same: dict[str, Any] = {
        "task": settings.task,
        "model": settings.model,
        "loss": settings.loss,
        "engine": settings.engine,
        "plugin": spec_of(settings).plugin(settings),
        "stages": stages_of(settings, world_size),
        "partition": settings.partition,
        "seed": settings.seed,
        "augment": ",".join(settings.augment) or "none",
        "normalize": settings.normalize and ",".join(map(str, settings.normalize)),
        "optimizer": optimizer_name(config),
        "zero-stage": config["zero_optimization"]["stage"],
        "precision": next((p for block, p in PRECISION_BLOCKS.items() if enabled(config, block)), "fp32"),
        "ema": settings.ema,
        "drop-last": settings.drop_last or None,
        "global-batch": how.batch.micro * how.batch.accumulation * how.parallel,
    }
    same |= language.identity(settings) | finetuning.identity(settings)
    return same | {name.replace("_", "-"): getattr(settings, name) for name in MOE_OPTIONS}


def batch_before(checkpoint: Checkpoint) -> Before:
    """Return the batch sizes with which the checkpoint was trained."""
    config = checkpoint.of_training("deepspeed")
    total, micro = config[TOTAL], config[MICRO]
    parallel = total // (micro * config[ACCUMULATION])
    return Before(total, micro, parallel, checkpoint.record["lr_ranks"])


def jump(checkpoint: Checkpoint, how: Recipe, now: Plan, per_epoch: int) -> str:
    """Return a note if the schedule `now` changes the learning rate of the checkpoint; '' if it does not."""
    try:
        was = replace(how, settings=checkpoint.settings, config=checkpoint.record["deepspeed"])
        old = was.schedule(per_epoch)
    except CommonMistake:  # the user's own scheduler of that run is gone
        return ""
    at = checkpoint.record["progress"]
    step = at["epoch"] - 1 if now.per_epoch else at["step"]
    curves = old.closed_form(), now.closed_form()
    if None in curves or old.per_epoch != now.per_epoch:
        return ""
    before, after = (curve(step) for curve in curves if curve)
    if math.isclose(before, after, rel_tol=1e-6):
        return ""
    unit = "epochs" if now.per_epoch else "steps"
    return (
        f"the schedule is now one of {now.total} {unit}, and was one of {old.total}: the learning rate goes "
        f"on with {after:.3g}, and was {before:.3g}"
    )


def check(checkpoint: Checkpoint, how: Recipe, world_size: int) -> bool:
    """Return whether the run needs DeepSpeed's universal form of the checkpoint.

    Any number of ranks can read this form. Raise CommonMistake, with the reason, if the run cannot resume
    from the checkpoint.
    """
    name, before = checkpoint.directory.name, checkpoint.record["world_size"]
    same = checkpoint.of_training("identity")
    for option, value in identity(how, world_size).items():
        other = same.get(option, value)
        if other != value:
            raise _other_value(name, option, other, value)
    spec = spec_of(how.settings)
    if before == world_size or spec.replicated or spec.any_ranks:
        return False
    ranks = f"--resume {name} was saved by {before} ranks and cannot resume with {world_size}"
    if how.settings.has_experts:
        raise CommonMistake(f"{ranks}: DeepSpeed's universal checkpoint does not contain the experts")
    if not how.config["zero_optimization"]["stage"]:
        return False  # every rank has the whole state
    if spec.fixed_ranks:
        raise CommonMistake(f"{ranks}: {spec.fixed_ranks}")
    if optimizer_name(how.config) not in ("adam", "adamw", "lamb"):
        raise CommonMistake(
            f"{ranks}: DeepSpeed's universal checkpoint supports only adam, adamw and lamb, not "
            f"{optimizer_name(how.config)}; ZeRO stage 0 does not need it"
        )
    return True


def check_data(checkpoint: Checkpoint, now: Mapping[str, Any]) -> None:
    """Raise CommonMistake if the run would learn other tokens than the checkpoint, or weigh them otherwise.

    now: the identity of the task
    """
    name, before, unit = checkpoint.directory.name, checkpoint.of_training("data"), "loss-by"
    if before[unit] != now[unit]:
        raise _other_value(name, unit, before[unit], now[unit])
    if before != now:
        raise CommonMistake(
            f"--resume {name} was trained on {_tokens(before)}, but this run has {_tokens(now)}: a run must "
            "resume with the same data, tokenizer and chat template; --init-from begins anew with its weights"
        )


def _tokens(content: Mapping[str, Any]) -> str:
    digest = f" (SHA-256 {content['sha256'][:12]})" if content["sha256"] else ""
    return (
        f"{content['tokens']} tokens of {content['documents']} documents, {content['learned']} of them to "
        f"learn{digest}"
    )


def _other_value(name: str, option: str, before: Any, now: Any) -> CommonMistake:
    return CommonMistake(
        f"--resume {name} was trained with {_option(option, before)}, but this run has "
        f"{_option(option, now)}: a run must resume with the same value"
    )


def _option(option: str, value: Any) -> str:
    if value is None or value is True:
        return f"no --{option}" if value is None else f"--{option}"
    return f"--{option} {value}"
