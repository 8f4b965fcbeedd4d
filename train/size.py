"""The size of a model and the memory of a device, for --explain."""

import torch

from . import models
from .config import Settings
from .data import Data
from .device import Device
from .explain import Model
from .models import moe


def of_model(settings: Settings, samples: Data) -> Model:
    """Return the numbers of parameters of the model that the settings name. Nothing is allocated."""
    shape, classes = samples.train.images.shape[1:], len(samples.classes)
    experts = settings.model == "moe"
    with torch.device("meta"):
        model = models.build("cnn" if experts else settings.model, shape, classes)
    layers = [sum(p.numel() for p in m.parameters(recurse=False)) for m in model.modules()]
    total = moe.count(shape, classes, moe.experts(settings)) if experts else sum(layers)
    return Model(total, max(layers))


def of_device(device: Device) -> int | None:
    """Return the memory of an accelerator, in bytes; None for the CPU, which has none of its own."""
    if device.kind == "cpu":
        return None
    module = getattr(torch, device.type)
    return int(module.get_device_properties(device.torch).total_memory)
