"""--engine deepspeed: DeepSpeed's data parallelism with ZeRO, offload and experts. Does not import torch."""

from collections.abc import Iterator

from .deepspeed import origin
from .deepspeed.query import Config, clips_the_update, enabled
from .engine import EngineSpec
from .settings import Settings


def common_reasons(config: Config, settings: Settings) -> Iterator[str]:
    """Yield the reasons why DeepSpeed cannot train with the config, with or without a pipeline."""
    stage = config["zero_optimization"]["stage"]
    if enabled(config, "fp16") and stage == 0:
        yield (
            "fp16 needs ZeRO stage 1, 2 or 3: at stage 0 this DeepSpeed does not scale the loss but does "
            "unscale the gradients"
        )
    if clips_the_update(config) and config["gradient_clipping"]:
        clip = origin.name(settings, "gradient_clipping")
        yield f"{clip} fails with muon at ZeRO stage {stage}: DeepSpeed would clip Muon's final update"
    if config.get("bf16", {}).get("bf16_master_weights_and_grads") and enabled(config, "bf16") and stage == 0:
        yield "bf16 without an fp32 master copy (amp O3) needs --engine ddp: DeepSpeed requires ZeRO for it"


def _reasons(config: Config, settings: Settings) -> Iterator[str]:
    yield from common_reasons(config, settings)
    zero = config["zero_optimization"]
    stage = zero["stage"]
    if settings.has_experts and stage == 3:
        yield "a mixture of experts needs ZeRO stage 0, 1 or 2: DeepSpeed refuses experts at stage 3"
    if settings.ema is not None and stage == 3:
        if (zero.get("offload_param") or {}).get("device") == "nvme":
            yield "--ema does not work with weights on nvme (offload_param)"
        if zero.get("zero_hpz_partition_size", 1) > 1:
            yield "--ema does not work with zero_hpz_partition_size, which keeps a second copy of the weights"


SPEC = EngineSpec(
    name="deepspeed",
    implementation="deepspeed:DeepSpeedEngine",
    layout="deepspeed",
    runs_deepspeed=True,
    offloads=True,
    adapters=True,
    compiles=True,
    casts_weights=True,
    reasons=_reasons,
)
