"""The keys of DeepSpeed's config, by section. Does not import torch.

schema.json is the schema of the config, which tools/write_deepspeed_schema.py writes from DeepSpeed's own
models. DeepSpeed silently ignores unknown top-level keys. In sections it ignores some and rejects others,
with the traceback of a validator on every rank. Here, each unknown key is reported in one sentence before the
run starts.
"""

import json
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import CommonMistake, suggestion
from ..converters import REMOVALS, is_own
from . import values
from .query import Config
from .values import Schema

SCHEMA = Path(__file__).with_name("schema.json")


@cache
def schema() -> Schema:
    """Return the schema of DeepSpeed's config. Its title is the version of DeepSpeed."""
    result: Schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return result


def check(config: Config, where: str) -> Config:
    """Return the config as DeepSpeed reads it. where: the file, for messages.

    Raise CommonMistake for an unknown key or an invalid value.
    """
    zero = config.get("zero_optimization")
    if isinstance(zero, bool):  # DeepSpeed's first form of this section
        zero = {"stage": int(zero), "allgather_bucket_size": config.get("allgather_size", 500_000_000)}
        config = {**config, "zero_optimization": zero}
    config = _section(config, schema(), where, "")
    for section, types in schema()["$defs"].items():
        if section in config:
            _check_type(config[section], section, types, where)
    return config


def _section(block: Config, part: Schema, where: str, path: str) -> Config:
    """Return a section of the file with its values as DeepSpeed's models convert them.

    The models are the sections without additional properties. 'auto' becomes their default.
    """
    model = part.get("additionalProperties") is False
    _check_names(block, part["properties"], where, path)
    result = {}
    for key, value in block.items():
        full = f"{path}.{key}" if path else key
        if model and value == "auto":
            continue
        value = _value(value, part["properties"][key], model, where, full)
        useless, reason = values.USELESS.get(full, (None, ""))
        if useless and useless(value):
            raise CommonMistake(f"{where}: {full}: {reason}")
        if path or value is not None:
            result[key] = value
    return result


def _value(value: Any, part: Schema, model: bool, where: str, full: str) -> Any:
    sections = [one for one in part.get("anyOf", [part]) if "properties" in one]
    if sections and isinstance(value, dict):
        return _section(value, sections[0], where, full)
    try:
        return values.read(value, part, model)
    except ValueError as error:
        raise CommonMistake(f"{where}: {full} must be {error}, not {value!r}") from None


def _check_type(block: Config, section: str, types: Mapping[str, Schema], where: str) -> None:
    kind, params = block.get("type"), block.get("params", {})
    if not isinstance(kind, str):
        raise CommonMistake(f"{where}: {section} has no type: use one of {', '.join(types)}")
    if not isinstance(params, dict):
        raise CommonMistake(f"{where}: {section}.params must be an object, not {params!r}")
    if section == "scheduler" and is_own(kind):
        return
    name = kind.lower() if section == "optimizer" else kind
    if name in REMOVALS:
        raise CommonMistake(f"{where}: {section}.type {kind!r}: {REMOVALS[name]}")
    if name not in types:
        raise CommonMistake(
            f"{where}: {section}.type {kind!r} is not one of {', '.join(types)}{suggestion(name, types)}"
        )
    path, parameters = f"{section}.params", types[name]["properties"]
    _check_names(params, parameters, where, f"{path} of {kind}")
    for key in types[name]["required"]:
        if key not in params:
            raise CommonMistake(f"{where}: {path} of {kind} needs {key}")
    for key, value in params.items():
        _value(value, parameters[key], False, where, f"{path}.{key}")


def _check_names(block: Mapping[str, Any], allowed: Collection[str], where: str, path: str) -> None:
    for key in block:
        if key in allowed:
            continue
        removal = values.removal(key)
        if removal:
            raise CommonMistake(f"{where}: {path + '.' if path else ''}{key}: {removal}")
        inside = f" in {path}" if path else ""
        raise CommonMistake(
            f"{where}: {schema()['title']} has no key {key!r}{inside}{suggestion(key, allowed)}"
        )


def label(file: Path) -> str:
    """Return the name of the file for messages."""
    return f"--deepspeed_config {file}"
