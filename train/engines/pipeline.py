"""DeepSpeed's pipeline: the layers of a model in stages of one rank each, combined with data parallelism.

The model is an nn.Sequential. Every rank builds it whole from the same seed, so that its weights do not
depend on the number of stages, and keeps the layers of its own stage.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, redirect_stdout
from io import StringIO
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from ..errors import CommonMistake
from ..models import summed_loss
from .base import Job, Micro, Part, Share, evaluation, padded
from .batch_norm import normalise_in_fp32
from .deepspeed_common import Common, deepspeed_config, load_deepspeed, mistakes_of_the_config
from .ema import Average


class PipelineEngine(Common):
    """An engine with DeepSpeed's pipeline. The process group must be initialised.

    The stages agree on the shape of a forward pass only once, so every pass must have the same shape. Smaller
    ones are padded, and the label NOT_REAL excludes the padding from the loss.
    """

    NOT_REAL = -100  # torch's cross-entropy ignores this label

    def __init__(self, job: Job) -> None:
        layers = _layers(job)
        deepspeed = load_deepspeed(job.device)
        from deepspeed.pipe import PipelineModule

        config = deepspeed_config(job.config, job.device, job.model)
        with redirect_stdout(StringIO()):  # it prints its seeds and its grid at any log level
            module = _stages(PipelineModule, layers, job, self._loss)
        _check_stages(layers, module.parts, job)
        parameters = [p for p in module.parameters() if p.requires_grad]
        for parameter in parameters:
            # Without this mark, DeepSpeed clips by the norm of the first stage's gradients only.
            parameter.model_parallel = True
        with mistakes_of_the_config():
            engine, *_ = deepspeed.initialize(
                model=module, model_parameters=parameters, config=config, lr_scheduler=job.schedule.attach
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

    def train_step(self, micro_batches: Sequence[Micro], total: int) -> torch.Tensor:
        # As in deepspeed.py: turns DeepSpeed's average over ranks and passes into the mean over samples.
        self._factor = self._passes / total
        self.before_step()
        self._engine.train_batch(iter([self._pair(micro) for micro in micro_batches]))
        self.after_step()
        if self.average:
            self.average.update()
        if not self._engine.is_last_stage():
            return torch.zeros((), device=self._engine.device)
        loss: torch.Tensor = self._engine.total_loss / self._factor
        return loss.float()

    def evaluating(self) -> AbstractContextManager[None]:
        return evaluation(self.module, self.average, self._replicas)

    @torch.no_grad()
    def predict(self, images: torch.Tensor) -> torch.Tensor | None:
        """Return the logits on the last stage, and None on the others."""
        count = len(images)
        labels = torch.zeros(count, dtype=torch.int64, device=images.device)
        pair = self._pair(Micro(images, labels, count))
        self._engine.total_loss = None  # otherwise eval_batch would add the logits to it
        _, logits = self._engine.eval_batch(
            iter([pair]), return_logits=True, compute_loss=False, reduce_output=None, num_micro_batches=1
        )
        return logits[:count] if self._engine.is_last_stage() else None

    def _pair(self, micro: Micro) -> tuple[torch.Tensor, torch.Tensor]:
        images, labels, real = padded(micro, self._rows)
        row = torch.arange(len(labels), device=labels.device)
        return images.to(self._dtype), torch.where(row < real, labels, self.NOT_REAL)

    def _loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return summed_loss(logits, labels) * self._factor


def _layers(job: Job) -> list[nn.Module]:
    if not isinstance(job.model, nn.Sequential):
        raise CommonMistake(
            f"--engine pipeline needs a model that is an nn.Sequential; "
            f"this one is a {type(job.model).__name__}"
        )
    if len(job.model) < job.stages:
        raise CommonMistake(f"--stages {job.stages}: the model has only {len(job.model)} layers")
    return list(job.model)


def _stages(kind: Any, layers: list[nn.Module], job: Job, loss: Any) -> Any:
    try:
        return kind(layers=layers, num_stages=job.stages, loss_fn=loss, partition_method=job.partition)
    except RuntimeError as error:
        if "found no valid layers" not in str(error):
            raise
        classes = ", ".join(dict.fromkeys(type(layer).__name__ for layer in layers))
        raise CommonMistake(
            f"--partition {job.partition} matches none of the model's layers: {classes}"
        ) from None


def _check_stages(layers: list[nn.Module], bounds: list[int], job: Job) -> None:
    """Raise CommonMistake for a stage that has nothing to train, and for weights in two stages."""
    owner: dict[int, int] = {}
    for stage, (begin, end) in enumerate(pairwise(bounds)):
        weights = [p for layer in layers[begin:end] for p in layer.parameters()]
        if not any(p.requires_grad for p in weights):
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
