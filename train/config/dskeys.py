"""The keys of DeepSpeed 0.19's config, section by section. No torch here.

DeepSpeed accepts any other top-level key in silence and ignores it; in a section, some are ignored and
some fail with the trace of a validator on every rank. Here all get one sentence before anything starts.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import CommonMistake, suggestion
from .converters import GONE, is_own

_TOP = """
activation_checkpointing aio amp autotuning bf16 bfloat16 checkpoint comet comms_logger
communication_data_type compile compression_training csv_monitor curriculum_learning data_efficiency
data_types dataloader_drop_last disable_allgather disable_python_gc dump_state eigenvalue
expert_parallel flops_profiler fp16 gradient_accumulation_steps gradient_allreduce_op gradient_clipping
gradient_predivide_factor hybrid_engine log_level managed_gradient_accumulation memory_breakdown nebula
optimizer pipeline prescale_gradients progressive_layer_drop quantize_training scheduler
seq_parallel_communication_data_type sparse_gradients steps_per_print tensor_parallel
tensorboard timers torch_autocast train_batch_size train_micro_batch_size_per_gpu
use_data_before_expert_parallelism vocabulary_size wall_clock_breakdown wandb weight_quantization
zero_allow_untested_optimizer zero_force_ds_cpu_optimizer zero_optimization
"""
TOP = frozenset(_TOP.split())
_ZERO = """
stage contiguous_gradients reduce_scatter reduce_bucket_size use_multi_rank_bucket_allreduce
allgather_partitions allgather_bucket_size overlap_comm compute_grad_norm load_from_fp32_weights
elastic_checkpoint offload_param offload_optimizer zenflow sub_group_size cpu_offload_param
cpu_offload_use_pin_memory cpu_offload stage3_prefetch_bucket_size prefetch_bucket_size
stage3_param_persistence_threshold param_persistence_threshold stage3_model_persistence_threshold
model_persistence_threshold stage3_max_live_parameters max_live_parameters stage3_max_reuse_distance
max_reuse_distance stage3_gather_16bit_weights_on_model_save gather_16bit_weights_on_model_save
stage3_module_granularity_threshold module_granularity_threshold stage3_use_all_reduce_for_fetch_params
use_all_reduce_for_fetch_params stage3_allgather_sequential allgather_sequential
stage3_gather_fp16_weights_on_model_save ignore_unused_parameters legacy_stage1 round_robin_gradients
parameter_alignment zero_hpz_partition_size zero_quantized_weights zero_quantized_nontrainable_weights
zero_quantized_gradients memory_efficient_linear pipeline_loading_checkpoint override_module_apply
log_trace_cache_warnings enable_sanity_checks save_muon_momentum_buffer_in_memory leaf_module
"""
_BF16 = (
    "enabled immediate_grad_update check_grad_overflow bf16_master_weights_and_grads bf16_optimizer_states"
)
SECTIONS = {
    "zero_optimization": _ZERO,
    "zero_optimization.offload_param": "device nvme_path buffer_count buffer_size max_in_cpu pin_memory",
    "zero_optimization.offload_optimizer": "device nvme_path buffer_count pin_memory pipeline_read "
    "pipeline_write fast_init ratio super_offload cpuadam_cores_perc",
    "bf16": _BF16,
    "bfloat16": _BF16,
    "fp16": "enabled auto_cast loss_scale initial_scale_power loss_scale_window hysteresis "
    "consecutive_hysteresis min_loss_scale fp16_master_weights_and_grads",
    "torch_autocast": "enabled dtype lower_precision_safe_modules",
    "amp": "enabled opt_level",
    "optimizer": "type params legacy_fusion",
    "scheduler": "type params",
    "tensorboard": "enabled output_path job_name",
    "csv_monitor": "enabled output_path job_name",
    "wandb": "enabled group team project",
    "comms_logger": "enabled prof_all prof_ops verbose debug",
    "flops_profiler": "enabled recompute_fwd_factor profile_step module_depth top_modules detailed "
    "output_file",
    "activation_checkpointing": "partition_activations number_checkpoints contiguous_memory_optimization "
    "synchronize_checkpoint_boundary profile cpu_checkpointing",
    "pipeline": "stages partition seed_layers activation_checkpoint_interval pipe_partitioned "
    "grad_partitioned use_reentrant",
    "checkpoint": "tag_validation load_universal use_node_local_storage parallel_write writer "
    "checkpoint_serialization",
    "data_types": "grad_accum_dtype",
}
_WARMUP = "total_num_steps warmup_num_steps warmup_type"
SCHEDULERS = {
    "WarmupLR": "warmup_min_lr warmup_max_lr warmup_num_steps warmup_type",
    "WarmupDecayLR": f"warmup_min_lr warmup_max_lr {_WARMUP}",
    "WarmupCosineLR": f"warmup_min_ratio cos_min_ratio {_WARMUP}",
    "OneCycle": "cycle_min_lr cycle_max_lr decay_lr_rate cycle_first_step_size cycle_second_step_size "
    "cycle_first_stair_count cycle_second_stair_count decay_step_size cycle_momentum cycle_min_mom "
    "cycle_max_mom decay_mom_rate",
    "LRRangeTest": "lr_range_test_min_lr lr_range_test_step_size lr_range_test_step_rate "
    "lr_range_test_staircase",
    # Not DeepSpeed's but ours, under torch's names.
    "MultiStepLR": "milestones gamma",
    "CosineAnnealingLR": "T_max eta_min",
}
_ADAM = (
    "lr betas eps weight_decay amsgrad torch_adam adam_w_mode foreach fp32_optimizer_states bias_correction"
)
OPTIMIZERS = {
    "sgd": "lr momentum weight_decay dampening nesterov foreach",
    "adam": _ADAM,
    "adamw": _ADAM,
    "lamb": "lr betas eps weight_decay bias_correction max_coeff min_coeff eps_inside_sqrt amsgrad",
    "muon": f"{_ADAM} momentum muon_lr adam_lr ns_method",
    "adagrad": "lr lr_decay weight_decay initial_accumulator_value eps foreach",
    "lion": "lr betas weight_decay",
}
# What no schedule can do without.
REQUIRED = {"MultiStepLR": ("milestones",), "OneCycle": ("cycle_min_lr", "cycle_max_lr")}
# What optimizers and schedules take besides numbers.
_FLAGS = """
amsgrad nesterov foreach torch_adam adam_w_mode fp32_optimizer_states bias_correction eps_inside_sqrt
cycle_momentum lr_range_test_staircase
"""
FLAGS = frozenset(_FLAGS.split())
WORDS = {"warmup_type": ("log", "linear"), "ns_method": ("gram", "standard")}
DIVISORS = frozenset(("T_max", "cycle_first_step_size", "cycle_second_step_size", "lr_range_test_step_size"))
# What some top-level keys hold.
_OBJECTS = """
aio autotuning comet compile compression_training curriculum_learning data_efficiency eigenvalue
hybrid_engine nebula progressive_layer_drop tensor_parallel weight_quantization
"""
_SWITCHES = """
dataloader_drop_last disable_allgather dump_state memory_breakdown prescale_gradients sparse_gradients
wall_clock_breakdown zero_allow_untested_optimizer zero_force_ds_cpu_optimizer
"""
_NUMBERS = "gradient_clipping gradient_predivide_factor steps_per_print"
# What some keys of sections hold, by DeepSpeed or sinks.py.
_TEXTS = {"tensorboard": ("output_path", "job_name"), "csv_monitor": ("output_path", "job_name")}
# DeepSpeed's names of what autocast computes in, and torch's.
_HALF, _BRAIN = ("float16", "fp16", "half", "torch.float16"), ("bfloat16", "bf16", "torch.bfloat16")
AUTOCAST = {alias: names[0] for names in (_HALF, _BRAIN) for alias in names}


def check(config: Mapping[str, Any], where: str) -> None:
    """Raise CommonMistake for a key or type that is none of DeepSpeed's. where: the file, for the message."""
    _known(config, TOP, where, "")
    for path, words in SECTIONS.items():
        block: Any = config
        for part in path.split("."):
            block = block.get(part, {}) if isinstance(block, dict) else {}
        if not isinstance(block, dict):
            if block is None and "offload" in path:  # as DeepSpeed's own examples have it
                continue
            raise CommonMistake(f"{where}: {path} must be an object, not {block!r}")
        _known(block, words.split(), where, path)
        if not isinstance(block.get("enabled", False), bool):
            raise CommonMistake(f"{where}: {path}.enabled must be true or false, not {block['enabled']!r}")
        for key in _TEXTS.get(path, ()):
            if not isinstance(block.get(key, ""), str):
                raise CommonMistake(f"{where}: {path}.{key} must be a text, not {block[key]!r}")
    dtype = config.get("torch_autocast", {}).get("dtype", "bfloat16")
    if not isinstance(dtype, str) or dtype not in AUTOCAST:
        raise CommonMistake(f"{where}: torch_autocast.dtype {dtype!r} is none of {', '.join(AUTOCAST)}")
    _check_top(config, where)
    for section, types in (("optimizer", OPTIMIZERS), ("scheduler", SCHEDULERS)):
        if section in config:
            _check_type(config[section], section, types, where)


def _check_top(config: Mapping[str, Any], where: str) -> None:
    for keys, right, wanted in (
        (_OBJECTS, lambda value: isinstance(value, dict), "an object"),
        (_SWITCHES, lambda value: isinstance(value, bool), "true or false"),
        (_NUMBERS, lambda value: _is_number(value) and value >= 0, "a number of at least 0"),
    ):
        for key in keys.split():
            if config.get(key) is not None and not right(config[key]):
                raise CommonMistake(f"{where}: {key} must be {wanted}, not {config[key]!r}")


def _check_type(block: Mapping[str, Any], section: str, types: Mapping[str, str], where: str) -> None:
    kind, params = block.get("type"), block.get("params", {})
    if not isinstance(kind, str):
        raise CommonMistake(f"{where}: {section} has no type; there are {', '.join(types)}")
    if not isinstance(params, dict):
        raise CommonMistake(f"{where}: {section}.params must be an object, not {params!r}")
    if section == "scheduler" and is_own(kind):
        return
    name = kind.lower() if section == "optimizer" else kind
    if name in GONE:
        raise CommonMistake(f"{where}: {section}.type {kind!r}: {GONE[name]}")
    if name not in types:
        raise CommonMistake(
            f"{where}: {section}.type {kind!r} is none of {', '.join(types)}{suggestion(name, types)}"
        )
    _known(params, types[name].split(), where, f"{section}.params of {kind}")
    for key in REQUIRED.get(kind, ()):
        if key not in params:
            raise CommonMistake(f"{where}: {section}.params of {kind} needs {key}")
    for key, value in params.items():
        wanted = _wanted(key, value, least=0 if section == "optimizer" else -math.inf)
        if wanted:
            raise CommonMistake(f"{where}: {section}.params.{key} must be {wanted}, not {value!r}")


def _wanted(key: str, value: Any, least: float) -> str:
    """What the value of an optimizer's or a schedule's parameter must be; '' if it is that."""
    if key in FLAGS:
        return "" if isinstance(value, bool | None) else "true or false"
    if key in WORDS:
        return "" if value in WORDS[key] else " or ".join(map(repr, WORDS[key]))
    if key == "betas":
        pair = isinstance(value, list) and len(value) == 2
        return "" if pair and all(_is_number(x) and 0 <= x < 1 for x in value) else "two numbers from 0 to 1"
    if key == "milestones":
        numbers = isinstance(value, list) and value and all(_is_number(x) for x in value)
        return "" if numbers else "a list of numbers"
    if not _is_number(value):
        return "one number"
    if key in DIVISORS and value <= 0:
        return "above 0"
    return "" if value >= least else f"at least {least}"


def _is_number(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _known(block: Mapping[str, Any], allowed: Any, where: str, path: str) -> None:
    for key in block:
        if key in allowed:
            continue
        gone = GONE.get("mics" if key.startswith("mics_") else key)
        if gone:
            raise CommonMistake(f"{where}: {path + '.' if path else ''}{key}: {gone}")
        inside = f" in {path}" if path else ""
        raise CommonMistake(f"{where}: DeepSpeed has no key {key!r}{inside}{suggestion(key, allowed)}")


def named(file: Path) -> str:
    """The file as messages name it."""
    return f"--deepspeed_config {file}"
