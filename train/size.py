"""The size of a model and the memory of a device, for --explain."""

import re
from dataclasses import replace

import torch
from torch import nn

from . import flops
from .config import Settings, language
from .config.converters import is_hf
from .data import Task
from .device import Device
from .explain import Model
from .models import blocks, hf, lora, moe, selection


def of_model(settings: Settings, samples: Task) -> Model:
    """Return the numbers of parameters of the model that the settings name. Nothing is allocated."""
    model = _dense(settings, samples)
    layers = [sum(p.numel() for p in m.parameters(recurse=False)) for m in model.modules()]
    total = sum(p.numel() for p in model.parameters())
    total += moe.extra(settings, model) if settings.has_experts else 0
    parts = [list(block.parameters()) for block in blocks.of(model)]
    block = max((sum(p.numel() for p in part) for part in parts), default=0)
    inside = {id(p) for part in parts for p in part}
    outside = sum(p.numel() for p in model.parameters() if id(p) not in inside)
    return Model(total, max(layers), settings.model == "gpt", block, outside, _frozen(model))


def _frozen(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if not p.requires_grad)


def _dense(settings: Settings, samples: Task) -> nn.Module:
    """Return the model without experts and without memory for its weights."""
    dense = replace(settings, model="cnn" if settings.model == "moe" else settings.model, experts=None)
    with torch.device("meta"):
        return lora.add(selection.build(dense, samples.train.shape, samples.outputs), settings)


def of_work(settings: Settings, samples: Task, device: Device, devices: int) -> flops.Work | None:
    """Return the work of a sample of a language model on so many devices; None for other models."""
    of_language = settings.model == "gpt" or is_hf(settings.model)
    if settings.task != "text" and not of_language:
        return None
    (context,) = samples.train.shape
    per_token = None
    if of_language:
        model = _dense(settings, samples)
        parameters = sum(p.numel() for p in model.parameters())
        parameters += moe.extra(settings, model, per_sample=True) if settings.has_experts else 0
        layers, width = hf.form(settings.model) if is_hf(settings.model) else language.size(settings)[:2]
        per_token = flops.per_token(parameters, layers, width, context, _frozen(model))
    peak = settings.peak_tflops or _peak(device)
    return flops.Work(context, per_token, peak * 1e12 * devices if peak else None)


def _peak(device: Device) -> float | None:
    """Return the TFLOP/s of the device by its name; None if it is not known."""
    if not device.row.peaks:
        return None
    name = getattr(torch, device.type).get_device_name(device.torch)
    fits = (tflops for part, tflops in device.row.peaks.items() if re.search(rf"\b{part}\b", name))
    return next(fits, None)


def of_device(device: Device) -> int | None:
    """Return the memory of an accelerator, in bytes; None for the CPU, which has none of its own."""
    if device.kind == "cpu":
        return None
    module = getattr(torch, device.type)
    return int(module.get_device_properties(device.torch).total_memory)
