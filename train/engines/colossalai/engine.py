"""ColossalAI's Booster: data parallelism by plug-ins (table: config/engine_colossalai.py)."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from ...checkpoints import storage
from ...config.deepspeed.query import precision
from ...data.feed import MicroBatches
from ...loss_functions import LossSum
from ...trees import Tree, call, cast
from ..base import Job, Part, Save, Share, evaluation, loss_of, sum_of
from ..ema import Average
from . import patches, plugins


class ColossalaiEngine:
    """An engine with one of ColossalAI's plug-ins. The process group must be initialised."""

    def __init__(self, job: Job) -> None:
        colossalai = patches.load(job.device)
        self.share = Share(job.ranks.rank, job.ranks.world_size)
        self.part = Part(0, job.ranks.rank == 0)
        self.module, self._loss = job.model, job.loss
        self._plugin = job.plugin
        self._precision = precision(job.config)
        self._clip = float(job.config.get("gradient_clipping", 0))
        self._type = job.device.type
        self.optimizer = plugins.optimizer(colossalai, job)
        plugin = plugins.plugin(colossalai, job)
        mixed = "fp16" if job.plugin == "torch_ddp_fp16" else None
        self._booster = colossalai.booster.Booster(plugin=plugin, mixed_precision=mixed)
        self._model, self._wrapper, *_ = self._booster.boost(job.model, self.optimizer)
        if mixed:
            # ColossalAI uses the GradScaler of torch.cuda, which has no effect without CUDA.
            self._wrapper.scaler = torch.amp.GradScaler(self._type, **plugins.loss_scale(job.config))
        self.scheduler = job.schedule.attach(self.optimizer)
        self.average = Average(self.module, job.ema) if job.ema else None
        self._norm: float | None = None
        self._clip_norm: torch.Tensor | None = None  # the norm before clipping

    def train_step(self, micro_batches: MicroBatches, total: int) -> LossSum:
        self._wrapper.zero_grad()
        losses: list[torch.Tensor] = []
        for i, micro in enumerate(micro_batches, 1):
            with self._exchange(i == len(micro_batches)):
                outputs = call(self._model, cast(micro.inputs, torch.float32))  # the plug-in casts them
                loss = loss_of(self.module, self._loss, outputs, micro)
                # All plug-ins average the gradients over the ranks. This factor undoes that and gives the
                # mean over samples.
                self._booster.backward(loss * (self.share.size / total), self._wrapper)
            losses.append(loss.detach())
        self._step()
        return sum_of(losses)

    def _step(self) -> None:
        scaler, mixin = getattr(self._wrapper, "scaler", None), self._mixin()
        if self._plugin.startswith("torch_ddp") and self._clip:  # the other plug-ins clip by themselves
            if scaler:
                self._wrapper.unscale_grad()
            self._clip_norm = torch.nn.utils.clip_grad_norm_(self.module.parameters(), self._clip)
        overflow = getattr(mixin, "found_overflow", None)
        scale = scaler.get_scale() if scaler else mixin.loss_scale if overflow is not None else 1.0
        self._wrapper.step()
        norm = getattr(self._wrapper, "_current_grad_norm", None)
        self._norm = None if norm is None else float(norm) / scale  # it is the norm of the scaled gradients
        overflown = scaler.get_scale() < scale if scaler else overflow is not None and overflow.item() > 0
        if not overflown:
            self.scheduler.step()
        if self.average:
            self.average.update()

    def evaluation_mode(self) -> AbstractContextManager[None]:
        return evaluation(self.module, self.average)

    @torch.no_grad()
    def predict(self, inputs: Tree) -> Tree:
        # Not through DistributedDataParallel, which would broadcast rank 0's running statistics.
        model = self.module if self._plugin.startswith("torch_ddp") else self._model
        mixed = self._plugin == "torch_ddp_fp16"
        with torch.autocast(self._type, torch.float16) if mixed else nullcontext():
            return call(model, cast(inputs, torch.float32))

    def learning_rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def gradient_norm(self) -> float | None:
        """Return the norm of the last step's gradients. gemini has it only if it clips."""
        if not self._plugin.startswith("torch_ddp"):
            return self._norm
        if self._clip_norm is not None:
            return float(self._clip_norm)
        norms = [p.grad.float().norm() for p in self.module.parameters() if p.grad is not None]
        return float(torch.stack(norms).norm())

    def end_epoch(self) -> None:
        self.scheduler.end_epoch()

    def after_evaluation(self, metric: float) -> None:
        self.scheduler.after_evaluation(metric)

    def save(self, directory: Path, save: Save, client: dict[str, Any]) -> None:
        """Write model.pt as --engine ddp does, and the shards of each rank into a file of its own.

        The Booster would save only the half-precision weights, from which a run cannot resume exactly.
        """
        weights = self._model.state_dict() if self._plugin == "gemini" else self.module.state_dict()
        whole = {"model": dict(weights), "scheduler": self.scheduler.state_dict()}
        own = {"optimizer": self.optimizer.state_dict(), "shares": [share.cpu() for share in self._shares()]}
        if self.share.rank == 0:
            save({**whole, "scaler": self._scaler_state(), "client": client}, directory / "model.pt")
        if self.share.rank == 0 or not self._plugin.startswith("torch_ddp"):
            save(own, self._own_file(directory))

    def load(self, directory: Path, universal: Path | None) -> None:
        whole, own = storage.load(directory / "model.pt"), storage.load(self._own_file(directory))
        if self._plugin != "gemini":
            self.module.load_state_dict(whole["model"])
        with torch.no_grad():
            for share, value in zip(self._shares(), own["shares"], strict=True):
                share.copy_(value)
        self.optimizer.load_state_dict(own["optimizer"])
        self.scheduler.load_state_dict(whole["scheduler"])
        self._set_scaler_state(whole["scaler"])

    def _own_file(self, directory: Path) -> Path:
        rank = 0 if self._plugin.startswith("torch_ddp") else self.share.rank
        return directory / f"colossalai-{rank:05d}.pt"

    def _shares(self) -> list[torch.Tensor]:
        """Return this rank's shards of the fp32 weights; with gemini, also of the half-precision ones."""
        if self._plugin == "low_level_zero":
            return [p for group in self.optimizer.param_groups for p in group["params"]]
        if self._plugin == "gemini":
            groups = self._model.chunk_manager.chunk_groups.values()
            return [chunk.payload for chunks in groups for chunk in chunks]
        return []

    def _mixin(self) -> Any:
        """Return the loss scaler of low_level_zero or gemini, which have different names for it."""
        name = "mix_precision_mixin" if self._plugin == "gemini" else "mixed_precision_mixin"
        return getattr(self._wrapper, name, None)

    def _scaler_state(self) -> dict[str, Any]:
        if hasattr(self._wrapper, "scaler"):
            state: dict[str, Any] = self._wrapper.scaler.state_dict()
            return state
        scaler = getattr(self._mixin(), "grad_scaler", None)
        return {name: getattr(scaler, name) for name in SCALER} if scaler else {}

    def _set_scaler_state(self, state: dict[str, Any]) -> None:
        if hasattr(self._wrapper, "scaler"):
            self._wrapper.scaler.load_state_dict(state)
        elif state:
            scaler = self._mixin().grad_scaler
            for name in SCALER:
                value = state[name]
                setattr(scaler, name, value.to(scaler._scale.device) if name == "_scale" else value)

    def _exchange(self, last: bool) -> AbstractContextManager[Any]:
        """Return the context of a pass: if possible, only the last one of a step exchanges gradients."""
        if last or not self._booster.plugin.support_no_sync():
            return nullcontext()
        model = self._model.module if self._plugin == "torch_ddp_fp16" else self._model
        context: AbstractContextManager[Any] = self._booster.no_sync(model, self._wrapper)
        return context


SCALER = ("_scale", "_growth_step", "_hysteresis_step")
