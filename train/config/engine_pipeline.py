"""--engine pipeline: DeepSpeed's pipeline. Does not import torch."""

from collections.abc import Iterator

from .deepspeed import origin
from .deepspeed.query import Config, optimizer_name, precision
from .engine import EngineSpec
from .engine_deepspeed import common_reasons
from .settings import Settings


def _reasons(config: Config, settings: Settings) -> Iterator[str]:
    yield from common_reasons(config, settings)
    stage = config["zero_optimization"]["stage"]
    if stage > 1:
        yield (
            f"--engine pipeline needs ZeRO stage 0 or 1, not {stage}: it accumulates the gradients of "
            "several micro batches, which stages 2 and 3 shard over the ranks"
        )
    if precision(config) == "bf16" and stage == 0:
        # DeepSpeed 0.19.8 shards the optimizer's states over the ranks, but saves only those of the first.
        yield (
            "--engine pipeline with bf16 needs ZeRO stage 1: at stage 0 this DeepSpeed saves checkpoints "
            "that it cannot load"
        )
    if precision(config) == "autocast-fp16":
        yield (
            f"{origin.precision(settings, config)} needs --engine deepspeed or ddp, not pipeline, where "
            "DeepSpeed scales the loss only in the last stage; autocast, to bf16, works"
        )
    if optimizer_name(config) == "muon":
        optimizer = origin.name(settings, "optimizer.type")
        yield f"{optimizer} muon needs --engine deepspeed, not pipeline: its stages would wait forever"


SPEC = EngineSpec(
    name="pipeline",
    implementation="pipeline:PipelineEngine",
    layout="deepspeed, a file a layer",
    options=("stages", "partition"),
    runs_deepspeed=True,
    pipelined=True,
    no_experts="its load-balancing loss cannot be passed between stages",
    reasons=_reasons,
)
