"""DeepSpeed's config dict, from a JSON file, the options, or both; every engine reads it.

An option takes precedence over the file, and a note reports it. Values that are in neither get our default.
Does not import torch.
"""

import copy
from collections.abc import Sequence
from pathlib import Path

from jobgen.values import hjson_text

from ...errors import CommonMistake
from ..batches import ACCUMULATION, MICRO, TOTAL, Batch
from ..converters import is_own
from ..engine import EngineSpec
from ..engines import spec_of
from ..settings import Settings
from . import auto, keys, origin, values
from .query import (
    PRECISION_BLOCKS,
    Config,
    clips_the_update,
    enabled,
    learning_rate,
    optimizer_name,
    precision,
)

DEFAULT_LR = {"adam": 0.002, "adamw": 0.002, "lamb": 0.002, "sgd": 0.05, "muon": 0.02}
TYPES = {"adam": "Adam", "adamw": "AdamW", "lamb": "Lamb", "sgd": "SGD", "muon": "Muon"}
# Keys that the engines without DeepSpeed follow, too.
EVERY_ENGINE = frozenset(
    (
        *(TOTAL, MICRO, ACCUMULATION, *PRECISION_BLOCKS, "bfloat16", "amp", "optimizer", "scheduler"),
        *("zero_optimization", "gradient_clipping", "tensorboard", "csv_monitor", "dataloader_drop_last"),
        *("steps_per_print", "zero_allow_untested_optimizer"),
    )
)


def read(file: Path | None) -> tuple[Config, list[str]]:
    """Return the dict in `file`, {} for None, and the paths of its values "auto", which the dict has not.

    As DeepSpeed does, it takes comments and commas at the end, which JSON has not. Raise CommonMistake if the
    file cannot be read, is not a JSON object, or has an unknown key.
    """
    if file is None:
        return {}, []
    try:
        config = hjson_text.parse(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommonMistake(f"--deepspeed_config {file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise CommonMistake(f"--deepspeed_config {file} is not valid JSON: {error}") from None
    if not isinstance(config, dict):
        raise CommonMistake(f"--deepspeed_config {file} is not a JSON object")
    config, autos = auto.split(config)
    return keys.check(config, keys.label(file)), autos


def build(
    base: Config,
    settings: Settings,
    batch: Batch,
    parallel: int,
    autos: Sequence[str] = (),
    lr_ranks: int | None = None,
) -> tuple[Config, list[str]]:
    """Return DeepSpeed's config, and notes on values that were overruled or changed.

    The schedule of --scheduler is added later, by `schedule`. parallel: number of data-parallel ranks
    (batches.replicas). autos: see `read`. lr_ranks: number of ranks for --scale-lr, if it is another one.
    `base` is not modified. Raise CommonMistake for settings that cannot work together.
    """
    config, notes = copy.deepcopy(base), []
    if "bfloat16" in config:  # DeepSpeed's old name
        config.setdefault("bf16", config.pop("bfloat16"))
    if "scheduler" in config:
        config["scheduler"].setdefault("params", {})
    config[TOTAL] = batch.micro * batch.accumulation * parallel
    config[MICRO], config[ACCUMULATION] = batch
    notes += _optimizer(config, settings)
    if auto.RATE in autos:
        config["optimizer"]["params"].setdefault("lr", DEFAULT_LR.get(optimizer_name(config), 0.001))
    notes += _scaled_rate(config, settings, lr_ranks or parallel)
    notes += _precision(config, settings)
    notes += _zero(config, settings)
    notes += spec_of(settings).set_defaults(config, settings)
    if settings.clip is not None:
        if config.get("gradient_clipping", settings.clip) != settings.clip:
            notes.append(f"--clip {settings.clip} overrides the config file's {config['gradient_clipping']}")
        config["gradient_clipping"] = settings.clip
    # DeepSpeed's own default, used here for every engine.
    config.setdefault("gradient_clipping", 0.0 if clips_the_update(config) else 1.0)
    notes += _scheduler(config, settings)
    return config, notes + auto.fill(config, autos) + _notes_on_others(base, settings)


def _scheduler(config: Config, settings: Settings) -> list[str]:
    """Remove the file's scheduler if --scheduler is given. Return a note on it."""
    notes = []
    if settings.scheduler is not None and "scheduler" in config:
        notes.append(f"--scheduler {settings.scheduler} replaces the config file's scheduler")
        del config["scheduler"]
    has_scheduler = "scheduler" in config or settings.scheduler not in (None, "none")
    if settings.scheduler_unit == "epoch" and not has_scheduler:
        raise CommonMistake("--scheduler-unit epoch needs a scheduler, from --scheduler or the config file")
    return notes


# Keys of a file that DeepSpeed accepts and that change nothing in a run, with the reason.
WITHOUT_EFFECT = {
    "activation_checkpointing": "only a model that calls deepspeed.checkpointing.configure reads it",
}


def _notes_on_others(base: Config, settings: Settings) -> list[str]:
    """Return notes on keys of the file that this run does not use."""
    notes = [
        f"the config file's {section} has no effect: {reason}"
        for section, reason in WITHOUT_EFFECT.items()
        if base.get(section)
    ]
    if (base.get("compile") or {}).get("deepcompile") and not settings.compile:
        notes.append("the config file's compile.deepcompile has no effect without --compile")
    if not spec_of(settings).runs_deepspeed:
        quiet = (*EVERY_ENGINE, *WITHOUT_EFFECT, "pipeline")  # pipeline.py has notes on the last one
        others = {key: value for key, value in base.items() if value and key not in quiet}
        names = [
            key for key, one in others.items() if not (isinstance(one, dict) and one.get("enabled") is False)
        ]
        if names:
            notes.append(f"--engine {settings.engine} ignores the config file's {', '.join(names)}")
    return notes


def schedule(config: Config, settings: Settings, total: int) -> Config:
    """Return `config` with its schedule, for a run of `total` steps (epochs with --scheduler-unit epoch).

    Raise CommonMistake if the warm-up is longer than the run, or given without a scheduler.
    """
    config = copy.deepcopy(config)
    block = config.get("scheduler", {})
    if block.get("type") in ("WarmupDecayLR", "WarmupCosineLR"):
        block.setdefault("params", {}).setdefault("total_num_steps", total)
    warmup = settings.warmup_steps or max(1, total // 10)
    if settings.warmup_steps and warmup > total:
        unit = "steps" if settings.scheduler_unit == "batch" else "epochs"
        raise CommonMistake(f"--warmup-steps {warmup} is more than the {total} {unit} of the whole run")
    open_counts = [key for key, value in block.get("params", {}).items() if value == auto.AUTO]
    block.get("params", {}).update(
        {key: {"warmup_num_steps": warmup, "total_num_steps": total}[key] for key in open_counts}
    )
    name = settings.scheduler
    if name in (None, "none"):
        if settings.warmup_steps is not None and "warmup_num_steps" not in open_counts:
            raise CommonMistake(
                "--warmup-steps needs --scheduler warmup, warmup-decay, warmup-cosine or onecycle"
            )
        return config
    config["scheduler"] = _block(name, learning_rate(config), warmup, total, settings)
    return config


def _block(name: str, lr: float, warmup: int, total: int, settings: Settings) -> Config:
    """Return DeepSpeed's description of the schedule that --scheduler names; see schedules.py."""
    # With a warm-up from 0, DeepSpeed would do its first two steps with a learning rate of 0.
    low = 1 / max(2, warmup)
    up = {"warmup_num_steps": warmup, "warmup_type": "linear"}
    rates = {"warmup_min_lr": lr * low, "warmup_max_lr": lr}
    first = max(1, settings.warmup_steps or total // 2)
    cycle = {"cycle_first_step_size": first, "cycle_second_step_size": max(1, total - first)}
    blocks: dict[str, tuple[str, Config]] = {
        "warmup": ("WarmupLR", rates | up),
        "warmup-decay": ("WarmupDecayLR", rates | up | {"total_num_steps": total, "end_lr": 0.0}),
        "warmup-cosine": ("WarmupCosineLR", {"warmup_min_ratio": low, **up, "total_num_steps": total}),
        "onecycle": ("OneCycle", {"cycle_min_lr": lr / 25, "cycle_max_lr": lr, **cycle}),
        "cosine": ("CosineAnnealingLR", {"T_max": total, "eta_min": 0.0}),
        "plateau": (
            "ReduceLROnPlateau",
            {
                "factor": settings.gamma or 0.1,
                "patience": 10 if settings.patience is None else settings.patience,
            },
        ),
        "multistep": (
            "MultiStepLR",
            {"milestones": list(settings.milestones or ()), "gamma": settings.gamma or 0.1},
        ),
    }
    kind, params = blocks.get(name, (name, {}))
    return {"type": kind, "params": params}


def _optimizer(config: Config, settings: Settings) -> list[str]:
    notes = []
    from_file = config.get("optimizer")
    if from_file is None or settings.optimizer is not None:
        kind = settings.optimizer or "adam"
        if from_file is not None:
            notes.append(f"--optimizer {kind} replaces the config file's optimizer")
        config["optimizer"] = {"type": TYPES.get(kind, kind), "params": _defaults(kind)}
        from_file = None
    params = config["optimizer"].setdefault("params", {})
    types = keys.schema()["$defs"]["optimizer"]
    parameters = types.get(optimizer_name(config), {"properties": ("lr",)})["properties"]
    for name in ("lr", "momentum", "betas", "weight_decay"):
        value = getattr(settings, name)
        if value is not None and name not in parameters:
            option, kind = name.replace("_", "-"), config["optimizer"]["type"]
            kinds = ", ".join(each for each in TYPES if name in types[each]["properties"])
            raise CommonMistake(f"--{option} is for --optimizer {kinds}, not for {kind}, the one of this run")
        if value is not None:
            if from_file is not None and params.get(name, value) != value:
                notes.append(f"--{name.replace('_', '-')} {value} overrides the config file's {params[name]}")
            params[name] = value
    if params.get("nesterov") and (not params.get("momentum") or params.get("dampening")):
        nesterov = origin.name(settings, "optimizer.params.nesterov")
        others = [
            f"{origin.name(settings, f'optimizer.params.{key}')} is {params[key]}"
            for key in ("momentum", "dampening")
            if key in params
        ]
        raise CommonMistake("; ".join([f"{nesterov} needs a momentum, and no dampening", *others]))
    return notes


def _defaults(kind: str) -> Config:
    if is_own(kind):
        return {}
    # torch_adam: DeepSpeed's own Adam would be compiled at run time.
    # adam_w_mode: by default, DeepSpeed treats Adam as AdamW.
    own: dict[str, Config] = {
        "sgd": {"momentum": 0.9},
        "adam": {"torch_adam": True, "adam_w_mode": False},
        "adamw": {"torch_adam": True},
        "muon": {"momentum": 0.95, "adam_lr": DEFAULT_LR["adam"], "torch_adam": True},
    }
    return {"lr": DEFAULT_LR[kind], "weight_decay": 0.0, **own.get(kind, {})}


def _scaled_rate(config: Config, settings: Settings, parallel: int) -> list[str]:
    """Multiply the learning rates by the number of ranks (Goyal et al., arXiv 1706.02677) or its square root.

    Return a note on the result.
    """
    factor = {"none": 1.0, "linear": float(parallel), "sqrt": parallel**0.5}[settings.scale_lr]
    if factor == 1:
        return []
    params = config["optimizer"]["params"]
    if is_own(config["optimizer"]["type"]) and "lr" not in params:
        raise CommonMistake(f"--scale-lr {settings.scale_lr} needs --lr, which it multiplies")
    params["lr"] = learning_rate(config) * factor
    schedule = config.get("scheduler", {}).get("params", {})
    for block in (params, schedule):
        for name in block:
            if name.endswith("_lr") or name == "eta_min":
                block[name] *= factor
    return [f"--scale-lr {settings.scale_lr}: the learning rate is {params['lr']:.4g} for {parallel} ranks"]


def _precision(config: Config, settings: Settings) -> list[str]:
    notes = []
    choice = settings.precision
    level = settings.amp
    if enabled(config, "amp"):
        if any(enabled(config, name) for name in PRECISION_BLOCKS):
            raise CommonMistake(
                "amp cannot be combined with fp16, bf16 or torch_autocast: a run has one precision"
            )
        level = level or config["amp"].get("opt_level", "O1")
    if level is not None and choice is None:
        zero = _stage(config, settings)
        if level != "O0" and zero:
            raise CommonMistake(
                f"amp cannot be combined with fp16 or ZeRO (stage {zero}), which replace its weights; "
                "--precision autocast or bf16 works with ZeRO"
            )
        choice, equivalent = AMP.get(str(level), ("", ""))
        if not choice:
            raise CommonMistake(f"amp.opt_level {level!r} in the config file is not one of {', '.join(AMP)}")
        notes.append(f"amp {level} runs as {equivalent}: NVIDIA's apex, which had these levels, is retired")
    config.pop("amp", None)
    if "dtype" in config.get("torch_autocast", {}):
        config["torch_autocast"]["dtype"] = values.AUTOCAST[config["torch_autocast"]["dtype"]]
    on = [name for name in PRECISION_BLOCKS if enabled(config, name)]
    if len(on) > 1:
        raise CommonMistake(f"the config file enables both {' and '.join(on)}: a run has one precision")
    if choice is not None:
        if on and PRECISION_BLOCKS[on[0]] != choice.partition("-")[0]:
            notes.append(f"{origin.precision(settings, config)} overrides the config file's {on[0]}")
        _set_precision(config, choice)
    return notes


AMP = {
    "O0": ("fp32", "fp32"),
    "O1": ("autocast", "torch's autocast to bf16"),
    "O2": ("bf16", "bf16 weights with an fp32 master copy"),
    "O3": ("pure-bf16", "bf16 without an fp32 master copy"),
}


def _set_precision(config: Config, choice: str) -> None:
    kind, _, detail = choice.partition("-")
    for section, equivalent in PRECISION_BLOCKS.items():
        if equivalent == ("bf16" if choice == "pure-bf16" else kind):
            config.setdefault(section, {})["enabled"] = True
        elif section in config:
            config[section]["enabled"] = False
    if kind == "autocast":
        config["torch_autocast"]["dtype"] = "float16" if detail == "fp16" else "bfloat16"
    if kind == "pure":
        config["bf16"] |= {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}


def _stage(config: Config, settings: Settings) -> int:
    if settings.zero_stage is not None:
        return settings.zero_stage
    stage = config.get("zero_optimization", {}).get("stage", 0)
    if stage not in (0, 1, 2, 3) or isinstance(stage, bool):
        raise CommonMistake(f"zero_optimization.stage is {stage!r}, not 0, 1, 2 or 3")
    return int(stage)


def _zero(config: Config, settings: Settings) -> list[str]:
    notes = []
    zero = config.setdefault("zero_optimization", {})
    stage = _stage(config, settings)
    if zero.get("stage", stage) != stage:
        notes.append(f"--zero-stage {stage} overrides the config file's {zero['stage']}")
    reason = _needs_stage_1(config, spec_of(settings))
    if reason and settings.zero_stage is None and "stage" not in zero:
        stage = 1
        notes.append(reason)
    zero["stage"] = stage
    if settings.offload is not None:
        for part, kinds in (("offload_optimizer", ("optimizer", "all")), ("offload_param", ("all",))):
            device = (zero.pop(part, None) or {}).get("device", "none")
            if settings.offload in kinds:
                zero[part] = {"device": "cpu"}
            elif device != "none":
                notes.append(f"--offload {settings.offload} overrides the config file's {part} to {device}")
    if optimizer_name(config) == "muon" and stage == 3:
        zero.setdefault("reduce_scatter", False)  # Muon needs whole gradients
    if stage and optimizer_name(config) not in ("adam", "adamw"):
        # ZeRO accepts only Adam by name, but is correct for every elementwise optimizer.
        config.setdefault("zero_allow_untested_optimizer", True)
    return notes


def _needs_stage_1(config: Config, spec: EngineSpec) -> str:
    """Return the reason why DeepSpeed cannot train with this precision at ZeRO stage 0; '' if it can."""
    if spec.runs_deepspeed and enabled(config, "fp16"):
        return "fp16 runs at ZeRO stage 1, because at stage 0 this DeepSpeed does not scale the loss"
    if spec.pipelined and precision(config) == "bf16":
        return "bf16 runs at ZeRO stage 1, because at stage 0 this DeepSpeed cannot load a pipeline's states"
    return ""
