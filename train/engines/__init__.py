"""The engine: what trains a model on all ranks. The loop knows only the protocol.

ddp.py is plain torch, deepspeed.py DeepSpeed's data parallelism with ZeRO and experts, pipeline.py its
pipeline, colossalai.py ColossalAI's plug-ins. Another one is a file of its own and a line in `build`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import distributed, nn

from .. import models
from ..config import Settings, plugins
from ..config.batches import stages_of
from ..config.recipe import Recipe
from ..config.schedules import Plan
from ..data import Data
from ..device import Device
from ..ranks import Ranks
from .ema import Average

Save = Callable[[Any, Path], None]


class Micro(NamedTuple):
    """One forward pass on the device: floats [n, channels, height, width], labels [n], of which the
    first `real` count."""

    images: torch.Tensor
    labels: torch.Tensor
    real: int


class Share(NamedTuple):
    """Which samples are this rank's: the rank-th of `size` parts. The stages of a pipeline share one."""

    rank: int
    size: int


class Part(NamedTuple):
    """Which part of the model is this rank's, counted from 0: a stage of the pipeline, or a share of the
    experts. Of the ranks with the same part, one writes it."""

    number: int
    writes: bool


class Evaluator(Protocol):
    """Every method is called on all ranks, the same number of times."""

    share: Share

    def evaluating(self) -> AbstractContextManager[None]:
        """Around calls of `predict`: the weights to evaluate are in place."""

    def predict(self, images: torch.Tensor) -> torch.Tensor | None:
        """Logits [n, classes], without gradients; None where another rank has them and counts them."""


class Engine(Evaluator, Protocol):
    """What can train, too."""

    part: Part
    module: nn.Module
    average: Average | None

    def train_step(self, micro_batches: Sequence[Micro], total: int) -> torch.Tensor:
        """One optimizer step on the mean loss of `total` samples over all ranks.

        Returns the summed loss of the samples that this rank counts, fp32, on the device.
        """

    def learning_rate(self) -> float:
        """Of the next step."""

    def gradient_norm(self) -> float | None:
        """The 2-norm of the last step's gradients over all ranks; None where it was not computed."""

    def end_epoch(self) -> None:
        """Called once after each epoch's last step."""

    def save(self, directory: Path, save: Save, client: dict[str, Any]) -> None:
        """Write what this rank must write of model, optimizer, schedule and loss scale, below `directory`
        by save(state, file); client: numbers for whoever reads the files with other tools."""

    def load(self, directory: Path, universal: Path | None) -> None:
        """Take back what was saved below `directory`, or, if given, DeepSpeed's universal form of it."""


@dataclass(frozen=True)
class Job:
    """What every engine is made of. config is DeepSpeed's dict, without schedule and amp; micro the most
    samples of a forward pass; schedule attaches the scheduler to an optimizer."""

    model: nn.Module
    config: dict[str, Any]
    schedule: Plan
    device: Device
    ranks: Ranks
    micro: int
    ema: float | None
    stages: int
    partition: str


def build(how: Recipe, schedule: Plan, samples: Data, ranks: Ranks, device: Device) -> Engine:
    """The engine that --engine names, with its model. The process group must be there.

    Raises BadInput for what the model or the device cannot do.
    """
    settings = how.settings
    job = Job(
        model=model(settings, samples, device),
        config={key: value for key, value in how.config.items() if key != "scheduler"},
        schedule=schedule,
        device=device,
        ranks=ranks,
        micro=how.batch.micro,
        ema=settings.ema,
        stages=stages_of(settings, ranks.world_size),
        partition=settings.partition or "parameters",
    )
    # Each imported only if it is the one: DeepSpeed's import takes half a second.
    if settings.engine == "ddp":
        from .ddp import DdpEngine

        return DdpEngine(job)
    if settings.engine == "colossalai":
        from .colossalai import ColossalaiEngine

        return ColossalaiEngine(job, plugins.name(settings))
    if settings.engine == "pipeline":
        from .pipeline import PipelineEngine

        return PipelineEngine(job)
    from .deepspeed import DeepSpeedEngine

    return DeepSpeedEngine(job)


def model(settings: Settings, samples: Data, device: Device) -> nn.Module:
    """With the initial weights that --seed gives, on every rank the same."""
    shape, classes = samples.train.images.shape[1:], len(samples.classes)
    torch.manual_seed(settings.seed)
    if settings.model != "moe":
        return models.build(settings.model, shape, classes)
    from ..models import moe
    from .deepspeed_common import load_deepspeed

    load_deepspeed(device)  # its expert layer is DeepSpeed's
    return moe.build(shape, classes, moe.experts(settings))


@contextmanager
def evaluation(module: nn.Module, average: Average | None, group: Any = None) -> Iterator[None]:
    """Evaluation mode, with the averaged weights if there are any, and the same running statistics on
    all ranks of `group`, each of which has seen other samples."""
    module.eval()
    size = distributed.get_world_size(group)
    if size > 1:
        for buffer in module.buffers():
            if buffer.is_floating_point():
                distributed.all_reduce(buffer, group=group)
                buffer /= size
    with average.in_place() if average else _nothing():
        yield
    module.train()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def padded(micro: Micro, rows: int) -> Micro:
    """`micro` with its samples repeated to `rows`, for layers that exchange equal shapes among ranks."""
    have = len(micro.labels)
    if have >= rows:
        return micro
    again = torch.arange(rows, device=micro.labels.device) % have
    return Micro(micro.images[again], micro.labels[again], micro.real)


def loss_of(model: nn.Module, logits: torch.Tensor, labels: torch.Tensor, real: int) -> torch.Tensor:
    """Summed over the first `real` samples, with the model's own addition to the loss of its last forward
    pass, per sample, where it has a method auxiliary_loss()."""
    if real < len(labels):
        logits, labels = logits[:real], labels[:real]
    loss = models.summed_loss(logits, labels)
    own = getattr(model, "auxiliary_loss", None)
    return loss if own is None else loss + real * own()
