"""The blocks of a model: the parts of equal form that an engine can shard and compile one by one."""

from collections import Counter

from torch import nn

from .gpt import Block

CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


def of(model: nn.Module) -> list[nn.Module]:
    """Return the blocks of the model, inner ones first; an empty list if it has none.

    The blocks are the layers of our gpt, the classes in `_no_split_modules` of a model of transformers (or of
    the user's own), otherwise the children of each nn.ModuleList. A module that shares a weight with the rest
    of the model is no block.
    """
    names = {name for each in model.modules() for name in getattr(each, "_no_split_modules", None) or ()}
    listed = {id(child) for each in model.modules() if isinstance(each, nn.ModuleList) for child in each}
    modules = [each for each in model.modules() if each is not model and not isinstance(each, CONTAINERS)]
    named = [each for each in modules if isinstance(each, Block) or type(each).__name__ in names]
    blocks = named or [each for each in modules if id(each) in listed]
    users = Counter(id(p) for each in model.modules() for p in each.parameters(recurse=False))
    return [each for each in reversed(blocks) if _is_separate(each, users)]


def _is_separate(block: nn.Module, users: "Counter[int]") -> bool:
    """Return whether the block has weights, and each of them is used only in the block."""
    own = Counter(id(p) for each in block.modules() for p in each.parameters(recurse=False))
    return bool(own) and all(users[weight] == count for weight, count in own.items())
