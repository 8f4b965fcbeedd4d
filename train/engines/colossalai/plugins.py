"""ColossalAI's optimizer and plug-ins, for the settings of a run.

The plug-ins are used as in ColossalAI's own examples, except for settings whose defaults suit models of
billions of weights. The compiled HybridAdam, for CUDA, has never been run here.
"""

from typing import Any

import torch

from ...config.deepspeed.query import Config, optimizer_name, precision
from ...errors import BadInput
from ..base import Job


def optimizer(colossalai: Any, job: Job) -> torch.optim.Optimizer:
    """Return HybridAdam, or torch's SGD. As in DeepSpeed, Adam is AdamW unless adam_w_mode is false.

    Raise BadInput if HybridAdam cannot be made for this device.
    """
    name, params = optimizer_name(job.config), dict(job.config["optimizer"]["params"])
    params.setdefault("lr", 0.001)
    for foreign in ("torch_adam", "fp32_optimizer_states"):
        params.pop(foreign, None)
    adamw = params.pop("adam_w_mode", True) or name == "adamw"
    # The model must be on its device before the parameters are divided into shards.
    job.model.to(job.device.torch)
    if name == "sgd":
        return torch.optim.SGD(job.model.parameters(), **params)
    try:
        adam: torch.optim.Optimizer = colossalai.nn.optimizer.HybridAdam(
            job.model.parameters(), adamw_mode=adamw, **params
        )
    except (AssertionError, ImportError, OSError, RuntimeError) as error:
        reason = (str(error) or type(error).__name__).partition("\n")[0]
        raise BadInput(
            f"ColossalAI's HybridAdam cannot be made for this {job.device.kind} device: it compiles "
            f"kernels with the CUDA toolkit of CUDA_HOME; its error: {reason}"
        ) from None
    return adam


def plugin(colossalai: Any, job: Job) -> Any:
    """Return the plug-in for this model and device."""
    kinds, on_cpu = colossalai.booster.plugin, job.device.kind == "cpu"
    clip = float(job.config.get("gradient_clipping", 0))
    if job.plugin.startswith("torch_ddp"):
        return kinds.TorchDDPPlugin()
    scale = {_SCALE[key]: value for key, value in loss_scale(job.config).items()}
    # ColossalAI's loss scale starts at 2**32, so that the first dozens of steps would be skipped.
    common = {"precision": precision(job.config), "max_norm": clip, **scale}
    if job.plugin == "low_level_zero":
        stage = job.config["zero_optimization"]["stage"]
        return kinds.LowLevelZeroPlugin(stage=stage, overlap_communication=not on_cpu, **common)
    # Up to min_chunk_size_m (32) million weights, gemini would shard nothing. It would then multiply the
    # gradients of all passes of a step but the last by the number of ranks (0.5.0, chunk/manager.py).
    millions = sum(p.numel() for p in job.model.parameters()) / 2**20
    return kinds.GeminiPlugin(
        placement_policy="static",  # the only policy for NPUs
        min_chunk_size_m=min(32.0, millions / 4),
        search_range_m=min(32.0, millions / 4),
        enable_gradient_accumulation=job.config["gradient_accumulation_steps"] > 1,
        enable_async_reduce=not on_cpu,
        pin_memory=not on_cpu,
        **common,
    )


_SCALE = {"init_scale": "initial_scale", "growth_interval": "growth_interval"}


def loss_scale(config: Config) -> dict[str, Any]:
    """Return torch's arguments for loss scaling in fp16, from DeepSpeed's block or its defaults."""
    block = config.get("fp16", {})
    return {
        "init_scale": 2.0 ** block.get("initial_scale_power", 16),
        "growth_interval": block.get("loss_scale_window", 1000),
    }
