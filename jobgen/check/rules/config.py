"""Rules about the DeepSpeed config that a script names, where it lies beside the script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from jobgen.check.bash import literal
from jobgen.check.rule import ERROR, WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.errors import nearest

_OPTIONS = ("--deepspeed_config", "--deepspeed-config", "--ds_config", "--deepspeed")
_LARGEST = 1_000_000
# DeepSpeed 0.19's top-level keys: it accepts any other in silence.
_KEYS = frozenset(
    [
        "activation_checkpointing",
        "aio",
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
        "data_types",
        "dataloader_drop_last",
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
_GONE = {"elasticity": "0.19.8", "sparse_attention": "0.19.7"}
_TESTED = ("adam", "adamw", "lamb", "adagrad", "lion", "muon")
_ONE_BIT = ("onebitadam", "onebitlamb", "zerooneadam")


def _config(script: Script) -> tuple[int, str, Any] | None:
    """The line that names a config, its name and what it holds: a dict, or why it cannot be read."""
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
    try:
        with open(path, encoding="utf-8") as file:
            return json.loads(file.read(_LARGEST))
    except OSError:
        return None  # it may be made later, or lie elsewhere
    except (ValueError, RecursionError) as error:
        return str(error)


def _dict(script: Script) -> tuple[int, str, dict[str, Any]] | None:
    found = _config(script)
    return (found[0], found[1], found[2]) if found and isinstance(found[2], dict) else None


def _on(config: dict[str, Any], name: str) -> bool:
    block = config.get(name)
    return isinstance(block, dict) and block.get("enabled") in (True, "auto") and block.get("enabled") is True


def _stage(config: dict[str, Any]) -> int:
    block = config.get("zero_optimization")
    stage = block.get("stage", 0) if isinstance(block, dict) else 0
    return stage if isinstance(stage, int) else 0


def not_json(script: Script) -> Iterator[Hit]:
    found = _config(script)
    if found and isinstance(found[2], str):
        yield Hit(found[0], f"{found[1]} is not valid JSON: {found[2]}", "correct the file")


def batch(script: Script) -> Iterator[Hit]:
    found = _dict(script)
    world = _world(script)
    if not found or not world:
        return
    line, name, config = found
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    total, micro, steps = (_whole(config.get(key)) for key in names)
    if any(config.get(key) is not None and _whole(config[key]) is None for key in names):
        return  # "auto"
    if total and micro and steps and total != micro * steps * world:
        yield Hit(
            line,
            f"{name}: train_batch_size is {total}, but {micro} x {steps} accumulation steps x {world} "
            f"ranks = "
            f"{micro * steps * world}: every rank fails at deepspeed.initialize",
            "leave one of the three out, and DeepSpeed works it out",
        )
    elif total and (other := micro or steps) and not (micro and steps) and total % (other * world):
        yield Hit(
            line,
            f"{name}: train_batch_size {total} is no multiple of {other} x {world} ranks",
            f"choose a multiple of {other * world}",
        )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _world(script: Script) -> int | None:
    """The number of ranks, where the request says it and no pipeline or other parallelism divides them."""
    asked = script.request
    text = script.tree.text
    if re.search(r"pipeline|tensor.?model.?parallel|--tp|--pp|sequence.?parallel", text, re.I):
        return None
    nodes = asked.nodes or (1 if script.scheduler == "slurm" and not asked.ranks else None)
    if not script.is_batch or not nodes or len(asked.chunks) > 1:
        return None
    each = next(
        (
            one.number("--nproc-per-node", "--num-gpus")
            for one in script.launches
            if one.has("--nproc-per-node", "--num-gpus")
        ),
        None,
    )
    each = each or asked.gpus_per_node
    return nodes * each if each else None


def precisions(script: Script) -> Iterator[Hit]:
    if found := _dict(script):
        line, name, config = found
        half = _on(config, "fp16")
        if half and (_on(config, "bf16") or _on(config, "bfloat16")):
            yield Hit(line, f"{name}: fp16 and bf16 are both on", "switch one of them off")
        if half and _stage(config) == 0:
            yield Hit(
                line,
                f"{name}: fp16 at ZeRO stage 0 divides the gradients by a loss scale that the loss never got",
                "set zero_optimization.stage to 1, or use bf16",
                WARNING,
            )


def amp(script: Script) -> Iterator[Hit]:
    if found := _dict(script):
        line, name, config = found
        other = next(
            (key for key in ("fp16", "bf16") if _on(config, key)), "ZeRO" if _stage(config) else None
        )
        if _on(config, "amp") and other:
            yield Hit(
                line,
                f"{name}: amp goes with neither fp16, bf16 nor ZeRO; here is {other}, too",
                "keep one of them",
            )


def optimizer(script: Script) -> Iterator[Hit]:
    if not (found := _dict(script)):
        return
    line, name, config = found
    block = config.get("optimizer")
    kind = str(block.get("type", "")).lower() if isinstance(block, dict) else ""
    if kind in _ONE_BIT:
        yield Hit(line, f"{name}: the 1-bit optimizers have left DeepSpeed with 0.19.7", "use Adam")
    elif kind and _stage(config) and kind not in _TESTED and not config.get("zero_allow_untested_optimizer"):
        yield Hit(
            line,
            f"{name}: DeepSpeed has not tested {kind} with ZeRO, and refuses it",
            'add "zero_allow_untested_optimizer": true',
        )


def keys(script: Script) -> Iterator[Hit]:
    if found := _dict(script):
        line, name, config = found
        for key in config:
            if key in _GONE:
                yield Hit(line, f"{name}: {key} has left DeepSpeed with {_GONE[key]}", "take it out")
            elif key not in _KEYS and (hint := nearest(key, _KEYS, cutoff=0.75)):
                yield Hit(
                    line,
                    f"{name}: DeepSpeed has no key {key}, and ignores it in silence{hint}",
                    "correct the name",
                )


RULES = (
    Rule("config-json", ERROR, "A DeepSpeed config that is no JSON", not_json),
    Rule("config-batch", ERROR, "Batch sizes that do not multiply", batch),
    Rule("config-precision", ERROR, "Precisions that exclude each other", precisions),
    Rule("config-amp", ERROR, "AMP with ZeRO or another precision", amp),
    Rule("config-optimizer", ERROR, "An optimizer that ZeRO refuses", optimizer),
    Rule("config-key", ERROR, "A key that DeepSpeed ignores", keys),
)
