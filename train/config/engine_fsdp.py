"""--engine fsdp: torch's fully sharded data parallelism (FSDP2). Does not import torch."""

from collections.abc import Iterator

from .deepspeed import origin
from .deepspeed.query import Config
from .engine import EngineSpec
from .engine_ddp import optimizer_reasons
from .settings import Settings

CUDA_GRAPHS = ("reduce-overhead", "max-autotune")


def _set_defaults(config: Config, settings: Settings) -> list[str]:
    """Set ZeRO stage 3, unless another one is given: weights, gradients and optimizer states are sharded."""
    zero = config["zero_optimization"]
    if settings.zero_stage is None and not zero["stage"]:
        zero["stage"] = 3
    return []


def _reasons(config: Config, settings: Settings) -> Iterator[str]:
    stage = config["zero_optimization"]["stage"]
    if stage not in (2, 3):
        option = origin.name(settings, "zero_optimization.stage")
        yield (
            f"{option} {stage} is not for --engine fsdp, which always shards weights, gradients and "
            "optimizer states: 3, or 2 to keep gathered weights from the forward to the backward pass; "
            f"--engine {'deepspeed' if stage else 'ddp'} has stage {stage}"
        )
    yield from optimizer_reasons(config, settings)
    if settings.compile in CUDA_GRAPHS:
        yield (
            f"--compile {settings.compile} records CUDA graphs, and --engine fsdp gathers the weights at "
            "changing addresses: use default or max-autotune-no-cudagraphs"
        )


SPEC = EngineSpec(
    name="fsdp",
    implementation="fsdp:FsdpEngine",
    layout="sharded",
    adapters=True,
    any_ranks=True,
    compiles=True,
    async_saves=True,
    casts_weights=True,
    no_experts="its expert layer is DeepSpeed's",
    set_defaults=_set_defaults,
    reasons=_reasons,
)
