"""What ddp and fsdp share: torch's optimizer, the schedule, the loss scale, and the end of a step."""

import torch
from torch import nn

from ..checkpoints import storage
from . import optimizers
from .base import Job, Part, Share
from .ema import Average


class PlainTorch:
    """The base of engines of plain torch.

    Subclasses put the model on its device before they call `_prepare`, and have the norm of gradients.
    """

    module: nn.Module
    average: Average | None
    _norm: torch.Tensor | None = None  # before clipping

    def __init__(self, job: Job) -> None:
        self.share = Share(job.ranks.rank, job.ranks.world_size)
        self.part = Part(0, job.ranks.rank == 0)
        self._type, self._speed = job.device.type, job.speed
        self._factors: dict[int, torch.Tensor] = {}

    def _prepare(self, job: Job, scaled: bool, average: type[Average]) -> None:
        """Make optimizer, schedule, loss scale and average of the model. scaled: there is a loss scale"""
        self.optimizer = optimizers.build(job.config, self.module, job.speed.fused == "torch")
        self.scheduler = job.schedule.attach(self.optimizer)
        storage.check_state(self.scheduler.state_dict(), job.schedule.source)
        self._scaler = torch.amp.GradScaler(self._type, enabled=scaled)
        self._clip = float(job.config.get("gradient_clipping", 0))
        self.average = average(self.module, job.ema) if job.ema else None

    def _factor(self, loss: torch.Tensor, total: int) -> torch.Tensor:
        """Return the gradient of the loss, which is the same in almost all steps.

        The gradients are averaged over the ranks. This undoes that and gives the mean over samples.
        """
        if total not in self._factors:
            self._factors = {total: torch.full_like(loss, self.share.size / total)}
        return self._factors[total]

    def _total_norm(self) -> torch.Tensor:
        """Return the 2-norm of the gradients over all ranks."""
        raise NotImplementedError

    def _clip_gradients(self, norm: torch.Tensor) -> None:
        """Multiply the gradients so that their norm is --clip at most. norm: of the gradients"""
        nn.utils.clip_grads_with_norm_(self.module.parameters(), self._clip, norm)

    def _step(self) -> None:
        self._scaler.unscale_(self.optimizer)
        self._norm = None
        if self._clip:
            self._norm = self._total_norm()
            self._clip_gradients(self._norm)
        scale = self._scaler.get_scale() if self._scaler.is_enabled() else 0.0
        self._scaler.step(self.optimizer)
        self._scaler.update()
        # A smaller scale means that the gradients overflowed and the step was skipped.
        if not self._scaler.is_enabled() or self._scaler.get_scale() >= scale:
            self.scheduler.step()
        if self.average:
            self.average.update()

    def learning_rate(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def gradient_norm(self) -> torch.Tensor:
        return self._total_norm() if self._norm is None else self._norm

    def end_epoch(self) -> None:
        self.scheduler.end_epoch()

    def after_evaluation(self, metric: float) -> None:
        self.scheduler.after_evaluation(metric)
