"""An exponential moving average of the weights, which often generalises better than the last ones
(Polyak and Juditsky 1992; Tarvainen and Valpola, arXiv 1703.01780)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


class Average:
    """Of this rank's parameters, in fp32: in half precision, small steps would be rounded away."""

    def __init__(self, module: nn.Module, decay: float) -> None:
        named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self._names, self._parameters = list(named), list(named.values())
        self._decay = decay
        self.updates = 0
        self.shadows = [p.detach().float().clone() for p in self._parameters]

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after a step. The first steps count more: the initial weights are no
        better than any others."""
        self.updates += 1
        decay = min(self._decay, (1 + self.updates) / (10 + self.updates))
        weights = [p.detach().float() for p in self._parameters]
        torch._foreach_lerp_(self.shadows, weights, 1 - decay)

    def state_dict(self) -> dict[str, Any]:
        """The averages by the names of the parameters, on the CPU."""
        named = zip(self._names, self.shadows, strict=True)
        return {"updates": self.updates, "weights": {name: shadow.cpu() for name, shadow in named}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.updates = state["updates"]
        for name, shadow in zip(self._names, self.shadows, strict=True):
            shadow.copy_(state["weights"][name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The average stands in the module; afterwards its own weights again."""
        with torch.no_grad():
            kept = [p.detach().clone() for p in self._parameters]
            for parameter, shadow in zip(self._parameters, self.shadows, strict=True):
                parameter.copy_(shadow)
            yield
            for parameter, weight in zip(self._parameters, kept, strict=True):
                parameter.copy_(weight)
