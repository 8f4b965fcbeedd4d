"""A trained model, whole on each rank: of a checkpoint, or of what export made of one."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from .. import checkpoints, device, engines, peers, ranks
from ..addresses import free_port
from ..checkpoints import Checkpoint, fingerprint, initial, whole
from ..checkpoints.whole import Weights
from ..config import Settings, commands, finetuning, from_record
from ..engines.deepspeed_common import load_deepspeed
from ..engines.deepspeed_patches import EXPERTS
from ..errors import BadInput
from ..models import lora

ABOUT = "jobgen.json"  # in an exported directory of transformers: what OUT.json is beside an exported file


class Trained(NamedTuple):
    """A trained model.

    settings: of its run; state: its weights, with --lora those of the adapters, or None if transformers reads
    them; checkpoint: None for an exported model
    """

    place: Path
    settings: Settings
    state: Weights | None
    checkpoint: Checkpoint | None = None


def load(source: Path, ema: bool) -> Trained:
    """Return the trained model in `source`, a checkpoint or an exported file or directory.

    ema: with the averaged weights. Raise BadInput if `source` cannot be read or has no averaged weights.
    """
    if (source / ABOUT).is_file():
        settings = _settings(source, source / ABOUT, ema)
        return Trained(source, replace(settings, model=f"hf:{source.absolute()}"), None)
    if source.suffix not in commands.SUFFIXES or source.is_dir():
        checkpoint = checkpoints.at(source)
        return of_checkpoint(checkpoint, ema)
    return Trained(source, _settings(source, description(source), ema), _read(source))


def of_checkpoint(checkpoint: Checkpoint, ema: bool) -> Trained:
    """Return the trained model of a checkpoint, with floats in fp32. Raise BadInput as whole.combine does."""
    settings = finetuning.restored(checkpoint.settings)
    return Trained(checkpoint.directory, settings, whole.weights(checkpoint, ema), checkpoint)


def _settings(place: Path, file: Path, ema: bool) -> Settings:
    """Return the settings of the exported model in `place`, which `file` describes."""
    try:
        about: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        settings, averaged = from_record(about["settings"]), about["ema"]
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"{file}, which describes {place.name}, cannot be read: {error}") from None
    if ema and not averaged:
        raise BadInput(f"{place} has no averaged weights: export them with --ema")
    return settings


def description(file: Path) -> Path:
    """Return the path of the JSON file that describes the exported `file`."""
    return file.with_name(file.name + ".json")


def _read(file: Path) -> Weights:
    source = initial.weights(file)
    return {name: source.read(name) for name in source.shapes}


def alone() -> device.Device:
    """Return the device of this process, which becomes a group of one rank."""
    return _connect(ranks.Ranks(0, 1, 0, 1, "127.0.0.1", free_port(), "one process"))


def together() -> tuple[device.Device, engines.Share]:
    """Return the device of this rank, and its share of the samples: all of them without a launcher."""
    me = ranks.discover(os.environ)
    if me.world_size == 1:
        return alone(), engines.Share(0, 1)
    return _connect(me), engines.Share(me.rank, me.world_size)


def _connect(me: ranks.Ranks) -> device.Device:
    ranks.export(me, os.environ)
    mine = device.choose(me, os.environ)
    peers.connect(me, mine)
    return mine


def model_with(trained: Trained, shape: Any, outputs: int, mine: device.Device) -> nn.Module:
    """Return the trained model on the host, with its adapters. Raise BadInput if the weights do not fit it.

    shape, outputs: see models.selection.build
    """
    # The experts take a batch of any size, and plain torch has attention in fp32.
    flash = trained.settings.attention == finetuning.FLASH
    attention = None if flash else trained.settings.attention
    one = replace(trained.settings, expert_parallel=None, min_capacity=0, attention=attention)
    with whole_experts(trained.state or {}, mine):
        model = engines.model(one, shape, outputs, mine)
    if trained.state is None:
        return model
    if trained.checkpoint:
        fingerprint.check(model, trained.checkpoint)
    try:
        if one.lora:
            lora.load(model, trained.state)
        else:
            model.load_state_dict(trained.state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{trained.place} does not fit the model of its run: {reason}") from None
    return model


@contextmanager
def whole_experts(state: Weights, mine: device.Device) -> Iterator[None]:
    """Within the context, let each expert layer of DeepSpeed have all its experts."""
    if not any(EXPERTS in f".{name}" for name in state):
        yield
        return
    load_deepspeed(mine)
    from deepspeed.moe.layer import MoE

    own = MoE.__init__

    def whole_layer(self: Any, *args: Any, **named: Any) -> None:
        call = signature(own).bind(self, *args, **named)
        call.arguments["ep_size"] = 1
        own(*call.args, **call.kwargs)

    MoE.__init__ = whole_layer
    try:
        yield
    finally:
        MoE.__init__ = own
