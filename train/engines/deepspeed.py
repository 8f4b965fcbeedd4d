"""DeepSpeed's data parallelism: ZeRO stages 0 to 3, offload to host memory, mixture of experts."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import distributed

from .. import trees
from ..config.deepspeed.query import enabled
from ..data.feed import MicroBatches
from ..device import Device
from ..loss_functions import LossSum
from ..models.division import WHOLE, Division
from ..trees import Tree, call, cast
from .base import Job, Part, Share, evaluation, loss_of, pad, sum_of, value_of
from .batch_norm import normalise_in_fp32
from .deepspeed_common import (
    Common,
    client_optimizer,
    deepspeed_config,
    load_deepspeed,
    mistakes_of_the_config,
)
from .ema import Average, SpreadAverage
from .tuning import with_compile

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class DeepSpeedEngine(Common):
    """An engine of deepspeed.initialize. The process group must be initialised."""

    def __init__(self, job: Job) -> None:
        deepspeed = load_deepspeed(job.device)
        self.share, self._speed = Share(job.ranks.rank, job.ranks.world_size), job.speed
        parameters = [p for p in job.model.parameters() if p.requires_grad]
        with mistakes_of_the_config():
            engine, *_ = deepspeed.initialize(
                model=job.model,
                model_parameters=parameters,
                config=deepspeed_config(job.config, job.device, job.model, job.speed.fused),
                optimizer=client_optimizer(job.config, job.model),
                lr_scheduler=job.schedule.attach,
            )
        super().__init__(engine, adapters=job.adapters)
        if job.speed.compile:
            engine.compile(compile_kwargs={"mode": job.speed.compile, "dynamic": False})
        engine.train()  # called once, because it visits all modules
        self.module, self._loss = job.model, with_compile(job.loss, job.speed)
        normalise_in_fp32(job.model)
        self._dtype = next(job.model.parameters()).dtype
        self._passes = job.ranks.world_size * engine.gradient_accumulation_steps()
        self.average = self._average(job) if job.ema else None
        group = ranks_per_expert_group(job.model)
        self.part = Part(job.ranks.rank % group, job.ranks.rank < group)
        # Ranks that share experts exchange samples, and every rank must send the same number.
        self._rows = job.micro if engine.has_moe_layers else 0

    @staticmethod
    def division(config: dict[str, Any], device: Device) -> Division:
        """Return how a new model is divided among the ranks: whole below ZeRO stage 3.

        A layer's initial weights are drawn on the host in fp32, as for every other engine, and rank 0's are
        used. DeepSpeed casts them only when it makes the engine; here, they are cast before they are divided.
        """
        if config["zero_optimization"]["stage"] < 3:
            return WHOLE
        deepspeed = load_deepspeed(device)
        own_config = deepspeed_config(config, device)
        half = next((kind for block, kind in HALVES.items() if enabled(config, block)), torch.float32)

        def divide(layer: torch.nn.Module) -> None:
            with mistakes_of_the_config():
                deepspeed.zero.Init(module=layer.to(half), config_dict_or_path=own_config, dtype=half)

        @contextmanager
        def change(weight: Any) -> Iterator[bool]:
            with deepspeed.zero.GatheredParameters([weight], modifier_rank=0):
                yield distributed.get_rank() == 0 or not hasattr(weight, "ds_id")  # buffers are not divided

        return Division(divide, own_config, change)

    def _average(self, job: Job) -> Average:
        assert job.ema is not None
        if self._engine.zero_optimization_stage() < 3:
            return Average(job.model, job.ema)
        return SpreadAverage(job.model, job.ema, self._engine.optimizer)

    def train_step(self, micro_batches: MicroBatches, total: int) -> LossSum:
        self.before_step()
        losses: list[torch.Tensor] = []
        for micro in micro_batches:
            micro = pad(micro, self._rows)
            outputs = call(self._engine, cast(micro.inputs, self._dtype))
            loss = loss_of(self.module, self._loss, outputs, micro)
            # DeepSpeed averages over the ranks and over the passes of a step, as if all had the same
            # number of samples. This factor gives the mean over samples for any sizes of the passes.
            self._engine.backward(loss * (self._passes / total))
            self._engine.step()
            losses.append(value_of(loss, self._speed))
        self.after_step()
        if self.average:
            self.average.update()
        return sum_of(losses)

    def evaluation_mode(self) -> AbstractContextManager[None]:
        return evaluation(self._engine, self.average)

    @torch.no_grad()
    def predict(self, inputs: Tree) -> Tree:
        count = trees.rows(inputs)
        inputs = trees.repeat(inputs, self._rows)
        outputs = call(self._engine, cast(inputs, self._dtype))
        return trees.first(trees.as_tree(outputs), count, trees.rows(inputs))


def ranks_per_expert_group(model: torch.nn.Module) -> int:
    """Return the number of neighbouring ranks that hold the experts together; 1 without experts."""
    return max((getattr(module, "ep_size", 1) for module in model.modules()), default=1)
