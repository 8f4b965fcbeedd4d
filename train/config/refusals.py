"""Combinations of settings that cannot work, each with its reason. Engines add others, see engine.py.

They are checked before the run starts. Does not import torch.
"""

from collections.abc import Iterator
from typing import Any

from ..accelerators import ACCELERATORS
from ..errors import CommonMistake
from . import finetuning
from .deepspeed import origin
from .deepspeed.query import Config, enabled, optimizer_name, precision
from .engines import option_of, spec_of
from .settings import Settings


def check(config: Config, settings: Settings) -> None:
    """Raise CommonMistake for the first combination that cannot work."""
    for reason in _reasons(config, settings):
        raise CommonMistake(reason)


def _reasons(config: Config, settings: Settings) -> Iterator[str]:
    spec = spec_of(settings)
    yield from spec.reasons(config, settings)
    for monitor in ("wandb", "comet"):
        if not spec.runs_deepspeed and enabled(config, monitor):
            yield f"the config file's {monitor} needs --engine deepspeed or pipeline: DeepSpeed writes it"
    if settings.async_save and not spec.async_saves:
        yield f"--async-save needs {option_of(lambda each: each.async_saves)}, not {spec.name}"
    zero = config["zero_optimization"]
    # Measured on an H100. At the other stages the kernel gets the master weights, which are fp32.
    if optimizer_name(config) == "lamb" and precision(config) in ("bf16", "pure-bf16") and not zero["stage"]:
        optimizer = origin.name(settings, "optimizer.type")
        yield f"{optimizer} lamb in bf16 needs --zero-stage 1, 2 or 3: DeepSpeed's kernel has no bf16"
    yield from _offload(zero, settings)


def _offload(zero: dict[str, Any], settings: Settings) -> Iterator[str]:
    stage, spec = zero["stage"], spec_of(settings)
    for part, least in (("offload_param", 3), ("offload_optimizer", 1)):
        device = (zero.get(part) or {}).get("device", "none")
        if device == "none":
            continue
        offload = f"{origin.name(settings, f'zero_optimization.{part}.device')} {settings.offload or device}"
        if not spec.offloads:
            yield f"{offload} needs --engine deepspeed, not {spec.name}"
        if stage < least:
            stages = "1, 2 or 3" if least == 1 else "3"
            yield f"{offload} needs --zero-stage {stages}, not {stage}"


def check_device(config: Config, settings: Settings, kind: str) -> None:
    """Raise CommonMistake for settings that this kind of device does not support."""
    finetuning.check_device(settings, precision(config), kind)
    if ACCELERATORS[kind].deepspeed_kernels:
        return
    if config["zero_optimization"].get("zenflow") is not None:
        zenflow = origin.name(settings, "zero_optimization.zenflow")
        raise CommonMistake(f"{zenflow} needs CUDA devices, not {kind}")
    name = optimizer_name(config)
    if name in ("lamb", "lion"):
        optimizer = origin.name(settings, "optimizer.type")
        raise CommonMistake(f"{optimizer} {name} needs a CUDA device: DeepSpeed has no kernel for {kind}")
