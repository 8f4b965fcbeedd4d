"""Optimizers without DeepSpeed: torch's, Muon, and the user's own."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .. import user_code
from ..config.converters import is_own
from ..config.deepspeed.query import Config, optimizer_name
from ..errors import CommonMistake

NOT_HIDDEN = ("embed", "lm_head")  # matrices that Muon is not meant for, by DeepSpeed's names


def build(config: Config, module: nn.Module, fused: bool = False) -> torch.optim.Optimizer:
    """Return torch's optimizer for DeepSpeed's block. Adam is AdamW unless adam_w_mode is false.

    fused: use torch's fused kernels
    """
    if is_users(config):
        return build_users(config, module)
    name, params = optimizer_name(config), dict(config["optimizer"]["params"])
    params.setdefault("lr", 0.001)
    if name == "muon":
        return MuonAndAdam(module, params)
    for foreign in ("torch_adam", "fp32_optimizer_states", "bias_correction"):
        params.pop(foreign, None)
    if name == "adam" and params.pop("adam_w_mode", True):
        name = "adamw"
    params.pop("adam_w_mode", None)
    kinds: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "sgd": torch.optim.SGD,
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "adagrad": torch.optim.Adagrad,
    }
    return kinds[name](module.parameters(), **params, **({"fused": True} if fused else {}))


def is_users(config: Config) -> bool:
    """Return whether the optimizer is the user's own."""
    return is_own(str(config["optimizer"].get("type", "")))


def build_users(config: Config, model: nn.Module) -> torch.optim.Optimizer:
    """Return the user's optimizer of this model: --optimizer package.module:name.

    The function is called with the model, and with --lr if it has a parameter lr. It returns an optimizer of
    torch, with any groups of parameters; a schedule multiplies the rate of each group. In a pipeline, the
    model is the stage of this rank. Raise CommonMistake if the function does not return an optimizer.
    """
    name, params = config["optimizer"]["type"], config["optimizer"]["params"]
    function = user_code.find("--optimizer", name)
    if "lr" in params and "lr" not in user_code.parameters(function):
        raise CommonMistake(f"--lr {params['lr']}: --optimizer {name} has no parameter lr")
    form = "NAME(model, lr)" if "lr" in params else "NAME(model)"
    result = user_code.call("--optimizer", name, function, form, model, **params)
    if not isinstance(result, torch.optim.Optimizer):
        raise CommonMistake(
            f"--optimizer {name} returned {type(result).__name__}, not a torch.optim.Optimizer"
        )
    return result


class MuonAndAdam(torch.optim.Optimizer):
    """Muon for the matrices of the model, and Adam for the other parameters, as in DeepSpeed.

    Muon is Keller Jordan's, https://kellerjordan.github.io/posts/muon/, in torch's class. Adam has a learning
    rate of its own. Raise CommonMistake if this torch has no Muon.
    """

    def __init__(self, model: nn.Module, params: dict[str, Any]) -> None:
        if not hasattr(torch.optim, "Muon"):
            raise CommonMistake(
                f"--optimizer muon with --engine ddp needs torch 2.9, not {torch.__version__}"
            )
        pairs = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        matrices = [p for name, p in pairs if p.ndim == 2 and not any(word in name for word in NOT_HIDDEN)]
        hidden = set(map(id, matrices))
        others = [p for _, p in pairs if id(p) not in hidden]
        lr, decay = params.get("lr", 0.001), params.get("weight_decay", 0.0)
        # The parts have the parameters and do the steps; this object is the interface to them.
        self._parts: list[torch.optim.Optimizer] = []
        if matrices:
            rate, momentum = params.get("muon_lr", lr), params.get("momentum", 0.95)
            self._parts.append(torch.optim.Muon(matrices, lr=rate, momentum=momentum, weight_decay=decay))
        if others:
            adam = torch.optim.AdamW if params.get("adam_w_mode", True) else torch.optim.Adam
            arguments = {key: params[key] for key in ("betas", "eps", "amsgrad", "foreach") if key in params}
            self._parts.append(adam(others, lr=params.get("adam_lr", lr), weight_decay=decay, **arguments))
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
