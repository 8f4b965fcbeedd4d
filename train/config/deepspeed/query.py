"""Values in DeepSpeed's config dict. Does not import torch."""

from typing import Any

Config = dict[str, Any]

# The precision blocks of the config, and the corresponding values of --precision.
PRECISION_BLOCKS = {"fp16": "fp16", "bf16": "bf16", "torch_autocast": "autocast"}


def enabled(config: Config, section: str) -> bool:
    """Return whether an optional section of the config is enabled."""
    return bool(config.get(section, {}).get("enabled"))


def learning_rate(config: Config) -> float:
    """Return the optimizer's learning rate, before any schedule. DeepSpeed's default is 0.001."""
    return float(config["optimizer"]["params"].get("lr", 0.001))


def optimizer_name(config: Config) -> str:
    """Return the optimizer's type in lower case, as DeepSpeed compares it."""
    return str(config["optimizer"].get("type", "")).lower()


def precision(config: Config) -> str:
    """Return the config's precision, as a value of --precision or 'pure-bf16'."""
    if config.get("bf16", {}).get("enabled"):
        return "pure-bf16" if config["bf16"].get("bf16_master_weights_and_grads") else "bf16"
    if config.get("fp16", {}).get("enabled"):
        return "fp16"
    autocast = config.get("torch_autocast", {})
    if autocast.get("enabled"):
        return "autocast-fp16" if autocast.get("dtype") == "float16" else "autocast"
    return "fp32"


def clips_the_update(config: Config) -> bool:
    """Return whether DeepSpeed 0.19.8 would clip the optimizer's final update, not the gradients."""
    return bool(config["zero_optimization"]["stage"]) and optimizer_name(config) == "muon"
