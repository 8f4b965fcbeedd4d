"""The section `pipeline` of the config file, by which programs of one's own build their pipeline.

DeepSpeed reads neither its type nor its params. Here, the type PipelineModule selects --engine pipeline, and
num_stages is --stages. Does not import torch.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import CommonMistake
from ..engines import ENGINES, spec_of
from ..settings import Settings
from . import keys, merge
from .query import Config

TYPE, STAGES = "PipelineModule", "num_stages"
ENGINE = next(spec.name for spec in ENGINES.values() if spec.pipelined)


def choice(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return engine and stages for the values of the options, whose own engine and stages come first."""
    file, engine, stages = (values[name] for name in ("deepspeed_config", "engine", "stages"))
    block = merge.read(file)[0].get("pipeline", {}) if engine in (None, ENGINE) else {}
    if block.get("type") == TYPE:
        engine = ENGINE
        count = block.get("params", {}).get(STAGES)
        if count is not None and (type(count) is not int or count < 1):
            name = f"{keys.label(file)}: pipeline.params.{STAGES}"
            raise CommonMistake(f"{name} must be a whole number of at least 1, not {count!r}")
        stages = stages or count
    return {"engine": engine or "deepspeed", "stages": stages}


def notes(base: Config, settings: Settings) -> Iterator[str]:
    """Yield what the section does in this run, and which of its values have no effect."""
    block = base.get("pipeline", {})
    kind, params = block.get("type"), block.get("params", {})
    unknown = [f"params.{key}" for key in params if key != STAGES or kind != TYPE]
    if kind == TYPE and not spec_of(settings).pipelined:
        yield f"--engine {settings.engine} overrides the config file's pipeline"
        return
    if kind == TYPE and params.get(STAGES, settings.stages) != settings.stages:
        yield f"--stages {settings.stages} overrides the config file's {params[STAGES]}"
    elif kind == TYPE:
        stages = f" --stages {settings.stages}" if STAGES in params else ""
        yield f"the config file's pipeline selects --engine pipeline{stages}"
    if kind is None and block and not spec_of(settings).pipelined:
        yield f"the config file's pipeline has no effect with --engine {settings.engine}"
    for key in ("type", *unknown) if kind not in (None, TYPE) else unknown:
        yield f"the config file's pipeline.{key} has no effect: DeepSpeed does not read it"
