"""Where a value of a run's config came from, for messages: an option, the config file, or a default."""

from ..settings import Settings
from .query import PRECISION_BLOCKS, Config, enabled

# The options that are not named like the last part of the path.
OPTIONS = {
    "gradient_clipping": "clip",
    "optimizer.type": "optimizer",
    "scheduler.type": "scheduler",
    "zero_optimization.stage": "zero_stage",
    "zero_optimization.offload_optimizer.device": "offload",
    "zero_optimization.offload_param.device": "offload",
}


def name(settings: Settings, path: str) -> str:
    """Return the option that has set the value at `path`, or the path in the config file or a default."""
    option = OPTIONS.get(path, path.rpartition(".")[2])
    if getattr(settings, option, None) is not None:
        return f"--{option.replace('_', '-')}"
    return f"the config file's {path}" if settings.deepspeed_config else f"the default {path}"


def precision(settings: Settings, config: Config) -> str:
    """Return the option, with its value, or the block of the config that has set the precision."""
    for option, value in (("precision", settings.precision), ("amp", settings.amp)):
        if value is not None:
            return f"--{option} {value}"
    return name(settings, next(block for block in PRECISION_BLOCKS if enabled(config, block)))
