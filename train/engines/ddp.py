"""Plain torch: DistributedDataParallel, torch's optimizers and autocast. Reference for the other engines."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ..checkpoints import storage
from ..config.deepspeed.query import precision
from ..data.feed import Micro, MicroBatches
from ..errors import BadInput
from ..loss_functions import LossSum, Objective
from ..trees import Tree, call, cast
from .base import Adapters, Job, Save, evaluation, loss_of, sum_of, value_of
from .ema import Average
from .plain import PlainTorch
from .tuning import with_compile

Context = AbstractContextManager[Any]
# The dtype of the weights and that of autocast, by the precision of the config; None: no autocast.
DTYPES: dict[str, tuple[torch.dtype, torch.dtype | None]] = {
    "fp32": (torch.float32, None),
    "bf16": (torch.float32, torch.bfloat16),
    "pure-bf16": (torch.bfloat16, None),
    "fp16": (torch.float32, torch.float16),
    "autocast": (torch.float32, torch.bfloat16),
    "autocast-fp16": (torch.float32, torch.float16),
}


class WithLoss(nn.Module):
    """A model and its loss: one pass of DistributedDataParallel and one graph of torch.compile.

    dtype: of floating inputs; autocast: returns the context of the model, which is not that of the loss
    """

    def __init__(
        self, model: nn.Module, loss: Objective, dtype: torch.dtype, autocast: Callable[[], Context]
    ) -> None:
        super().__init__()
        self.model, self._loss, self._dtype, self._autocast = model, loss, dtype, autocast

    def forward(self, inputs: Tree, targets: Tree, real: int, factor: torch.Tensor | None) -> LossSum:
        micro = Micro(inputs, targets, real, factor)
        return loss_of(self.model, self._loss, self.outputs(inputs), micro)

    def outputs(self, inputs: Tree) -> Tree:
        with self._autocast():
            return call(self.model, cast(inputs, self._dtype))


class DdpEngine(PlainTorch):
    """An engine with DistributedDataParallel. The process group must be initialised.

    bf16 and fp16 are torch's autocast with fp32 weights, fp16 with dynamic loss scaling. bf16 without a
    master copy casts the weights themselves.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._dtype, self._cast = DTYPES[precision(job.config)]
        self._adapters = job.adapters
        self.module = job.model.to(job.device.torch, self._dtype)
        whole = WithLoss(self.module, job.loss, self._dtype, self._autocast)
        self._outputs = with_compile(whole.outputs, job.speed)
        self._model: nn.Module = whole
        if job.ranks.world_size > 1:
            devices = None if job.device.type == "cpu" else [job.device.torch]
            self._model = DistributedDataParallel(
                self._model,
                devices,
                gradient_as_bucket_view=True,
                static_graph=job.speed.static_graph,
                bucket_cap_mb=job.speed.bucket_mb,
            )
        self._compiled = with_compile(self._model, job.speed)
        self._prepare(job, self._cast == torch.float16, Average)
        self._after_resume, self._first = False, True

    def _rebuild_buckets(self, micro: Micro) -> None:
        """Do one pass whose gradients are discarded.

        DDP rebuilds its buckets after the first pass, and the position of a gradient in the buckets
        determines the order in which the ranks' gradients are added. Without this pass, a resumed run would
        begin with other rounding errors than the run that it continues.
        """
        buffers = [buffer.clone() for buffer in self.module.buffers()]
        with torch.random.fork_rng(device_type=self._type if self._type != "cpu" else "cuda"):
            loss = self._compiled(*micro)
        loss.backward()
        self.optimizer.zero_grad()
        for buffer, before in zip(self.module.buffers(), buffers, strict=True):
            buffer.copy_(before)

    def train_step(self, micro_batches: MicroBatches, total: int) -> LossSum:
        self.optimizer.zero_grad()
        losses: list[torch.Tensor] = []
        for i, micro in enumerate(micro_batches, 1):
            if self._after_resume:
                self._after_resume = False
                self._rebuild_buckets(micro)
            with self._exchange(i == len(micro_batches)):
                loss = self._compiled(*micro)
                loss.backward(self._scaler.scale(self._factor(loss, total)))
            losses.append(value_of(loss, self._speed))
        if self._first:
            self._first = False
            self._check_gradients()
        self._step()
        return sum_of(losses)

    def _check_gradients(self) -> None:
        """Raise BadInput for weights without gradients: DistributedDataParallel would wait for them."""
        idle = [n for n, p in self.module.named_parameters() if p.requires_grad and p.grad is None]
        if idle and isinstance(self._model, DistributedDataParallel):
            names = ", ".join(idle[:5])
            raise BadInput(
                f"--engine ddp needs a gradient of every weight, and the model does not use {names}: "
                "remove them, set their requires_grad to False, or use --engine fsdp or deepspeed"
            )

    def evaluation_mode(self) -> AbstractContextManager[None]:
        return evaluation(self.module, self.average)

    @torch.no_grad()
    def predict(self, inputs: Tree) -> Tree:
        return self._outputs(inputs)

    def _total_norm(self) -> torch.Tensor:
        return nn.utils.get_total_norm([p.grad for p in self.module.parameters() if p.grad is not None])

    def save(self, directory: Path, save: Save, client: dict[str, Any]) -> None:
        if self.share.rank == 0:
            states = {name: part.state_dict() for name, part in self._states().items()}
            save({**states, "client": client}, directory / "model.pt")

    def load(self, directory: Path, universal: Path | None) -> None:
        states = storage.load(directory / "model.pt")
        for name, part in self._states().items():
            part.load_state_dict(states[name])
        self._after_resume = isinstance(self._model, DistributedDataParallel)

    def _states(self) -> dict[str, Any]:
        """Return the objects to load, in order: the schedule overwrites the optimizer's learning rate."""
        return {
            "model": Adapters(self.module) if self._adapters else self.module,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "scaler": self._scaler,
        }

    def _autocast(self) -> Context:
        return nullcontext() if self._cast is None else torch.autocast(self._type, self._cast)

    def _exchange(self, last: bool) -> AbstractContextManager[Any]:
        """Return the context of a pass: only the last one of a step exchanges gradients."""
        if last or not isinstance(self._model, DistributedDataParallel):
            return nullcontext()
        return self._model.no_sync()
