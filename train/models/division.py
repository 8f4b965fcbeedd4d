"""The division of a new model among the ranks, at ZeRO stage 3."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from torch import nn


def keep(layer: nn.Module) -> None:
    """Leave a layer as it is."""


def here(weight: Any) -> AbstractContextManager[bool]:
    """Return the context in which a weight that every rank has can be changed: any."""
    return nullcontext(True)


class Division(NamedTuple):
    """The division of a new model among the ranks.

    layer: called with each layer of a gpt when its initial weights are there; it may divide them among the
    ranks before the next layer is made
    config: DeepSpeed's config for models that another package makes, None if they are not divided
    change: returns a context in which a weight is whole and can be changed; its value says whether this rank
    changes it for all
    """

    layer: Callable[[nn.Module], None] = keep
    config: dict[str, Any] | None = None
    change: Callable[[Any], AbstractContextManager[bool]] = here


WHOLE = Division()
