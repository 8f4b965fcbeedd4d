"""Comparison of a run with the checkpoint from which it resumes. Does not import torch."""

from typing import Any

from ..config import MOE_OPTIONS, plugins
from ..config.batches import stages_of
from ..config.dsconfig import PRECISION_BLOCKS, enabled, optimizer_name
from ..config.recipe import Recipe
from ..errors import CommonMistake
from .directory import Checkpoint


def identity(how: Recipe, world_size: int) -> dict[str, Any]:
    """Return the options that a run and the checkpoint from which it resumes must have in common.

    They determine the shapes of the states and the position in the data.
    """
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
    """Return whether the run needs DeepSpeed's universal form of the checkpoint.

    Any number of ranks can read this form. Raise CommonMistake, with the reason, if the run cannot resume
    from the checkpoint.
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
        return False  # every rank has the whole state
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
