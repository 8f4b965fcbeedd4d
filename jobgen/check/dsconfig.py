"""The DeepSpeed config that a script names, if the file can be read."""

from __future__ import annotations

from typing import Any

from jobgen.check.bash import literal
from jobgen.check.script import Script

_OPTIONS = ("--deepspeed_config", "--deepspeed-config", "--ds_config", "--deepspeed")
_LARGEST = 1_000_000
# The top-level keys of DeepSpeed 0.19, which ignores any other key without a message.
KEYS = frozenset(
    [
        "activation_checkpointing",
        "aio",
        "allgather_size",
        "amp",
        "autotuning",
        "bf16",
        "bfloat16",
        "checkpoint",
        "comet",
        "comms_logger",
        "communication_data_type",
        "compile",
        "compression_training",
        "csv_monitor",
        "curriculum_learning",
        "data_efficiency",
        "data_parallel_size",
        "data_types",
        "dataloader_drop_last",
        "datastates_ckpt",
        "disable_allgather",
        "disable_python_gc",
        "dump_state",
        "eigenvalue",
        "expert_parallel",
        "flops_profiler",
        "fp16",
        "gradient_accumulation_steps",
        "gradient_allreduce_op",
        "gradient_clipping",
        "gradient_predivide_factor",
        "hybrid_engine",
        "log_level",
        "managed_gradient_accumulation",
        "memory_breakdown",
        "nebula",
        "optimizer",
        "pipeline",
        "prescale_gradients",
        "progressive_layer_drop",
        "quantize_training",
        "scheduler",
        "seq_parallel_communication_data_type",
        "sequence_parallel_size",
        "sparse_gradients",
        "steps_per_print",
        "tensor_parallel",
        "tensorboard",
        "timers",
        "torch_autocast",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "use_data_before_expert_parallelism",
        "vocabulary_size",
        "wall_clock_breakdown",
        "wandb",
        "weight_quantization",
        "zero_allow_untested_optimizer",
        "zero_force_ds_cpu_optimizer",
        "zero_optimization",
    ]
)


def find(script: Script) -> tuple[int, str, Any] | None:
    """Return the line that names a config, its name, and its content: the JSON value, or the error text."""
    for command in script.commands:
        words = [literal(word) for word in command.arguments]
        for at, word in enumerate(words):
            name, equals, value = (word or "").partition("=")
            if name not in _OPTIONS:
                continue
            file = value if equals else words[at + 1] if at + 1 < len(words) else None
            if file and file.endswith(".json") and (path := script.path(file)):
                return command.arguments[at].line, file, _read(path)
    return None


def _read(path: str) -> Any:
    import json  # late: few scripts name a config

    try:
        with open(path, encoding="utf-8") as file:
            return json.loads(file.read(_LARGEST))
    except OSError:
        return None  # it may be written later, or be in another directory
    except (ValueError, RecursionError) as error:
        return str(error)


def contents(script: Script) -> tuple[int, str, dict[str, Any]] | None:
    found = find(script)
    return (found[0], found[1], found[2]) if found and isinstance(found[2], dict) else None


def is_on(config: dict[str, Any], name: str) -> bool:
    block = config.get(name)
    return isinstance(block, dict) and block.get("enabled") in (True, "auto") and block.get("enabled") is True


def zero_stage(config: dict[str, Any]) -> int:
    block = config.get("zero_optimization")
    stage = block.get("stage", 0) if isinstance(block, dict) else 0
    return stage if isinstance(stage, int) else 0


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
