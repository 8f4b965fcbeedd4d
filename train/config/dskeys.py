"""The keys of DeepSpeed 0.19's config, by section. Does not import torch.

DeepSpeed silently ignores unknown top-level keys. In sections it ignores some and rejects others, with the
traceback of a validator on every rank. Here, each unknown key is reported in one sentence before the run
starts.
"""

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..errors import CommonMistake, suggestion
from . import dsvalues
from .converters import GONE, is_own

_TOP = """
activation_checkpointing aio amp autotuning bf16 bfloat16 checkpoint comet comms_logger
communication_data_type compile csv_monitor data_efficiency data_types dataloader_drop_last
disable_allgather disable_python_gc dump_state expert_parallel flops_profiler fp16
gradient_accumulation_steps gradient_allreduce_op gradient_clipping gradient_predivide_factor hybrid_engine
log_level managed_gradient_accumulation memory_breakdown optimizer pipeline prescale_gradients scheduler
seq_parallel_communication_data_type steps_per_print tensor_parallel
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
    "checkpoint.parallel_write": "pipeline_stage",
    "data_types": "grad_accum_dtype param_dtype buffer_dtype keep_in_fp32_modules",
    "timers": "throughput",
    "timers.throughput": "enabled synchronized",
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
    # Not in DeepSpeed: our own, with torch's names.
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
# Parameters that a schedule requires.
REQUIRED = {"MultiStepLR": ("milestones",), "OneCycle": ("cycle_min_lr", "cycle_max_lr")}


def check(config: Mapping[str, Any], where: str) -> None:
    """Raise CommonMistake for an unknown key or an invalid value. where: the file, for the message."""
    _check_block(config, TOP, where, "")
    for path, words in SECTIONS.items():
        block: Any = config
        for part in path.split("."):
            block = block.get(part, {}) if isinstance(block, dict) else {}
        if not isinstance(block, dict):
            if block is None and "offload" in path:  # null, as in DeepSpeed's own examples
                continue
            raise CommonMistake(f"{where}: {path} must be an object, not {block!r}")
        _check_block(block, words.split(), where, path)
    for section, types in (("optimizer", OPTIMIZERS), ("scheduler", SCHEDULERS)):
        if section in config:
            _check_type(config[section], section, types, where)


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
    path = f"{section}.params"
    _known(params, types[name].split(), where, f"{path} of {kind}")
    for key in REQUIRED.get(kind, ()):
        if key not in params:
            raise CommonMistake(f"{where}: {path} of {kind} needs {key}")
    _check_values(params, where, path, least=0 if section == "optimizer" else -math.inf)


def _check_block(block: Mapping[str, Any], allowed: Collection[str], where: str, path: str) -> None:
    _known(block, allowed, where, path)
    _check_values(block, where, path)


def _known(block: Mapping[str, Any], allowed: Collection[str], where: str, path: str) -> None:
    for key in block:
        if key in allowed:
            continue
        gone = dsvalues.gone(key)
        if gone:
            raise CommonMistake(f"{where}: {path + '.' if path else ''}{key}: {gone}")
        inside = f" in {path}" if path else ""
        raise CommonMistake(f"{where}: DeepSpeed has no key {key!r}{inside}{suggestion(key, allowed)}")


def _check_values(block: Mapping[str, Any], where: str, path: str, least: float = -math.inf) -> None:
    for key, value in block.items():
        full = f"{path}.{key}" if path else key
        wanted = dsvalues.wrong(path, key, value, least)
        if wanted:
            raise CommonMistake(f"{where}: {full} must be {wanted}, not {value!r}")
        useless, reason = dsvalues.USELESS.get(full, (None, ""))
        if useless and useless(value):
            raise CommonMistake(f"{where}: {full}: {reason}")


def named(file: Path) -> str:
    """Return the name of the file for messages."""
    return f"--deepspeed_config {file}"
