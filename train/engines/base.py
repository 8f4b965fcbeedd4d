"""The protocol by which the loop uses an engine, and functions that several engines share."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import distributed, nn

from .. import loss_functions, trees
from ..config.schedules import Plan
from ..config.speed import CUDA_GRAPHS, Speed
from ..data.feed import Micro, MicroBatches
from ..device import Device
from ..loss_functions import LossSum, Objective
from ..models import lora
from ..ranks import Ranks
from ..trees import Tree
from .ema import Average

Save = Callable[[Any, Path], None]


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

    def evaluation_mode(self) -> AbstractContextManager[None]:
        """Return a context for calls of `predict`, in which the weights to evaluate are in place."""

    def predict(self, inputs: Tree) -> Tree | None:
        """Return the model's outputs, without gradients; None if another rank counts these samples."""


class Engine(Evaluator, Protocol):
    """The interface for training and evaluation."""

    part: Part
    module: nn.Module
    average: Average | None

    def train_step(self, micro_batches: MicroBatches, total: int) -> LossSum:
        """Do one optimizer step on the mean loss of `total` samples over all ranks.

        Iterate over the micro batches, once. Return the sum of the losses of the samples that this rank
        counts, on the device.
        """

    def learning_rate(self) -> float:
        """Return the learning rate of the next step."""

    def gradient_norm(self) -> torch.Tensor | float | None:
        """Return the 2-norm of the last step's gradients over all ranks; None if it was not computed.

        A tensor may be on the device.
        """

    def end_epoch(self) -> None:
        """Called once after the last step of each epoch."""

    def after_evaluation(self, metric: float) -> None:
        """Called after each evaluation with a metric, the same on all ranks, for a schedule that needs it."""

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
    loss: the loss to minimise; micro: maximum number of samples of a forward pass; plugin: '' for engines
    without plug-ins; adapters: checkpoints have only the weights that are trained
    """

    model: nn.Module
    loss: Objective
    config: dict[str, Any]
    schedule: Plan
    device: Device
    ranks: Ranks
    micro: int
    ema: float | None
    stages: int
    partition: str
    plugin: str
    speed: Speed
    adapters: bool = False


class Adapters:
    """The state of a model without the weights that are not trained."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def state_dict(self) -> dict[str, torch.Tensor]:
        state = self._module.state_dict()
        return {name: state[name] for name in lora.trained(self._module)}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        lora.load(self._module, state)


@contextmanager
def evaluation(module: nn.Module, average: Average | None, group: Any = None) -> Iterator[None]:
    """Set the model to evaluation mode within the context, with the averaged weights if there are any.

    Within it, the running statistics are their average over the ranks of `group`, because each rank has seen
    other samples. After it they are what they were: an evaluation does not change the training.
    """
    module.eval()
    size = distributed.get_world_size(group)
    buffers = [(b, b.clone()) for b in module.buffers() if b.is_floating_point()] if size > 1 else []
    for buffer, _ in buffers:
        distributed.all_reduce(buffer, group=group)
        buffer /= size
    with average.in_place() if average else nullcontext():
        yield
    for buffer, before in buffers:
        buffer.copy_(before)
    module.train()


def pad(micro: Micro, samples: int) -> Micro:
    """Repeat the samples of `micro` up to `samples`, for layers that exchange equal shapes among ranks."""
    inputs, targets = (trees.repeat(tree, samples) for tree in micro[:2])
    return micro._replace(inputs=inputs, targets=targets)


def loss_of(module: nn.Module, loss: Objective, outputs: Tree, micro: Micro) -> LossSum:
    """Return the sum of the losses of the samples of `micro` that are counted.

    If the model has a method auxiliary_loss(), the result, a loss per sample of the last forward pass, is
    added.
    """
    result = loss(outputs, micro.targets, micro.real, trees.rows(micro.inputs), micro.factor)
    return loss_functions.of_module(module, result, micro.real)


def value_of(loss: torch.Tensor, speed: Speed) -> torch.Tensor:
    """Return the loss of a pass without its gradient. CUDA graphs write that of the next pass over theirs."""
    return loss.detach().clone() if speed.compile in CUDA_GRAPHS else loss.detach()


def sum_of(losses: list[torch.Tensor]) -> LossSum:
    """Return the sum of the losses of several micro batches."""
    return LossSum(torch.stack(losses).sum() if len(losses) > 1 else losses[0])
