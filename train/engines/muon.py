"""Muon (Keller Jordan, https://kellerjordan.github.io/posts/muon/) without DeepSpeed, with torch's class."""

from typing import Any

import torch
from torch import nn

from ..errors import CommonMistake

NOT_HIDDEN = ("embed", "lm_head")  # matrices that Muon is not meant for, by DeepSpeed's names


class MuonAndAdam(torch.optim.Optimizer):
    """Muon for the matrices of the model, and Adam for the other parameters, as in DeepSpeed.

    Adam has a learning rate of its own. Raise CommonMistake if this torch has no Muon.
    """

    def __init__(self, model: nn.Module, params: dict[str, Any]) -> None:
        if not hasattr(torch.optim, "Muon"):
            raise CommonMistake(
                f"--optimizer muon with --engine ddp needs torch 2.9, not {torch.__version__}"
            )
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        matrices = [p for name, p in named if p.ndim == 2 and not any(word in name for word in NOT_HIDDEN)]
        hidden = set(map(id, matrices))
        others = [p for _, p in named if id(p) not in hidden]
        lr, decay = params.get("lr", 0.001), params.get("weight_decay", 0.0)
        # The parts have the parameters and do the steps; this object is the interface to them.
        self._parts: list[torch.optim.Optimizer] = []
        if matrices:
            rate, momentum = params.get("muon_lr", lr), params.get("momentum", 0.95)
            self._parts.append(torch.optim.Muon(matrices, lr=rate, momentum=momentum, weight_decay=decay))
        if others:
            adam = torch.optim.AdamW if params.get("adam_w_mode", True) else torch.optim.Adam
            known = {key: params[key] for key in ("betas", "eps", "amsgrad", "foreach") if key in params}
            self._parts.append(adam(others, lr=params.get("adam_lr", lr), weight_decay=decay, **known))
        super().__init__([group for part in self._parts for group in part.param_groups], {})

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for part in self._parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self._parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for part, state in zip(self._parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self._parts for group in part.param_groups]
