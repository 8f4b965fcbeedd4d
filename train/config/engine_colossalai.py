"""--engine colossalai: its plug-ins, their ways of training and their limits. Does not import torch.

| --plugin       | dtype of weights and computation          | like           | without --precision |
|---|---|---|---|
| torch_ddp      | fp32                                      | --engine ddp   | fp32                |
| torch_ddp_fp16 | fp32, autocast to fp16                    | --engine ddp   | autocast-fp16       |
| low_level_zero | fp32, bf16 or fp16, fp32 copy sharded     | ZeRO 1 or 2    | fp32, ZeRO 1        |
| gemini         | bf16 or fp16 sharded, fp32 copy sharded   | ZeRO 3         | bf16                |
"""

import importlib.util
import math
import sys
from collections.abc import Iterator

from ..errors import CommonMistake
from .deepspeed.query import Config, optimizer_name, precision
from .engine import EngineSpec
from .settings import Settings

DEFAULT = "torch_ddp"
VERSION = "0.5.0"


def _plugin(settings: Settings) -> str:
    """Return the plug-in of a run with --engine colossalai."""
    return settings.plugin or DEFAULT


def _check_environment() -> None:
    """Raise CommonMistake if ColossalAI is not installed."""
    if not importlib.util.find_spec("colossalai"):
        raise CommonMistake(
            f"--engine colossalai: ColossalAI is not installed in {sys.prefix}, and its pins exclude current "
            "versions of torch: in a checkout of jobgen, `make colossalai` makes .venv-colossalai for it "
            "(or, in an environment of its own: pip install '.[colossalai]' && pip install --no-deps "
            f"colossalai=={VERSION})"
        )


def _set_defaults(config: Config, settings: Settings) -> list[str]:
    """Set the plug-in's defaults in DeepSpeed's config where no value is given. Return notes on them."""
    plugin, explicit = _plugin(settings), settings.precision or settings.amp or precision(config) != "fp32"
    zero = config["zero_optimization"]
    if settings.initial_scale is not None:
        block = config.setdefault("fp16", {})
        block["initial_scale_power"] = math.log2(settings.initial_scale)
    if plugin == "low_level_zero" and settings.zero_stage is None and not zero["stage"]:
        zero["stage"] = 1
    if plugin == "gemini" and settings.zero_stage is None and not zero["stage"]:
        zero["stage"] = 3
    if plugin == "torch_ddp_fp16" and not explicit:
        config["torch_autocast"] = {"enabled": True, "dtype": "float16"}
    if plugin == "gemini" and not explicit:
        config["bf16"] = {**config.get("bf16", {}), "enabled": True}
        return ["--plugin gemini trains in bf16, because it has no fp32; --precision fp16 works, too"]
    return []


PRECISIONS = {
    "torch_ddp": ("fp32",),
    "torch_ddp_fp16": ("autocast-fp16",),
    "low_level_zero": ("fp32", "bf16", "fp16"),
    "gemini": ("bf16", "fp16"),
}
STAGES = {"torch_ddp": (0,), "torch_ddp_fp16": (0,), "low_level_zero": (1, 2), "gemini": (3,)}
PLUGINS = tuple(STAGES)
OPTIMIZERS = dict.fromkeys(STAGES, ("adam", "adamw", "sgd")) | {"gemini": ("adam", "adamw")}


def _reasons(config: Config, settings: Settings) -> Iterator[str]:
    """Yield the reasons why the plug-in cannot train this run; nothing if it can."""
    plugin = _plugin(settings)
    option = f"{'' if settings.plugin else 'the default '}--plugin {plugin}"
    kind, stage = precision(config), config["zero_optimization"]["stage"]
    optimizer = optimizer_name(config)
    if kind not in PRECISIONS[plugin]:
        others = [other for other in PRECISIONS if kind in PRECISIONS[other]]
        yield (
            f"{option} trains in {' or '.join(PRECISIONS[plugin])}, not in {kind}"
            + (f", which {' and '.join(others)} can" if others else ", which no plug-in of ColossalAI has")
        )
    if stage not in STAGES[plugin]:
        yield (f"{option} is ZeRO stage {' or '.join(map(str, STAGES[plugin]))}, not {stage}")
    if optimizer not in OPTIMIZERS[plugin]:
        yield f"{option} supports --optimizer {' or '.join(OPTIMIZERS[plugin])}, not {optimizer}"
    if settings.initial_scale is not None and not kind.endswith("fp16"):
        yield f"--initial-scale {settings.initial_scale:g} is for fp16, and this run has {kind}"
    if settings.ema is not None and plugin == "gemini":
        yield "--ema is not supported by --plugin gemini, where no rank has the whole weights"


SPEC = EngineSpec(
    name="colossalai",
    implementation="colossalai.engine:ColossalaiEngine",
    layout="one file",
    options=("plugin", "initial_scale"),
    own_optimizers="ColossalAI's plug-ins use its HybridAdam",
    no_experts="the expert layer is DeepSpeed's",
    fixed_ranks="each rank has saved only its share; --plugin torch_ddp shards nothing and can resume",
    set_defaults=_set_defaults,
    reasons=_reasons,
    plugin=_plugin,
    check_environment=_check_environment,
)
