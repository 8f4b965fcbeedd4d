"""An exponential moving average of the weights, which often generalises better than the final weights.

See Polyak and Juditsky 1992; Tarvainen and Valpola, arXiv 1703.01780.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import distributed, nn


class Average:
    """The average of this rank's parameters, in fp32: half precision would round small changes to zero.

    spread: the parameters are sharded over the ranks, and all ranks must call `state_dict`
    """

    spread = False

    def __init__(self, module: nn.Module, decay: float) -> None:
        parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self._names, self._parameters = list(parameters), self._local(list(parameters.values()))
        self._decay = decay
        self.updates = 0
        self.shadows = [p.detach().float().clone() for p in self._parameters]

    def _local(self, parameters: list[nn.Parameter]) -> list[torch.Tensor]:
        """Return the tensors of the parameters that this rank holds."""
        return list(parameters)

    @torch.no_grad()
    def update(self) -> None:
        """Add the weights after a step. The first steps count more, because initial weights are arbitrary."""
        self.updates += 1
        decay = min(self._decay, (1 + self.updates) / (10 + self.updates))
        weights = [p.detach().float() for p in self._parameters]
        torch._foreach_lerp_(self.shadows, weights, 1 - decay)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of updates, and the averages by the names of the parameters, on the CPU."""
        averages = zip(self._names, self.shadows, strict=True)
        return {"updates": self.updates, "weights": {name: shadow.cpu() for name, shadow in averages}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.updates = state["updates"]
        for name, shadow in zip(self._names, self.shadows, strict=True):
            shadow.copy_(state["weights"][name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Copy the average into the module within the context, then restore the module's own weights."""
        with torch.no_grad():
            originals = [p.detach().clone() for p in self._parameters]
            for parameter, shadow in zip(self._parameters, self.shadows, strict=True):
                parameter.copy_(shadow)
            yield
            for parameter, weight in zip(self._parameters, originals, strict=True):
                parameter.copy_(weight)


class ShardedAverage(Average):
    """The average with FSDP, of the shard of each parameter that this rank holds."""

    spread = True

    def _local(self, parameters: list[nn.Parameter]) -> list[torch.Tensor]:
        self._whole: list[Any] = list(parameters)
        return [p.detach().to_local() for p in self._whole]

    def state_dict(self) -> dict[str, Any]:
        from torch.distributed.tensor import DTensor

        weights = {}
        for name, p, shadow in zip(self._names, self._whole, self.shadows, strict=True):
            form: dict[str, Any] = {"shape": p.shape, "stride": p.stride()}
            whole = DTensor.from_local(shadow, p.device_mesh, p.placements, run_check=False, **form)
            weights[name] = whole.full_tensor().cpu()
        return {"updates": self.updates, "weights": weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.updates = state["updates"]
        rank, ranks = distributed.get_rank(), distributed.get_world_size()
        for name, shadow in zip(self._names, self.shadows, strict=True):
            shares = state["weights"][name].chunk(ranks)
            if rank < len(shares):
                shadow.copy_(shares[rank])


class SpreadAverage(Average):
    """The average with DeepSpeed's ZeRO 3, of the shard of each parameter that this rank holds."""

    spread = True

    def __init__(self, module: nn.Module, decay: float, optimizer: Any) -> None:
        self._optimizer = optimizer
        super().__init__(module, decay)

    def _local(self, parameters: list[nn.Parameter]) -> list[torch.Tensor]:
        self._whole: list[Any] = list(parameters)
        return [p.ds_tensor for p in self._whole]

    def state_dict(self) -> dict[str, Any]:
        from deepspeed.accelerator import get_accelerator

        weights = {}
        for name, parameter, shadow in zip(self._names, self._whole, self.shadows, strict=True):
            group = parameter.ds_process_group
            # Offloaded shards are in host memory, where the libraries of accelerators cannot gather.
            share = shadow.to(get_accelerator().current_device_name())
            shares = share.new_empty(share.numel() * distributed.get_world_size(group))
            distributed.all_gather_into_tensor(shares, share, group=group)
            weights[name] = shares[: parameter.ds_numel].view(parameter.ds_shape).cpu()
        return {"updates": self.updates, "weights": weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.updates = state["updates"]
        for name, parameter, shadow in zip(self._names, self._whole, self.shadows, strict=True):
            size = shadow.numel()
            begin = size * distributed.get_rank(parameter.ds_process_group)
            mine = state["weights"][name].flatten()[begin : begin + size]
            shadow[: len(mine)].copy_(mine)  # the last shard is padded

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with super().in_place():
            self._gather_again()
            yield
        self._gather_again()

    def _gather_again(self) -> None:
        """Gather the small parameters, which every rank holds whole besides their shards."""
        small = self._optimizer.persistent_parameters
        if small:
            small[0].partition(small)
            small[0].all_gather(small)
