"""--engine ddp: plain torch. Does not import torch."""

from collections.abc import Iterator

from .deepspeed import origin
from .deepspeed.query import Config, optimizer_name
from .engine import EngineSpec
from .settings import Settings


def _reasons(config: Config, settings: Settings) -> Iterator[str]:
    stage = config["zero_optimization"]["stage"]
    if stage:
        yield f"ZeRO stage {stage} needs --engine deepspeed: plain torch keeps all states on every rank"
    yield from optimizer_reasons(config, settings)


def optimizer_reasons(config: Config, settings: Settings) -> Iterator[str]:
    """Yield the reason why plain torch does not have the optimizer."""
    name = optimizer_name(config)
    if name in ("lamb", "lion"):
        optimizer = origin.name(settings, "optimizer.type")
        yield f"{optimizer} {name} needs --engine deepspeed: plain torch does not have it for all parameters"


SPEC = EngineSpec(
    name="ddp",
    implementation="ddp:DdpEngine",
    layout="one file",
    options=("static_graph", "bucket_mb"),
    replicated=True,
    adapters=True,
    compiles=True,
    async_saves=True,
    no_experts="its expert layer is DeepSpeed's",
    reasons=_reasons,
)
