"""Accelerators of one type: ``--gpus-per-node a100:4``."""

import re
from typing import NamedTuple

from jobgen.values.parsers import Whole


class Devices(NamedTuple):
    """A number of devices of a type."""

    number: int
    kind: str


class DeviceCount(Whole):
    """A parser for a number of devices, or for ``TYPE:N``."""

    def __call__(self, text: str) -> int | Devices:  # type: ignore[override]
        if (found := re.fullmatch(r"([A-Za-z0-9][\w.-]{0,63}):([0-9]{1,9})", text, re.ASCII)) is None:
            return super().__call__(text)
        if found[1].isdecimal():
            raise ValueError("must be a number, or a type and a number such as a100:4")
        return Devices(Whole(1)(found[2]), found[1])


def number_of(devices: int | Devices | None) -> int | None:
    """Return the number."""
    return devices.number if isinstance(devices, Devices) else devices


def type_of(devices: int | Devices | None) -> str:
    """Return the type; empty if none is requested."""
    return devices.kind if isinstance(devices, Devices) else ""
