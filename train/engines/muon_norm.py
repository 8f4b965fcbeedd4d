"""The norm of the gradients with Muon and ZeRO, of which DeepSpeed 0.19.8 has that of Muon's update only."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import distributed


class MuonNorm:
    """Keeps the norm of the gradients before DeepSpeed replaces them by Muon's update.

    optimizer: DeepSpeed's optimizer of ZeRO, without offload and without experts. Stage 3 replaces divided
    gradients. Stages 1 and 2 replace them when they divide them: here, they are divided a second time.
    """

    def __init__(self, optimizer: Any, stage: int) -> None:
        self._optimizer = optimizer
        self._squares: dict[int, torch.Tensor] = {}
        if stage == 3:
            self._replace = optimizer._apply_muon_to_accumulated_grads
            optimizer._apply_muon_to_accumulated_grads = self._before_replacing
        else:
            self._divide = optimizer.get_flat_partition
            optimizer.get_flat_partition = self._divided_twice

    def norm(self) -> float | None:
        """Return the norm of the last step over all ranks, a collective operation; None before a step."""
        if not self._squares:
            return None
        total = torch.stack([*self._squares.values()]).sum()
        distributed.all_reduce(total, group=self._optimizer.dp_process_group)
        return float(total.sqrt()) / float(self._optimizer.loss_scale)

    def _keep(self, group: int, gradients: Iterable[torch.Tensor]) -> None:
        self._squares[group] = torch.nn.utils.get_total_norm(gradients).float() ** 2

    def _before_replacing(self) -> None:
        for group, gradients in self._optimizer.averaged_gradients.items():
            self._keep(group, gradients)
        self._replace()

    def _divided_twice(self, parameters: list[Any], *args: Any, param_group_idx: int, **named: Any) -> Any:
        by_muon = [one for one in parameters if getattr(one, "use_muon", False)]
        for one in by_muon:
            one.use_muon = False
        self._keep(param_group_idx, self._divide(parameters, *args, param_group_idx=param_group_idx, **named))
        for one in by_muon:
            one.use_muon = True
        return self._divide(parameters, *args, param_group_idx=param_group_idx, **named)
