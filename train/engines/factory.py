"""Construction of the model, and of the engine that --engine names."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import nn

from .. import loss_functions, peers, randomness
from ..checkpoints import fingerprint, initial
from ..config import Settings, speed
from ..config.batches import stages_of
from ..config.converters import is_hf
from ..config.engines import spec_of
from ..config.recipe import Recipe
from ..config.schedules import Plan
from ..data import Task
from ..device import Device
from ..errors import BadInput, CommonMistake
from ..models import hf, lora, selection
from ..models.division import WHOLE, Division
from ..ranks import Ranks
from . import tuning
from .base import Engine, Job


def build(how: Recipe, schedule: Plan, samples: Task, ranks: Ranks, device: Device) -> Engine:
    """Return the engine that --engine names, with its model. The process group must be initialised.

    The weights are the same on every rank. The random numbers drawn later, such as those of dropout, are not.
    Raise BadInput for settings that the model or the device does not support.
    """
    settings, spec = how.settings, spec_of(how.settings)
    fast = speed.resolve(how.config, settings, device.kind)
    tuning.set_flags(fast, device)
    # Only the selected engine is imported: DeepSpeed's import takes half a second.
    module, _, name = spec.implementation.partition(":")
    kind = getattr(import_module(f".{module}", __package__), name)
    config = {key: value for key, value in how.config.items() if key != "scheduler"}
    division = kind.division(config, device) if hasattr(kind, "division") else WHOLE
    network = _on_all_ranks(
        lambda: model(settings, samples.train.shape, samples.outputs, device, division), device
    )
    by_token = samples.by_token(settings.loss_by, settings.loss)
    job = Job(
        model=tuning.prepare(network, fast, ranks.world_size, not spec.runs_deepspeed),
        loss=loss_functions.build(settings.loss or samples.loss, len(samples.classes), by_token),
        config=config,
        schedule=schedule,
        device=device,
        ranks=ranks,
        micro=how.batch.micro,
        ema=settings.ema,
        stages=stages_of(settings, ranks.world_size),
        partition=settings.partition or "parameters",
        plugin=spec.plugin(settings) or "",
        speed=fast,
        adapters=bool(settings.lora),
    )
    engine: Engine = kind(job)
    randomness.seed(settings.seed, ranks.rank)
    return engine


def _check_finite(network: nn.Module, settings: Settings) -> None:
    """Raise CommonMistake for a weight, of those that this rank holds, that is not finite."""
    for name, weight in network.named_parameters():
        held = fingerprint.held(weight)
        if held.device.type != "meta" and not torch.isfinite(held).all():
            place = f"--init-from {settings.init_from}" if settings.init_from else f"--model {settings.model}"
            raise CommonMistake(f"{place}: {name} has values that are not finite")


def _on_all_ranks(make: Callable[[], nn.Module], device: Device) -> nn.Module:
    """Return make(). Raise CommonMistake on all ranks if any rank raises BadInput.

    Where rank 0 alone reads the weights, or a host has other files, the other ranks would wait for it.
    """
    network, failure = None, None
    try:
        network = make()
    except BadInput as error:
        failure = str(error)
    failures = [text for text in peers.exchange(failure, device) if text is not None]
    if failures or network is None:
        raise CommonMistake(failures[0])
    return network


def model(
    settings: Settings, shape: Any, outputs: int, device: Device, division: Division = WHOLE
) -> nn.Module:
    """Return the model with its initial weights, the same on every rank, and the adapters of --lora.

    The weights are those of --init-from, or random ones by --seed.

    shape, outputs, division: see selection.build
    """
    torch.manual_seed(settings.seed)
    if settings.has_experts:
        from .deepspeed_common import load_deepspeed

        load_deepspeed(device)  # the expert layer is DeepSpeed's
    network = selection.build(settings, shape, outputs, division)
    if settings.init_from and not hf.reads(settings):
        initial.load(network, settings.init_from, division)
    if settings.init_from or is_hf(settings.model):
        _check_finite(network, settings)
    if settings.lora:
        torch.manual_seed(settings.seed)  # the same adapters, however the weights were made
    return lora.add(network, settings)
