"""Construction of the model, and of the engine that --engine names."""

from importlib import import_module

import torch
from torch import nn

from .. import models
from ..config import Settings
from ..config.batches import stages_of
from ..config.engines import spec_of
from ..config.recipe import Recipe
from ..config.schedules import Plan
from ..data import Data
from ..device import Device
from ..models import moe
from ..ranks import Ranks
from .base import Engine, Job


def build(how: Recipe, schedule: Plan, samples: Data, ranks: Ranks, device: Device) -> Engine:
    """Return the engine that --engine names, with its model. The process group must be initialised.

    Raise BadInput for settings that the model or the device does not support.
    """
    settings, spec = how.settings, spec_of(how.settings)
    job = Job(
        model=model(settings, samples, device),
        config={key: value for key, value in how.config.items() if key != "scheduler"},
        schedule=schedule,
        device=device,
        ranks=ranks,
        micro=how.batch.micro,
        ema=settings.ema,
        stages=stages_of(settings, ranks.world_size),
        partition=settings.partition or "parameters",
        plugin=spec.plugin(settings) or "",
    )
    # Only the selected engine is imported: DeepSpeed's import takes half a second.
    module, _, name = spec.implementation.partition(":")
    made: Engine = getattr(import_module(f".{module}", __package__), name)(job)
    return made


def model(settings: Settings, samples: Data, device: Device) -> nn.Module:
    """Return the model with the initial weights of --seed, which are the same on every rank."""
    shape, classes = samples.train.images.shape[1:], len(samples.classes)
    torch.manual_seed(settings.seed)
    if settings.model != "moe":
        return models.build(settings.model, shape, classes)
    from .deepspeed_common import load_deepspeed

    load_deepspeed(device)  # the expert layer is DeepSpeed's
    return moe.build(shape, classes, moe.experts(settings))
