"""The random numbers of Python, NumPy, torch and the device: seeds and states of a rank."""

import random
from typing import Any

import numpy as np
import torch

from .device import Device


def seed(*numbers: int) -> None:
    """Seed the random numbers of Python, NumPy, torch and its devices on this rank.

    numbers: --seed, the rank, and others that make the sequence another one
    """
    drawn = np.random.SeedSequence(numbers).generate_state(3, np.uint32)
    random.seed(int(drawn[0]))
    np.random.seed(drawn[1])
    torch.manual_seed(int(drawn[2]))


def state(device: Device) -> dict[str, Any]:
    """Return the random states of Python, NumPy, torch and the device, as plain values and tensors."""
    layout, numbers, gauss = random.getstate()
    of_numpy: Any = np.random.get_state()
    kind, keys, *rest = of_numpy
    on_device = None if device.kind == "cpu" else torch.get_device_module(device.torch).get_rng_state()
    return {
        "python": (layout, numbers, gauss),
        "numpy": (kind, torch.from_numpy(keys.astype(np.int64)), *rest),
        "torch": torch.get_rng_state(),
        "device": on_device,
    }


def restore(state: dict[str, Any], device: Device) -> None:
    random.setstate(state["python"])
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if device.kind != "cpu" and state["device"] is not None:
        torch.get_device_module(device.torch).set_rng_state(state["device"])
