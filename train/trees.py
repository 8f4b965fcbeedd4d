"""Trees of tensors: a tensor, or a tuple, list or mapping of trees, or an object with tensors as attributes.

Inputs, targets and outputs of a model are such trees. Other leaves, such as None and numbers, pass unchanged.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

Tree = Any


class AttributeDict(dict[str, Any]):
    """A dict whose values are attributes, too: outputs["logits"] and outputs.logits."""

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"the outputs have no {name}, only {', '.join(self)}")


def map_leaves(change: Callable[[Any], Any], tree: Tree) -> Tree:
    """Return the tree with `change` applied to each leaf. Mappings become AttributeDicts."""
    if isinstance(tree, Mapping):
        return AttributeDict({key: map_leaves(change, each) for key, each in tree.items()})
    if isinstance(tree, list | tuple):
        branches = [map_leaves(change, each) for each in tree]
        return branches if isinstance(tree, list) else tuple(branches)
    return change(tree)


def leaves(tree: Tree) -> Iterator[Any]:
    """Yield the leaves that have a shape: tensors, or arrays."""
    for each in _below(tree):
        if hasattr(each, "shape"):
            yield each


def _below(tree: Tree) -> Iterator[Any]:
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for each in tree:
            yield from _below(each)
    else:
        yield tree


def rows(tree: Tree) -> int:
    """Return the number of samples: the first size of the first tensor."""
    return int(next(leaves(tree)).shape[0])


def first(tree: Tree, real: int, samples: int) -> Tree:
    """Return the first `real` of `samples` rows. Leaves with another first size pass unchanged."""
    if real >= samples:
        return tree

    def cut(leaf: Any) -> Any:
        return leaf[:real] if getattr(leaf, "shape", ())[:1] == (samples,) else leaf

    return map_leaves(cut, tree)


def repeat(tree: Tree, samples: int) -> Tree:
    """Return the tree with its rows repeated up to `samples`."""
    have = rows(tree)
    if have >= samples:
        return tree

    def again(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf[torch.arange(samples, device=leaf.device) % have]

    return map_leaves(again, tree)


def cast(tree: Tree, dtype: torch.dtype) -> Tree:
    """Return the tree with its floating tensors in `dtype`. Integers keep their type: they may be indices."""

    def change(leaf: Any) -> Any:
        return leaf.to(dtype) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    return map_leaves(change, tree)


def move_to(tree: Tree, device: torch.device) -> Tree:
    """Return the tree on `device`. Tensors in pinned memory are copied without waiting."""

    def move(leaf: Any) -> Any:
        return leaf.to(device, non_blocking=True) if isinstance(leaf, torch.Tensor) else leaf

    return map_leaves(move, tree)


def call(model: nn.Module | Callable[..., Any], inputs: Tree) -> Tree:
    """Return model(**inputs) for a mapping, model(*inputs) for a tuple or list, and else model(inputs)."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, list | tuple) else model(inputs)


def as_tree(outputs: Any) -> Tree:
    """Return the outputs of a model as a tree: an object or named tuple becomes an AttributeDict."""
    if hasattr(outputs, "_asdict"):
        return AttributeDict(outputs._asdict())
    plain = isinstance(outputs, torch.Tensor | Mapping | list | tuple) or not hasattr(outputs, "__dict__")
    return outputs if plain else AttributeDict(vars(outputs))


def shapes(tree: Tree) -> str:
    """Return the shapes and types of a tree, such as (int64 [32, 128], float32 [32]), for messages."""
    if isinstance(tree, Mapping):
        return "{" + ", ".join(f"{key}: {shapes(each)}" for key, each in tree.items()) + "}"
    if isinstance(tree, list | tuple):
        return "(" + ", ".join(map(shapes, tree)) + ")"
    if hasattr(tree, "shape"):
        return f"{str(tree.dtype).removeprefix('torch.')} {list(tree.shape)}"
    return "None" if tree is None else type(tree).__name__
