"""DeepSpeed's pipeline: the layers of a model in stages of one rank each, combined with data parallelism.

The model is an nn.Sequential. Every rank builds it whole from the same seed, so that its weights do not
depend on the number of stages, and keeps the layers of its own stage.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, redirect_stdout
from io import StringIO
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from .. import trees
from ..data.feed import Micro, MicroBatches
from ..errors import BadInput, CommonMistake
from ..loss_functions import OF_THE_MODEL, LossSum
from ..trees import Tree, cast
from .base import Job, Part, Share, evaluation
from .batch_norm import normalise_in_fp32
from .deepspeed_common import (
    Common,
    client_optimizer,
    deepspeed_config,
    load_deepspeed,
    mistakes_of_the_config,
)
from .ema import Average


class PipelineEngine(Common):
    """An engine with DeepSpeed's pipeline. The process group must be initialised.

    The stages agree on the shape of a forward pass only once, so every pass must have the same shape. Smaller
    ones are padded. DeepSpeed passes one tensor or a tuple of tensors between the stages; the targets do not
    go through it but wait in the last stage, in the order of the passes, so that they may be any tree.
    """

    def __init__(self, job: Job) -> None:
        layers = _layers(job)
        self._objective = job.loss
        self._shapes = ""  # of the inputs
        self._targets: deque[Micro] = deque()  # without the inputs
        deepspeed = load_deepspeed(job.device)
        from deepspeed.pipe import PipelineModule

        config = deepspeed_config(job.config, job.device, job.model, job.speed.fused)
        with redirect_stdout(StringIO()):  # it prints its seeds and its grid at any log level
            module = _stages(PipelineModule, _specs(layers), job, self._loss)
        _check_stages(layers, module.parts, job)
        parameters = [p for p in module.parameters() if p.requires_grad]
        for parameter in parameters:
            # Without this mark, DeepSpeed clips by the norm of the first stage's gradients only. Of weights
            # that two stages share, it must count one copy.
            parameter.model_parallel = not getattr(parameter, "ds_pipe_replicated", False)
        with mistakes_of_the_config():
            engine, *_ = deepspeed.initialize(
                model=module,
                model_parameters=parameters,
                config=config,
                optimizer=client_optimizer(job.config, module),
                lr_scheduler=job.schedule.attach,
            )
        grid = engine.grid
        super().__init__(engine, grid.get_model_parallel_group())
        self.module = module
        normalise_in_fp32(module)
        self.share = Share(grid.get_data_parallel_rank(), grid.get_data_parallel_world_size())
        self._replicas = grid.get_data_parallel_group()
        self._dtype = next((p.dtype for p in module.parameters()), torch.float32)
        self._rows = job.micro
        self._passes = self.share.size * engine.gradient_accumulation_steps()
        self._factor = 1.0
        self.average = Average(module, job.ema) if job.ema else None
        self.part = Part(engine.stage_id, self.share.rank == 0)

    def train_step(self, micro_batches: MicroBatches, total: int) -> LossSum:
        # As in deepspeed.py: turns DeepSpeed's average over ranks and passes into the mean over samples.
        self._factor = self._passes / total
        self.before_step()
        self._targets.clear()
        self._engine.train_batch(self._pairs(micro_batches))
        self.after_step()
        if self.average:
            self.average.update()
        if not self._engine.is_last_stage():
            return LossSum(torch.zeros((), device=self._engine.device))
        return LossSum((self._engine.total_loss / self._factor).float())

    def evaluation_mode(self) -> AbstractContextManager[None]:
        return evaluation(self.module, self.average, self._replicas)

    @torch.no_grad()
    def predict(self, inputs: Tree) -> Tree | None:
        """Return the outputs on the last stage, and None on the others."""
        count = trees.rows(inputs)
        self._engine.total_loss = None  # otherwise eval_batch would add the outputs to it
        _, outputs = self._engine.eval_batch(
            iter([self._pair(inputs)]),
            return_logits=True,
            compute_loss=False,
            reduce_output=None,
            num_micro_batches=1,
        )
        last = self._engine.is_last_stage()
        return trees.first(trees.as_tree(outputs), count, max(count, self._rows)) if last else None

    def _pairs(self, micro_batches: MicroBatches) -> Iterator[tuple[Tree, torch.Tensor]]:
        """Yield the pairs as DeepSpeed requests them, which the first and the last stage do."""
        for micro in micro_batches:
            targets = trees.repeat(micro.targets, self._rows)
            self._targets.append(micro._replace(inputs=None, targets=targets))
            yield self._pair(micro.inputs)

    def _pair(self, inputs: Tree) -> tuple[Tree, torch.Tensor]:
        """Return the padded inputs, and a substitute for the targets."""
        if isinstance(inputs, Mapping):
            raise CommonMistake(
                f"--engine pipeline: the inputs are {trees.shapes(inputs)}, but the first layer of an "
                "nn.Sequential takes one tensor or a tuple of tensors, not values by name"
            )
        inputs = cast(trees.repeat(inputs, self._rows), self._dtype)
        self._shapes = self._shapes or trees.shapes(inputs)
        if trees.shapes(inputs) != self._shapes:
            raise BadInput(
                f"--engine pipeline: the inputs are {trees.shapes(inputs)} after {self._shapes}; the stages "
                "agree on one shape, so that collate must make all batches equally long"
            )
        return inputs, torch.zeros(1)

    def _loss(self, outputs: Tree, _: torch.Tensor) -> torch.Tensor:
        """Return the loss of the next pass in the last stage."""
        _, targets, real, factor = self._targets.popleft()
        return self._objective(outputs, targets, real, self._rows, factor) * self._factor


def _layers(job: Job) -> list[nn.Module]:
    if not isinstance(job.model, nn.Sequential):
        raise CommonMistake(
            f"--engine pipeline needs a model that is an nn.Sequential; "
            f"this one is a {type(job.model).__name__}"
        )
    if job.loss.name == OF_THE_MODEL:
        raise CommonMistake(
            "--loss model needs another engine than pipeline: only the last stage has the targets, and its "
            "layers return no loss; --loss cross_entropy and the other names work"
        )
    if any(hasattr(layer, "auxiliary_loss") for layer in job.model.modules()):
        raise CommonMistake(
            "--engine pipeline does not add auxiliary_loss() of the model, which would have to be passed "
            "between the stages; --engine deepspeed and ddp add it"
        )
    if len(job.model) < job.stages:
        raise CommonMistake(f"--stages {job.stages}: the model has only {len(job.model)} layers")
    return list(job.model)


def _specs(layers: list[nn.Module]) -> list[Any]:
    """Return the layers as DeepSpeed takes them: those that share weights as TiedLayerSpecs.

    A layer with an attribute `tied_to` computes with the weights of that layer, which comes before it, and
    has none of its own. DeepSpeed then adds their gradients over the stages of both.
    """
    from deepspeed.pipe import TiedLayerSpec

    class Tied(TiedLayerSpec):  # type: ignore[misc]  # it has no types
        def __init__(self, source: nn.Module, forward: Any = None) -> None:
            names = [name for name, _ in source.named_parameters()]
            key = str(layers.index(source))
            super().__init__(key, type(source), forward_fn=forward, tied_weight_attr=names)
            self._source = source

        def build(self, log: bool = False) -> nn.Module:
            return self._source

    sources = {id(layer.tied_to) for layer in layers if hasattr(layer, "tied_to")}

    def spec(layer: nn.Module) -> Any:
        if isinstance(source := getattr(layer, "tied_to", None), nn.Module):
            return Tied(source, lambda _, hidden: layer(hidden))
        return Tied(layer) if id(layer) in sources else layer

    return [spec(layer) for layer in layers]


def _stages(kind: Any, layers: list[Any], job: Job, loss: Any) -> Any:
    try:
        return kind(layers=layers, num_stages=job.stages, loss_fn=loss, partition_method=job.partition)
    except RuntimeError as error:
        if "found no valid layers" not in str(error):
            raise
        classes = ", ".join(dict.fromkeys(type(layer).__name__ for layer in job.model.children()))
        raise CommonMistake(
            f"--partition {job.partition} matches none of the model's layers: {classes}"
        ) from None


def _check_stages(layers: list[nn.Module], bounds: list[int], job: Job) -> None:
    """Raise CommonMistake for a stage that has nothing to train, and for weights in two stages."""
    owner: dict[int, int] = {}
    for stage, (begin, end) in enumerate(pairwise(bounds)):
        weights = [p for layer in layers[begin:end] for p in layer.parameters()]
        tied = any(hasattr(layer, "tied_to") for layer in layers[begin:end])
        if not tied and not any(p.requires_grad for p in weights):
            names = ", ".join(type(layer).__name__ for layer in layers[begin:end]) or "no layer"
            raise CommonMistake(
                f"--stages {job.stages} with --partition {job.partition}: stage {stage} has nothing to "
                f"train, only {names}; use fewer stages, or another --partition"
            )
        if any(owner.setdefault(id(p), stage) != stage for p in weights):
            raise CommonMistake(
                "--engine pipeline does not support shared weights of layers in different stages: each stage "
                "would train its own copy"
            )
