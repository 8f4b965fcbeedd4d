"""Allowed values of the keys of DeepSpeed's config, by key, for all sections. Does not import torch.

DeepSpeed validates some of its sections at the start. It checks the others where it uses them: in the middle
of a run, with a traceback on every rank. Here, each error is reported in one sentence before the run starts.
"""

import math
from collections.abc import Callable
from typing import Any

from .converters import GONE

# Names of dtypes in DeepSpeed and in torch.
_HALF, _BRAIN = ("float16", "fp16", "half", "torch.float16"), ("bfloat16", "bf16", "torch.bfloat16")
_SINGLE = ("float32", "fp32", "float", "torch.float32")
AUTOCAST = {alias: names[0] for names in (_HALF, _BRAIN) for alias in names}
TYPES = (*_SINGLE, *_HALF, *_BRAIN)

_FLAGS = """
adam_w_mode allgather_partitions allgather_sequential amsgrad auto_cast bf16_master_weights_and_grads
bf16_optimizer_states bias_correction check_grad_overflow checkpoint_serialization compute_grad_norm
consecutive_hysteresis contiguous_gradients contiguous_memory_optimization cpu_checkpointing cpu_offload
cpu_offload_param cpu_offload_use_pin_memory cycle_momentum dataloader_drop_last debug detailed
disable_allgather disable_python_gc dump_state elastic_checkpoint enable_sanity_checks enabled
eps_inside_sqrt fast_init foreach fp16_master_weights_and_grads fp32_optimizer_states
gather_16bit_weights_on_model_save gather_fp16_weights_on_model_save grad_partitioned
ignore_unused_parameters immediate_grad_update legacy_fusion legacy_stage1 load_from_fp32_weights
load_universal log_trace_cache_warnings lr_range_test_staircase managed_gradient_accumulation
memory_breakdown memory_efficient_linear nesterov overlap_comm override_module_apply parameter_alignment
partition_activations pin_memory pipe_partitioned pipeline_loading_checkpoint pipeline_read pipeline_stage
pipeline_write prescale_gradients prof_all profile reduce_scatter round_robin_gradients
save_muon_momentum_buffer_in_memory seed_layers super_offload synchronize_checkpoint_boundary synchronized
torch_adam use_all_reduce_for_fetch_params use_data_before_expert_parallelism use_multi_rank_bucket_allreduce
use_node_local_storage use_reentrant verbose wall_clock_breakdown zero_allow_untested_optimizer
zero_force_ds_cpu_optimizer zero_quantized_gradients zero_quantized_nontrainable_weights
zero_quantized_weights
"""
_COUNTS = """
activation_checkpoint_interval allgather_bucket_size buffer_count buffer_size hysteresis initial_scale_power
max_in_cpu max_live_parameters max_reuse_distance min_loss_scale model_persistence_threshold
module_granularity_threshold number_checkpoints param_persistence_threshold prefetch_bucket_size
profile_step sub_group_size vocabulary_size zero_hpz_partition_size
"""
_POSITIVE = (
    "gradient_predivide_factor T_max cycle_first_step_size cycle_second_step_size lr_range_test_step_size"
)
_WHOLE = "loss_scale_window reduce_bucket_size steps_per_print top_modules"
_NUMBERS = "gradient_clipping loss_scale recompute_fwd_factor"
_TEXTS = "group job_name nvme_path output_file output_path partition project team"
_LISTS = "classes lower_precision_safe_modules name_suffixes names prof_ops"
_OBJECTS = """
aio autotuning comet compile data_efficiency expert_parallel hybrid_engine leaf_module parallel_write
tensor_parallel throughput timers weight_quantization zenflow
"""
WORDS: dict[str, tuple[str, ...]] = {
    "communication_data_type": ("fp16", "bf16", "fp32"),
    "seq_parallel_communication_data_type": ("fp16", "bf16", "fp32"),
    "grad_accum_dtype": TYPES,
    "param_dtype": TYPES,
    "buffer_dtype": TYPES,
    "dtype": tuple(AUTOCAST),
    "gradient_allreduce_op": ("mean", "sum"),
    "log_level": ("debug", "info", "warning", "error", "critical"),
    "tag_validation": ("Warn", "Ignore", "Fail"),
    "device": ("none", "cpu", "nvme"),
    "warmup_type": ("log", "linear"),
    "ns_method": ("gram", "standard"),
}
# Keys whose values DeepSpeed compares without regard to case.
_ANY_CASE = ("communication_data_type", "seq_parallel_communication_data_type", "gradient_allreduce_op",
             "log_level", "tag_validation")  # fmt: skip
# Keys that may be null, because null is DeepSpeed's own default.
_NULL = """
buffer_dtype communication_data_type cpu_offload cpu_offload_param cpu_offload_use_pin_memory
fp32_optimizer_states foreach grad_accum_dtype group log_level number_checkpoints nvme_path
offload_optimizer offload_param output_file overlap_comm param_dtype seq_parallel_communication_data_type
team vocabulary_size zenflow
"""
# Sections in which 'auto' is allowed: transformers replaces it, DeepSpeed uses its default.
_AUTO = ("zero_optimization", "fp16", "bf16", "bfloat16")
_SPECIAL = {
    "betas": ("two numbers from 0 to 1", lambda value: _are(value, lambda x: is_number(x) and 0 <= x < 1, 2)),
    "milestones": ("a list of numbers", lambda value: bool(value) and _are(value, is_number)),
    "module_depth": ("a whole number of at least -1", lambda value: _is_whole(value, -1)),
    "ratio": ("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1),
    "cpuadam_cores_perc": ("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1),
    "stages": ("auto or a whole number", lambda value: value == "auto" or _is_whole(value, 1)),
    "keep_in_fp32_modules": (
        "'auto' or a list of texts",
        lambda value: value == "auto" or _are(value, lambda x: isinstance(x, str)),
    ),
}
# Settings that make no sense here: a test of the value, and the reason for the message.
USELESS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "checkpoint.writer": (
        lambda value: value is not None,
        "the files of checkpoints are written otherwise here",
    ),
    "checkpoint.load_universal": (bool, "--resume sees by itself whether the universal form is needed"),
    "data_efficiency": (lambda value: value.get("enabled"), "DeepSpeed does not load the data here"),
    "expert_parallel": (lambda value: value.get("enabled"), "the experts here are those of --model moe"),
    "fp16.auto_cast": (bool, "the images are cast already"),
    "gradient_allreduce_op": (
        lambda value: value.lower() == "sum",
        "'sum' would multiply the gradients by the number of ranks: the losses here are means over all",
    ),
    "hybrid_engine": (lambda value: value.get("enabled"), "it is for models that generate text"),
    "managed_gradient_accumulation": (
        lambda value: not value,
        "the passes of a step are left to DeepSpeed to count here",
    ),
    "pipeline.stages": (lambda value: value != "auto", "DeepSpeed makes no use of it: give --stages"),
    "pipeline.partition": (lambda value: value != "best", "DeepSpeed makes no use of it: give --partition"),
    "tensor_parallel": (lambda value: value.get("autotp_size"), "it is for models of language"),
    "zero_optimization.legacy_stage1": (bool, "the first form of ZeRO 1 left DeepSpeed in 0.5.9"),
}


def wrong(path: str, key: str, value: Any, least: float = -math.inf) -> str:
    """Return a description of what `key` in section `path` must hold, or '' if `value` is valid.

    least: lower bound for a number that no table lists, such as a parameter of an optimizer
    """
    name = key.removeprefix("stage3_")
    if (value is None and name in _NULL.split()) or (value == "auto" and path.partition(".")[0] in _AUTO):
        return ""
    if name in WORDS:
        allowed = WORDS[name]
        given = value.lower() if isinstance(value, str) and name in _ANY_CASE else value
        known = isinstance(given, str) and given in (*allowed, *map(str.lower, allowed))
        return "" if known else "one of " + ", ".join(allowed)
    for names, wanted, good in _KINDS:
        if name in names:
            return "" if good(value) else wanted
    if path.endswith("params"):
        if not is_number(value):
            return "one number"
        return "" if value >= least else f"at least {least}"
    return ""


def gone(key: str) -> str:
    """Return the message about a key that DeepSpeed has removed, or '' for any other key."""
    return GONE.get("mics" if key.startswith("mics_") else key, "")


def is_number(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _is_whole(value: Any, least: int) -> bool:
    return is_number(value) and value == int(value) and value >= least  # JSON reads 5e8 as a float


def _are(value: Any, good: Callable[[Any], bool], count: int | None = None) -> bool:
    return isinstance(value, list) and all(map(good, value)) and count in (None, len(value))


_Kind = tuple[frozenset[str], str, Callable[[Any], bool]]
_KINDS: list[_Kind] = [
    *((frozenset((name,)), wanted, good) for name, (wanted, good) in _SPECIAL.items()),
    (frozenset(_FLAGS.split()), "true or false", lambda value: isinstance(value, bool)),
    (frozenset(_WHOLE.split()), "a whole number above 0", lambda value: _is_whole(value, 1)),
    (frozenset(_POSITIVE.split()), "a number above 0", lambda value: is_number(value) and value > 0),
    (frozenset(_COUNTS.split()), "a whole number of at least 0", lambda value: _is_whole(value, 0)),
    (frozenset(_NUMBERS.split()), "a number of at least 0", lambda value: is_number(value) and value >= 0),
    (frozenset(_TEXTS.split()), "a text", lambda value: isinstance(value, str)),
    (frozenset(_LISTS.split()), "a list of texts", lambda value: _are(value, lambda x: isinstance(x, str))),
    (frozenset(_OBJECTS.split()), "an object", lambda value: isinstance(value, dict)),
]
