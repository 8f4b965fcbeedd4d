"""Torch's fully sharded data parallelism (FSDP2): each rank has a share of all weights and states.

A block's weights are gathered for its forward and its backward pass. https://docs.pytorch.org/docs/stable/
distributed.fsdp.fully_shard.html
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from ..checkpoints import initial, sharded, storage
from ..checkpoints.sharded import FILE, FOLDER, MODEL
from ..config.deepspeed.query import precision
from ..data.feed import MicroBatches
from ..errors import CommonMistake
from ..loss_functions import LossSum
from ..models import blocks
from ..trees import Tree, call, cast
from .base import Job, Save, evaluation, loss_of, sum_of, value_of
from .batch_norm import normalise_in_fp32
from .ema import ShardedAverage
from .plain import PlainTorch
from .tuning import with_compile

OPTIMIZER = "optimizer"
CASTS = {"bf16": torch.bfloat16, "fp16": torch.float16}  # of gathered weights; the shards are fp32
AUTOCASTS = {"autocast": torch.bfloat16, "autocast-fp16": torch.float16}


class FsdpEngine(PlainTorch):
    """An engine with fully_shard. The process group must be initialised.

    bf16 and fp16 gather weights in half precision; the shards, the exchange of gradients and the optimizer
    are fp32. bf16 without a master copy has shards in bf16. fp16 has dynamic loss scaling.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.module, self._adapters = job.model, job.adapters
        kind = precision(job.config)
        self._cast, self._autocast = CASTS.get(kind), AUTOCASTS.get(kind)
        self._dtype = self._cast or (torch.bfloat16 if kind == "pure-bf16" else torch.float32)
        self._mesh = init_device_mesh(self._type, (job.ranks.world_size,))
        self._root = self._shard(job, torch.bfloat16 if kind == "pure-bf16" else torch.float32)
        normalise_in_fp32(self.module)
        self._loss = with_compile(job.loss, job.speed)
        self._prepare(job, torch.float16 in (self._cast, self._autocast), ShardedAverage)

    def _shard(self, job: Job, dtype: torch.dtype) -> FSDPModule:
        """Compile and shard each block, and then what is outside of them. Return the model.

        The weights of the last block, and those outside of the blocks, stay gathered until their backward
        pass, which comes first.
        """
        self._check_weights()
        policy = MixedPrecisionPolicy(param_dtype=self._cast, reduce_dtype=torch.float32)
        free = job.config["zero_optimization"]["stage"] == 3
        every = blocks.of(self.module)
        last = max(every, key=list(self.module.modules()).index, default=None)
        self.module.to(dtype)
        for parameter in self.module.parameters():
            parameter.data = parameter.data.contiguous()  # fully_shard has no other memory format
        for block in (every or [self.module]) if job.speed.compile else ():
            # The forward pass alone: equal blocks share the graph, which does not have fully_shard's hooks.
            block.forward = with_compile(block.forward, job.speed)
        for block in every:
            again = free and block is not last
            fully_shard(block, mesh=self._mesh, reshard_after_forward=again, mp_policy=policy)
        return fully_shard(self.module, mesh=self._mesh, reshard_after_forward=False, mp_policy=policy)

    def _check_weights(self) -> None:
        """Raise CommonMistake for weights that cannot be sharded."""
        scalars = [name for name, p in self.module.named_parameters() if not p.ndim]
        if scalars:
            raise CommonMistake(
                f"--engine fsdp shards the first dimension of each weight, and {', '.join(scalars[:5])} has "
                "none: make it a tensor of one element, or use --engine ddp or deepspeed"
            )

    def train_step(self, micro_batches: MicroBatches, total: int) -> LossSum:
        self.optimizer.zero_grad()
        losses: list[torch.Tensor] = []
        for i, micro in enumerate(micro_batches, 1):
            self._root.set_requires_gradient_sync(i == len(micro_batches))
            loss = loss_of(self.module, self._loss, self._outputs(micro.inputs), micro)
            torch.autograd.backward(loss, self._scaler.scale(self._factor(loss, total)))
            losses.append(value_of(loss, self._speed))
        self._step()
        return sum_of(losses)

    def _outputs(self, inputs: Tree) -> Tree:
        half = nullcontext() if self._autocast is None else torch.autocast(self._type, self._autocast)
        with half:
            return call(self.module, cast(inputs, self._dtype))

    def _gradients(self) -> list[torch.Tensor]:
        """Return this rank's shares of the gradients."""
        gradients: list[Any] = [p.grad for p in self.module.parameters() if p.grad is not None]
        return [gradient.to_local() for gradient in gradients]

    def _total_norm(self) -> torch.Tensor:
        square = nn.utils.get_total_norm(self._gradients()).float().square()
        distributed.all_reduce(square)
        return square.sqrt()

    def _clip_gradients(self, norm: torch.Tensor) -> None:
        # As nn.utils.clip_grads_with_norm_, which takes longer for distributed tensors.
        torch._foreach_mul_(self._gradients(), (self._clip / (norm + 1e-6)).clamp(max=1.0))

    @contextmanager
    def evaluation_mode(self) -> Iterator[None]:
        with evaluation(self.module, self.average):
            yield
            # Otherwise the next pass would use the weights that this evaluation has gathered.
            for module in self.module.modules():
                if isinstance(module, FSDPModule):
                    module.reshard()

    @torch.no_grad()
    def predict(self, inputs: Tree) -> Tree:
        return self._outputs(inputs)

    def save(self, directory: Path, save: Save, client: dict[str, Any]) -> None:
        """Write the sharded tensors first: all ranks write them together, also if the disk of one is full."""
        tensors = self._weights()
        states = {OPTIMIZER: sharded.split(self.optimizer.state_dict(), OPTIMIZER, tensors)}
        save(sharded.Sharded(tensors), directory / FOLDER)
        if self.share.rank == 0:
            states |= {"scheduler": self.scheduler.state_dict(), "scaler": self._scaler.state_dict()}
            save({**states, "names": self._names(), "client": client}, directory / FILE)

    def load(self, directory: Path, universal: Path | None) -> None:
        states, table = storage.load(directory / FILE), sharded.table(directory / FOLDER)
        tensors = self._weights()
        optimizer = sharded.join(states[OPTIMIZER], OPTIMIZER, tensors, table, self._mesh)
        sharded.read(directory / FOLDER, tensors)
        self.optimizer.load_state_dict(optimizer)
        self.scheduler.load_state_dict(states["scheduler"])
        self._scaler.load_state_dict(states["scaler"])

    def _weights(self) -> sharded.Tensors:
        """Return the weights to save: all, or with adapters those that are trained."""
        named = self.module.named_parameters()
        return {f"{MODEL}.{name}": p.detach() for name, p in named if p.requires_grad or not self._adapters}

    def _names(self) -> dict[str, str]:
        """Return the other names of weights that layers share, with the names under which they are saved."""
        saved = self._weights()
        names = [names for names, _ in initial.with_names(self.module) if f"{MODEL}.{names[0]}" in saved]
        return {name: first for first, *others in names for name in others}
