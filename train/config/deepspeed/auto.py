"""Values "auto" in a DeepSpeed config file, as configs for Hugging Face's Trainer have them.

Such a key counts as not given, so that an option or a default determines it; a note says the value. Does not
import torch.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from .query import Config, learning_rate

AUTO = "auto"
OWN = ("pipeline", "autotuning")  # sections in which "auto" is a value of DeepSpeed itself
RATE = "optimizer.params.lr"
WARMUP, TOTAL = ("scheduler.params.warmup_num_steps", "scheduler.params.total_num_steps")


def split(config: Config) -> tuple[Config, list[str]]:
    """Return the config without the keys whose value is "auto", and their paths, such as 'fp16.enabled'."""
    paths = list(_paths(config))
    return _without(config, "", set(paths)), paths


def _paths(block: Config, above: str = "") -> Iterator[str]:
    for key, value in block.items():
        path = f"{above}{key}"
        if isinstance(value, dict) and path not in OWN:
            yield from _paths(value, f"{path}.")
        elif value == AUTO and key != "type":
            yield path


def _without(block: Config, above: str, paths: set[str]) -> Config:
    return {
        key: _without(value, f"{above}{key}.", paths) if isinstance(value, dict) else value
        for key, value in block.items()
        if f"{above}{key}" not in paths
    }


def fill(config: Config, paths: Sequence[str]) -> list[str]:
    """Set the values that no other function has set in `config`. Return a note on the value of each path.

    The numbers of steps of a schedule remain "auto": they are known when the data is; see merge.schedule.
    """
    paths = [path for path in paths if path.partition(".")[0] in config or "." not in path]
    for path in paths:
        if path.endswith(".enabled"):
            _section(config, path).setdefault("enabled", False)
    values = {
        WARMUP: AUTO,
        TOTAL: AUTO,
        "scheduler.params.warmup_max_lr": learning_rate(config),
        "scheduler.params.warmup_min_lr": 0.0,
    }
    for path in values.keys() & paths:
        _section(config, path)[path.rpartition(".")[2]] = values[path]
    return [f'"auto" in the config file: {path} is {_value(config, path)}' for path in paths]


def _section(config: Config, path: str) -> Config:
    for name in path.split(".")[:-1]:
        config = config.setdefault(name, {})
    return config


def _value(config: Config, path: str) -> str:
    if path == WARMUP:
        return "--warmup-steps, or a tenth of the steps of the run"
    if path == TOTAL:
        return "the number of steps of the run"
    value: Any = config
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return "DeepSpeed's default"
        value = value[name]
    return str(value).lower() if isinstance(value, bool) else str(value)
