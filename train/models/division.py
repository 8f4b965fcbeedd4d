"""The division of a new model among the ranks, at ZeRO stage 3."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn


def keep(layer: nn.Module) -> None:
    """Leave a layer as it is."""


class Division(NamedTuple):
    """The division of a new model among the ranks.

    layer: called with each layer of a gpt when its initial weights are there; it may divide them among the
    ranks before the next layer is made
    config: DeepSpeed's config for models that another package makes, None if they are not divided
    """

    layer: Callable[[nn.Module], None] = keep
    config: dict[str, Any] | None = None


WHOLE = Division()
