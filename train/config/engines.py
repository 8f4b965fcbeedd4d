"""The engines by name, in the order of --help. A new engine is added here. Does not import torch."""

from collections.abc import Callable

from . import engine_colossalai, engine_ddp, engine_deepspeed, engine_fsdp, engine_pipeline
from .engine import EngineSpec
from .settings import Settings

ENGINES: dict[str, EngineSpec] = {
    each.SPEC.name: each.SPEC
    for each in (engine_deepspeed, engine_pipeline, engine_ddp, engine_fsdp, engine_colossalai)
}


def option_of(fits: Callable[[EngineSpec], bool]) -> str:
    """Return the option --engine with the names of the engines that fit."""
    *names, last = [spec.name for spec in ENGINES.values() if fits(spec)]
    return f"--engine {', '.join(names)} or {last}"


def spec_of(settings: Settings) -> EngineSpec:
    return ENGINES[settings.engine]
