"""The protocol by which the loop uses an engine, and functions that several engines share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import distributed, nn

from .. import models
from ..config.schedules import Plan
from ..device import Device
from ..ranks import Ranks
from .ema import Average

Save = Callable[[Any, Path], None]


class Micro(NamedTuple):
    """The samples of one forward pass, on the device.

    images: floats [n, channels, height, width]; labels: [n]; real: only the first `real` samples are counted
    """

    images: torch.Tensor
    labels: torch.Tensor
    real: int


class Share(NamedTuple):
    """The samples of this rank: part `rank` of `size` parts. The stages of a pipeline have the same share."""

    rank: int
    size: int


class Part(NamedTuple):
    """The part of the model that this rank holds: a stage of the pipeline, or a share of the experts.

    number: index of the part, from 0; writes: whether this rank saves the part. One of the ranks with the
    same part does.
    """

    number: int
    writes: bool


class Evaluator(Protocol):
    """The interface for an evaluation. All ranks call every method, the same number of times."""

    share: Share

    def evaluating(self) -> AbstractContextManager[None]:
        """Return a context for calls of `predict`, in which the weights to evaluate are in place."""

    def predict(self, images: torch.Tensor) -> torch.Tensor | None:
        """Return the logits [n, classes], without gradients; None if another rank counts these samples."""


class Engine(Evaluator, Protocol):
    """The interface for training and evaluation."""

    part: Part
    module: nn.Module
    average: Average | None

    def train_step(self, micro_batches: Sequence[Micro], total: int) -> torch.Tensor:
        """Do one optimizer step on the mean loss of `total` samples over all ranks.

        Return the sum of the losses of the samples that this rank counts, in fp32, on the device.
        """

    def learning_rate(self) -> float:
        """Return the learning rate of the next step."""

    def gradient_norm(self) -> float | None:
        """Return the 2-norm of the last step's gradients over all ranks; None if it was not computed."""

    def end_epoch(self) -> None:
        """Called once after the last step of each epoch."""

    def save(self, directory: Path, save: Save, client: dict[str, Any]) -> None:
        """Write this rank's part of model, optimizer, schedule and loss scale below `directory`.

        save: a function save(state, file) that writes one file; client: numbers for other tools that read the
        files
        """

    def load(self, directory: Path, universal: Path | None) -> None:
        """Load what was saved below `directory`, or its universal form (of DeepSpeed) if that is given."""


@dataclass(frozen=True)
class Job:
    """The arguments of every engine.

    config: DeepSpeed's dict, without schedule and amp; schedule: attaches the scheduler to an optimizer;
    micro: maximum number of samples of a forward pass; plugin: '' for engines without plug-ins
    """

    model: nn.Module
    config: dict[str, Any]
    schedule: Plan
    device: Device
    ranks: Ranks
    micro: int
    ema: float | None
    stages: int
    partition: str
    plugin: str


@contextmanager
def evaluation(module: nn.Module, average: Average | None, group: Any = None) -> Iterator[None]:
    """Set the model to evaluation mode within the context, with the averaged weights if there are any.

    The running statistics are averaged over the ranks of `group`, because each rank has seen other samples.
    """
    module.eval()
    size = distributed.get_world_size(group)
    if size > 1:
        for buffer in module.buffers():
            if buffer.is_floating_point():
                distributed.all_reduce(buffer, group=group)
                buffer /= size
    with average.in_place() if average else nullcontext():
        yield
    module.train()


def padded(micro: Micro, rows: int) -> Micro:
    """Repeat the samples of `micro` up to `rows`, for layers that exchange equal shapes among ranks."""
    have = len(micro.labels)
    if have >= rows:
        return micro
    again = torch.arange(rows, device=micro.labels.device) % have
    return Micro(micro.images[again], micro.labels[again], micro.real)


def loss_of(model: nn.Module, logits: torch.Tensor, labels: torch.Tensor, real: int) -> torch.Tensor:
    """Return the loss, summed over the first `real` samples.

    If the model has a method auxiliary_loss(), the result, a loss per sample of the last forward pass, is
    added.
    """
    if real < len(labels):
        logits, labels = logits[:real], labels[:real]
    loss = models.summed_loss(logits, labels)
    own = getattr(model, "auxiliary_loss", None)
    return loss if own is None else loss + real * own()
