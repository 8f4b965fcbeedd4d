"""A stream of the device in which batches are prepared beside the computation.

The host is ahead of the device: it asks for the next samples while the device still computes the last step.
In the stream of the computation, their preparation would wait for the end of that step.
"""

from collections.abc import Callable
from typing import TypeVar

import torch

from .. import trees
from ..accelerators import ACCELERATORS

Made = TypeVar("Made")


class SideStream:
    """A stream of `device` for data. On a device without streams, all work is done in order."""

    def __init__(self, device: torch.device) -> None:
        streams = any(row.streams for row in ACCELERATORS.values() if row.type == device.type)
        self._module = torch.get_device_module(device) if streams else None
        self._side = None
        if self._module:
            self._side = self._module.Stream()
            self._side.wait_stream(self._module.current_stream())  # data that are on the device already

    def run(self, make: Callable[[], Made]) -> Made:
        """Return make(), whose work is done in the stream. The computation that follows waits for it.

        make does not wait for the computation: it must not use what that has written.
        """
        if not self._module:
            return make()
        with self._module.stream(self._side):
            made = make()
        now = self._module.current_stream()
        now.wait_stream(self._side)
        for leaf in trees.leaves(made):
            if isinstance(leaf, torch.Tensor) and leaf.device.type != "cpu":
                leaf.record_stream(now)  # its memory is reused only after the computation
        return made
