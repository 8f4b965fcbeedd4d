"""The user's own optimizer: --optimizer package.module:name.

The function is called with the model, and with --lr if it has a parameter lr. It returns an optimizer of
torch, with any groups of parameters; a schedule multiplies the rate of each group. In a pipeline, the model
is the stage of this rank.
"""

import torch
from torch import nn

from .. import own
from ..config.converters import is_own
from ..config.deepspeed.query import Config
from ..errors import CommonMistake


def wanted(config: Config) -> bool:
    """Return whether the optimizer is the user's own."""
    return is_own(str(config["optimizer"].get("type", "")))


def build(config: Config, model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer of this model. Raise CommonMistake if the function does not return one."""
    name, params = config["optimizer"]["type"], config["optimizer"]["params"]
    function = own.find("--optimizer", name)
    if "lr" in params and "lr" not in own.parameters(function):
        raise CommonMistake(f"--lr {params['lr']}: --optimizer {name} has no parameter lr")
    form = "NAME(model, lr)" if "lr" in params else "NAME(model)"
    made = own.call("--optimizer", name, function, form, model, **params)
    if not isinstance(made, torch.optim.Optimizer):
        raise CommonMistake(f"--optimizer {name} returned {type(made).__name__}, not a torch.optim.Optimizer")
    return made
