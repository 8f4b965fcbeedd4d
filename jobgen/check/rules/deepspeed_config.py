"""Rules about the DeepSpeed config that a script names, if the file can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.dsconfig import KEYS, contents, find, is_on, whole, zero_stage
from jobgen.check.rule import ERROR, WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.errors import nearest

_GONE = {"elasticity": "0.19.8", "sparse_attention": "0.19.7"}
_TESTED = ("adam", "adamw", "lamb", "adagrad", "lion", "muon")
_ONE_BIT = ("onebitadam", "onebitlamb", "zerooneadam")


def not_json(script: Script) -> Iterator[Hit]:
    found = find(script)
    if found and isinstance(found[2], str):
        yield Hit(found[0], f"{found[1]} is not valid JSON: {found[2]}", "correct the file")


def batch(script: Script) -> Iterator[Hit]:
    found = contents(script)
    world = _world(script)
    if not found or not world:
        return
    line, name, config = found
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    total, micro, steps = (whole(config.get(key)) for key in names)
    if any(config.get(key) is not None and whole(config[key]) is None for key in names):
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


def _world(script: Script) -> int | None:
    """Return the number of ranks, if the request determines it and no model parallelism divides them."""
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
    if found := contents(script):
        line, name, config = found
        half = is_on(config, "fp16")
        if half and (is_on(config, "bf16") or is_on(config, "bfloat16")):
            yield Hit(line, f"{name}: fp16 and bf16 are both on", "switch one of them off")
        if half and zero_stage(config) == 0:
            yield Hit(
                line,
                f"{name}: fp16 at ZeRO stage 0 divides the gradients by a loss scale that the loss never got",
                "set zero_optimization.stage to 1, or use bf16",
                WARNING,
            )


def amp(script: Script) -> Iterator[Hit]:
    if found := contents(script):
        line, name, config = found
        other = next(
            (key for key in ("fp16", "bf16") if is_on(config, key)), "ZeRO" if zero_stage(config) else None
        )
        if is_on(config, "amp") and other:
            yield Hit(
                line,
                f"{name}: amp goes with neither fp16, bf16 nor ZeRO; here is {other}, too",
                "keep one of them",
            )


def pipeline(script: Script) -> Iterator[Hit]:
    if found := contents(script):
        line, name, config = found
        block = config.get("pipeline")
        stages = block.get("stages") if isinstance(block, dict) else None
        if isinstance(stages, int) and stages > 1 and zero_stage(config) > 1:
            yield Hit(
                line,
                f"{name}: a pipeline goes with ZeRO 0 and 1 only; here is stage {zero_stage(config)}",
                "set zero_optimization.stage to 1",
            )


def optimizer(script: Script) -> Iterator[Hit]:
    if not (found := contents(script)):
        return
    line, name, config = found
    block = config.get("optimizer")
    kind = str(block.get("type", "")).lower() if isinstance(block, dict) else ""
    if kind in _ONE_BIT:
        yield Hit(line, f"{name}: the 1-bit optimizers have left DeepSpeed with 0.19.7", "use Adam")
    elif (
        kind
        and zero_stage(config)
        and kind not in _TESTED
        and not config.get("zero_allow_untested_optimizer")
    ):
        yield Hit(
            line,
            f"{name}: DeepSpeed has not tested {kind} with ZeRO, and refuses it",
            'add "zero_allow_untested_optimizer": true',
        )


def keys(script: Script) -> Iterator[Hit]:
    if found := contents(script):
        line, name, config = found
        for key in config:
            if key in _GONE:
                yield Hit(line, f"{name}: {key} has left DeepSpeed with {_GONE[key]}", "take it out")
            elif key not in KEYS and (hint := nearest(key, KEYS, cutoff=0.75)):
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
    Rule("config-pipeline", ERROR, "ZeRO 2 or 3 with a pipeline", pipeline),
    Rule("config-optimizer", ERROR, "An optimizer that ZeRO refuses", optimizer),
    Rule("config-key", ERROR, "A key that DeepSpeed ignores", keys),
)
