"""The model that the settings name."""

from functools import partial
from typing import Any

from torch import nn

from .. import models
from ..config import Settings
from ..config.converters import is_hf
from ..config.language import size
from . import gpt, hf, moe
from .division import WHOLE, Division


def build(settings: Settings, shape: Any, outputs: int, division: Division = WHOLE) -> nn.Module:
    """Return the model for inputs of `shape`, which returns `outputs` values for a sample or token.

    For experts, DeepSpeed must be imported and initialised. Raise BadInput if the inputs do not fit the
    model.
    """
    if settings.model == "gpt":
        return _gpt(settings, outputs, division)
    if settings.model == "moe":
        return moe.build(shape, outputs, moe.experts(settings))
    if is_hf(settings.model):
        return hf.build(settings, outputs, shape, division.config)
    return models.build(settings.model, shape, outputs)


def _gpt(settings: Settings, vocabulary: int, division: Division) -> nn.Module:
    form = size(settings)
    layers = partial(
        gpt.layers, form, vocabulary, settings.mlp or "gelu", bool(settings.recompute), divide=division.layer
    )
    if not settings.has_experts:
        return gpt.Decoder(*layers())
    experts = moe.experts(settings)
    network = layers(mixture=lambda expert: moe.Mixture(form.width, expert, experts))
    return moe.MixtureModel(*network, aux_weight=experts.aux_weight)
