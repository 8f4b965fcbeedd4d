"""DeepSpeed's config dict, from a JSON file, the options, or both. No torch here.

An option that was given wins over the file, and a note says so; what neither says gets our default.
"""

import copy
import json
from pathlib import Path
from typing import Any, NamedTuple

from .config import Settings
from .errors import CommonMistake, suggestion

Config = dict[str, Any]

# The top-level keys of DeepSpeed 0.19; it accepts any other in silence, and ignores it.
_KEYS = """
activation_checkpointing aio amp autotuning bf16 bfloat16 checkpoint comet comms_logger
communication_data_type compile compression_training csv_monitor curriculum_learning data_efficiency
data_types dataloader_drop_last disable_allgather disable_python_gc dump_state eigenvalue elasticity
expert_parallel flops_profiler fp16 gradient_accumulation_steps gradient_allreduce_op gradient_clipping
gradient_predivide_factor hybrid_engine log_level managed_gradient_accumulation memory_breakdown nebula
optimizer pipeline prescale_gradients progressive_layer_drop quantize_training scheduler
seq_parallel_communication_data_type sparse_attention sparse_gradients steps_per_print tensor_parallel
tensorboard timers torch_autocast train_batch_size train_micro_batch_size_per_gpu
use_data_before_expert_parallelism vocabulary_size wall_clock_breakdown wandb weight_quantization
zero_allow_untested_optimizer zero_force_ds_cpu_optimizer zero_optimization
"""
KEYS = frozenset(_KEYS.split())
MICRO, ACCUMULATION, TOTAL = (
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "train_batch_size",
)
DEFAULT_MICRO = 32
DEFAULT_LR = {"adam": 0.002, "sgd": 0.05}


class Batch(NamedTuple):
    """Samples per forward pass of one rank, and forward passes per optimizer step."""

    micro: int
    accumulation: int


def read(file: Path | None) -> Config:
    """The dict in `file`, {} for None. Raises CommonMistake if it is no JSON object or has an unknown key."""
    if file is None:
        return {}
    try:
        config = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_no_key_twice)
    except OSError as error:
        raise CommonMistake(f"--deepspeed_config {file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CommonMistake(f"--deepspeed_config {file} is not valid JSON: {error}") from None
    if not isinstance(config, dict):
        raise CommonMistake(f"--deepspeed_config {file} holds no JSON object")
    for key in config:
        if key not in KEYS:
            raise CommonMistake(
                f"--deepspeed_config {file}: DeepSpeed has no key {key!r}{suggestion(key, KEYS)}"
            )
    for key in ("optimizer", "scheduler", "zero_optimization", "fp16", "bf16", "bfloat16", "amp"):
        if not isinstance(config.get(key, {}), dict):
            raise CommonMistake(f"--deepspeed_config {file}: {key} must be an object, not {config[key]!r}")
    return config


def batch_sizes(config: Config, settings: Settings, world_size: int) -> tuple[Batch, list[str]]:
    """The batch sizes and notes; any two of total, micro and accumulation give the third.

    Raises CommonMistake, with all numbers, where they do not agree.
    """
    total, micro, accumulation = (_size(config, key) for key in (TOTAL, MICRO, ACCUMULATION))
    notes = []
    if settings.batch_size or settings.accumulation:
        given = {
            "--batch-size": (settings.batch_size, micro),
            "--accumulation": (settings.accumulation, accumulation),
        }
        notes = [
            f"{o} {new} wins over the config file's {old}"
            for o, (new, old) in given.items()
            if old and new and new != old
        ]
        micro, accumulation = settings.batch_size or micro, settings.accumulation or accumulation
        if total and micro and micro * (accumulation or 1) * world_size != total:
            if accumulation is None and total % (micro * world_size) == 0:
                accumulation = total // (micro * world_size)
            else:
                notes.append(f"the options win over the config file's {TOTAL} {total}")
                total = None
    if total is None:
        return Batch(micro or DEFAULT_MICRO, accumulation or 1), notes
    if micro is None:
        micro = total // ((accumulation or 1) * world_size)
    if accumulation is None:
        accumulation = total // (micro * world_size) if micro else 1
    if micro * accumulation * world_size != total:
        raise CommonMistake(
            f"{TOTAL} {total} is not {MICRO} {micro} x {ACCUMULATION} {accumulation} x {world_size} ranks "
            f"= {micro * accumulation * world_size}"
        )
    return Batch(micro, accumulation), notes


def build(base: Config, settings: Settings, batch: Batch, world_size: int) -> tuple[Config, list[str]]:
    """DeepSpeed's config but for the schedule, and notes on what was overruled or lifted.

    `base` stays as it is. Raises CommonMistake for what cannot work together.
    """
    config, notes = copy.deepcopy(base), []
    config[TOTAL] = batch.micro * batch.accumulation * world_size
    config[MICRO], config[ACCUMULATION] = batch
    notes += _optimizer(config, settings)
    notes += _precision(config, settings)
    if settings.scheduler is not None and "scheduler" in config:
        notes.append(f"--scheduler {settings.scheduler} replaces the config file's scheduler")
        del config["scheduler"]
    return config, notes


def schedule(config: Config, settings: Settings, total_steps: int) -> Config:
    """`config` with its schedule, for a run of that many optimizer steps.

    Raises CommonMistake if the warm-up is longer than the run.
    """
    config = copy.deepcopy(config)
    block = config.get("scheduler", {})
    if block.get("type") in ("WarmupDecayLR", "WarmupCosineLR"):
        block.setdefault("params", {}).setdefault("total_num_steps", total_steps)
    if settings.scheduler in (None, "none"):
        return config
    warmup = settings.warmup_steps or max(1, total_steps // 10)
    if warmup > total_steps:
        raise CommonMistake(f"--warmup-steps {warmup} is more than the {total_steps} steps of the whole run")
    lr = config["optimizer"]["params"].get("lr", 0.001)
    params = {
        # From 0, DeepSpeed would take its first two steps with a learning rate of 0.
        "warmup_min_lr": lr / max(2, warmup),
        "warmup_max_lr": lr,
        "warmup_num_steps": warmup,
        "warmup_type": "linear",
    }
    if settings.scheduler == "warmup":
        config["scheduler"] = {"type": "WarmupLR", "params": params}
    else:
        config["scheduler"] = {"type": "WarmupDecayLR", "params": params | {"total_num_steps": total_steps}}
    return config


def _optimizer(config: Config, settings: Settings) -> list[str]:
    notes = []
    from_file = config.get("optimizer")
    if from_file is None or settings.optimizer is not None:
        kind = settings.optimizer or "adam"
        if from_file is not None:
            notes.append(f"--optimizer {kind} replaces the config file's optimizer")
        params: Config = {"lr": DEFAULT_LR[kind], "weight_decay": 0.0}
        # torch_adam: DeepSpeed's own Adam is compiled at run time. adam_w_mode: to it, Adam is AdamW.
        params |= {"momentum": 0.9} if kind == "sgd" else {"torch_adam": True, "adam_w_mode": False}
        config["optimizer"] = {"type": "SGD" if kind == "sgd" else "Adam", "params": params}
        from_file = None
    block = config["optimizer"]
    params = block.setdefault("params", {})
    if settings.momentum is not None and optimizer_name(config) in ("adam", "adamw"):
        raise CommonMistake("--momentum is for --optimizer sgd, not for adam, the optimizer of this run")
    for name in ("lr", "momentum", "weight_decay"):
        value = getattr(settings, name)
        if value is not None:
            if from_file is not None and params.get(name, value) != value:
                notes.append(f"--{name.replace('_', '-')} {value} wins over the config file's {params[name]}")
            params[name] = value
    return notes


def optimizer_name(config: Config) -> str:
    """The optimizer's type in lower case, as DeepSpeed compares it."""
    return str(config["optimizer"].get("type", "")).lower()


def _precision(config: Config, settings: Settings) -> list[str]:
    notes = []
    if "bfloat16" in config:  # DeepSpeed's old spelling
        config.setdefault("bf16", config.pop("bfloat16"))
    in_file = [name for name in ("fp16", "bf16") if config.get(name, {}).get("enabled")]
    if len(in_file) == 2:
        raise CommonMistake("the config file enables both fp16 and bf16: a run has one precision")
    if settings.precision is not None:
        if in_file and in_file != [settings.precision]:
            notes.append(f"--precision {settings.precision} wins over the config file's {in_file[0]}")
        for name in ("fp16", "bf16"):
            if name == settings.precision:
                config.setdefault(name, {})["enabled"] = True
            elif name in config:
                config[name]["enabled"] = False
    fp16 = config.get("fp16", {}).get("enabled", False)
    zero = config.setdefault("zero_optimization", {})
    if settings.zero_stage is not None:
        if zero.get("stage", settings.zero_stage) != settings.zero_stage:
            notes.append(f"--zero-stage {settings.zero_stage} wins over the config file's {zero['stage']}")
        zero["stage"] = settings.zero_stage
    if config.get("amp", {}).get("enabled") and (fp16 or zero.get("stage")):
        raise CommonMistake(
            "amp goes with neither fp16 nor ZeRO: it keeps weights of its own that these replace"
        )
    if fp16 and zero.get("stage") == 0:
        raise CommonMistake(
            "fp16 needs ZeRO stage 1, 2 or 3: at stage 0 this DeepSpeed does not scale the loss but does "
            "unscale the gradients"
        )
    if fp16 and "stage" not in zero:
        zero["stage"] = 1
        notes.append("fp16 runs at ZeRO stage 1, because at stage 0 this DeepSpeed does not scale the loss")
    if zero.setdefault("stage", 0) not in (0, 1, 2, 3):
        raise CommonMistake(f"zero_optimization.stage is {zero['stage']!r}, not 0, 1, 2 or 3")
    if zero["stage"] and optimizer_name(config) not in ("adam", "adamw"):
        # ZeRO knows only Adam by name; it is right for every optimizer that treats elements alone.
        config.setdefault("zero_allow_untested_optimizer", True)
    return notes


def _size(config: Config, key: str) -> int | None:
    value = config.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise CommonMistake(f"{key} in the config file must be a whole number of at least 1, not {value!r}")
    return value


def _no_key_twice(pairs: list[tuple[str, Any]]) -> Config:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} stands there twice")
    return result
