"""Combinations of settings that cannot work, each with its reason.

They are checked before the run starts. Does not import torch.
"""

from collections.abc import Iterator
from typing import Any

from ..errors import CommonMistake
from . import Settings, plugins
from .dsconfig import Config, clips_the_update, enabled, optimizer_name


def check(config: Config, settings: Settings) -> None:
    """Raise CommonMistake for the first combination that cannot work."""
    for reason in _reasons(config, settings):
        raise CommonMistake(reason)


def _reasons(config: Config, settings: Settings) -> Iterator[str]:
    zero: dict[str, Any] = config["zero_optimization"]
    stage = zero["stage"]
    engine = settings.engine
    if engine == "ddp":
        yield from _ddp(config, stage)
    elif engine == "colossalai":
        yield from plugins.reasons(config, settings)
    else:
        yield from _deepspeed(config, stage)
    for monitor in ("wandb", "comet"):
        if engine in ("ddp", "colossalai") and enabled(config, monitor):
            yield f"the config file's {monitor} needs --engine deepspeed or pipeline: DeepSpeed writes it"
    if engine == "pipeline" and stage > 1:
        yield (
            f"--engine pipeline goes with ZeRO stage 0 or 1, not {stage}: it adds up the gradients of "
            "several micro batches, which stages 2 and 3 have already spread over the ranks"
        )
    if engine == "pipeline" and plugins.precision(config) == "autocast-fp16":
        yield (
            "--precision autocast-fp16 needs --engine deepspeed or ddp, not pipeline: there DeepSpeed scales "
            "the loss in the last stage only, and the others know nothing of it; autocast, to bf16, works"
        )
    if engine == "pipeline" and optimizer_name(config) == "muon":
        yield "--optimizer muon needs --engine deepspeed, not pipeline: its stages would wait for ever"
    if settings.model == "moe" and stage == 3:
        yield "--model moe goes with ZeRO stage 0, 1 or 2: DeepSpeed refuses experts at stage 3"
    if settings.ema is not None and stage == 3 and engine == "deepspeed":
        if (zero.get("offload_param") or {}).get("device") == "nvme":
            yield "--ema goes not with weights on nvme (offload_param), where their average could not stay"
        if zero.get("zero_hpz_partition_size", 1) > 1:
            yield "--ema goes not with zero_hpz_partition_size, by which the weights are kept twice"
    yield from _offload(zero, engine)


def _ddp(config: Config, stage: int) -> Iterator[str]:
    if stage:
        yield f"ZeRO stage {stage} needs --engine deepspeed: plain torch's ddp keeps all states on every rank"
    name = optimizer_name(config)
    if name in ("lamb", "lion"):
        yield f"--optimizer {name} needs --engine deepspeed: plain torch has none for all parameters"


def _deepspeed(config: Config, stage: int) -> Iterator[str]:
    if enabled(config, "fp16") and stage == 0:
        yield (
            "fp16 needs ZeRO stage 1, 2 or 3: at stage 0 this DeepSpeed does not scale the loss but does "
            "unscale the gradients"
        )
    if clips_the_update(config) and config["gradient_clipping"]:
        yield f"--clip goes not with muon at ZeRO stage {stage}: DeepSpeed would clip Muon's finished update"
    if config.get("bf16", {}).get("bf16_master_weights_and_grads") and enabled(config, "bf16") and stage == 0:
        yield "bf16 without an fp32 master copy (amp O3) needs --engine ddp: DeepSpeed has it with ZeRO only"


def _offload(zero: dict[str, Any], engine: str) -> Iterator[str]:
    stage = zero["stage"]
    for part, option, least in (("offload_param", "all", 3), ("offload_optimizer", "optimizer", 1)):
        device = (zero.get(part) or {}).get("device", "none")
        if device == "none":
            continue
        if engine != "deepspeed":
            yield f"--offload {option} needs --engine deepspeed, not {engine}"
        if stage < least:
            stages = "1, 2 or 3" if least == 1 else "3"
            yield f"--offload {option} ({part}) needs --zero-stage {stages}, not {stage}"


def check_device(config: Config, kind: str) -> None:
    """Raise CommonMistake for settings that this kind of device (cuda, rocm, npu, cpu) does not support."""
    if config["zero_optimization"].get("zenflow") is not None and kind != "cuda":
        raise CommonMistake(f"zero_optimization.zenflow needs CUDA devices, not {kind}")
    name = optimizer_name(config)
    if name in ("lamb", "lion") and kind != "cuda":
        raise CommonMistake(
            f"--optimizer {name} needs a CUDA device: DeepSpeed has no kernel of it for {kind}"
        )
