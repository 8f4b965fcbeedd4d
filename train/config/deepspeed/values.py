"""Values of DeepSpeed's config, checked against parts of a JSON Schema. Does not import torch.

DeepSpeed validates some of its sections at the start. It checks the others where it uses them: in the middle
of a run, with a traceback on every rank. Here, each error is reported in one sentence before the run starts.
"""

import math
import operator
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..converters import REMOVALS

Schema = dict[str, Any]
# Names of dtypes in DeepSpeed and in torch.
_HALF, _BRAIN = ("float16", "fp16", "half", "torch.float16"), ("bfloat16", "bf16", "torch.bfloat16")
AUTOCAST = {alias: names[0] for names in (_HALF, _BRAIN) for alias in names}


def _enabled(value: Any) -> bool:
    return bool(value and value.get("enabled"))


_OWN_FILES = "the files of checkpoints are written otherwise here"
# Settings that are not supported: a test of the value, and the reason for the message.
USELESS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "checkpoint.writer": (lambda value: value is not None, _OWN_FILES),
    "data_parallel_size": (lambda value: value != 1, "jobgen distributes the data over the ranks"),
    "datastates_ckpt": (lambda value: value is not False, _OWN_FILES),
    "checkpoint.load_universal": (bool, "--resume determines whether the universal form is needed"),
    "data_efficiency": (_enabled, "jobgen loads the data, not DeepSpeed"),
    "expert_parallel": (_enabled, "experts are divided by --experts and --expert-parallel"),
    "fp16.auto_cast": (bool, "the inputs are already cast"),
    "gradient_allreduce_op": (
        lambda value: value.lower() == "sum",
        "'sum' would multiply the gradients by the number of ranks: the loss is a mean over all samples",
    ),
    "hybrid_engine": (_enabled, "it is for training that generates text, which there is not"),
    "managed_gradient_accumulation": (lambda value: not value, "DeepSpeed counts the passes of a step"),
    "pipeline.stages": (lambda value: value != "auto", "DeepSpeed ignores it: use --stages"),
    "pipeline.partition": (lambda value: value != "best", "DeepSpeed ignores it: use --partition"),
    "sequence_parallel_size": (
        lambda value: value != 1,
        "no engine divides a sequence over ranks: use --recompute or a smaller --batch-size",
    ),
    "tensor_parallel": (
        lambda value: value.get("autotp_size", 0) > 1,
        "no engine divides a layer over ranks: use --zero-stage 3 or --engine pipeline",
    ),
    "zero_optimization.legacy_stage1": (bool, "DeepSpeed 0.5.9 removed the first form of ZeRO 1"),
}
_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}
_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "of at least"),
    "exclusiveMinimum": (operator.gt, "above"),
    "maximum": (operator.le, "of at most"),
    "exclusiveMaximum": (operator.lt, "below"),
}
# Texts that pydantic reads as true or false.
_FLAGS = {
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "off", "f", "false", "n", "no"), False),
}


def read(value: Any, schema: Schema, model: bool) -> Any:
    """Return the value as DeepSpeed reads it. Raise ValueError with what it must be.

    model: one of DeepSpeed's pydantic models reads it, which convert texts and numbers
    """
    for one in schema.get("anyOf", [schema]):
        with suppress(TypeError, ValueError):
            return _read(value, one, model)
    raise ValueError(_requirement(schema))


def _read(value: Any, schema: Schema, model: bool) -> Any:
    if "type" in schema:
        value = _convert(value, schema["type"], model)
    if "enum" in schema and not any(value == one and type(value) is type(one) for one in schema["enum"]):
        raise ValueError
    if any(name in schema and not good(value, schema[name]) for name, (good, _) in _BOUNDS.items()):
        raise ValueError
    if not isinstance(value, list):
        return value
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        raise ValueError
    return [read(one, schema.get("items", {}), model) for one in value]


def _convert(value: Any, kind: str, model: bool) -> Any:
    """Return the value as one of a type of JSON Schema. Raise ValueError if it has another type."""
    if kind in ("integer", "number"):
        return _number(value, kind == "integer", model)
    if kind == "boolean" and model and isinstance(value, str | float | int):
        value = _FLAGS.get(str(int(value) if value in (0, 1) else value).lower())
    types = {"array": list, "boolean": bool, "null": type(None), "object": dict, "string": str}
    if not isinstance(value, types[kind]):
        raise ValueError
    return value


def _number(value: Any, whole: bool, model: bool) -> float:
    if model and isinstance(value, str) and whole and not re.fullmatch(r"\s*[+-]?\d+(\.0*)?\s*", value):
        raise ValueError
    if model and isinstance(value, str | bool):
        value = float(value)
    if not is_number(value) or (whole and value != int(value)):
        raise ValueError
    return int(value) if whole else value  # JSON reads 5e8 as a float


def is_number(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _requirement(schema: Schema) -> str:
    if "title" in schema:
        return str(schema["title"])
    if "anyOf" in schema:
        return " or ".join(_requirement(one) for one in schema["anyOf"] if one.get("type") != "null")
    if "enum" in schema:
        words = list({str(word).lower(): str(word) for word in reversed(schema["enum"])}.values())
        return ("one of " if len(words) > 1 else "") + ", ".join(reversed(words))
    of = schema.get("items", {})
    items = f" of {_requirement(of)}{'' if 'enum' in of else 's'}".replace(" of a ", " of ") if of else ""
    bounds = [f" {word} {schema[name]}" for name, (_, word) in _BOUNDS.items() if name in schema]
    return _KINDS[schema["type"]] + items + " and".join(bounds)


def removal(key: str) -> str:
    """Return the message about a key that DeepSpeed has removed, or '' for any other key."""
    return REMOVALS.get("mics" if key.startswith("mics_") else key, "")
