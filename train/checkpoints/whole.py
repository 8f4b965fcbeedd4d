"""The weights of the whole model, combined from the files of a checkpoint, on the CPU.

Weights in half precision are replaced by their fp32 copy if the checkpoint has one. A run with --lora saves
the weights that it trains, and the buffers.
"""

import os
import re
from collections import defaultdict
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch

from ..config.deepspeed.query import enabled
from ..config.engines import spec_of
from ..errors import BadInput
from . import storage
from .directory import Checkpoint, verify

Weights = dict[str, torch.Tensor]
TIED = "tied_modules."  # in DeepSpeed's names of weights that two stages of a pipeline share
SHARE = re.compile(r"zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$")


def weights(checkpoint: Checkpoint, ema: bool) -> Weights:
    """Return the state_dict of the whole model, with floats in fp32. Raise BadInput as `combine` does."""
    return in_fp32(combine(checkpoint, ema))


def in_fp32(state: Weights) -> Weights:
    return {
        name: (tensor.float() if tensor.is_floating_point() else tensor).clone()
        for name, tensor in state.items()
    }


def combine(checkpoint: Checkpoint, ema: bool) -> Weights:
    """Return the state_dict of the whole model, combined from the files of all ranks.

    It is the state that an evaluation uses. Weights in half precision are replaced by their fp32 copy if the
    checkpoint has one. Raise BadInput if the checkpoint is damaged, or if `ema` is set and it has no averaged
    weights.
    """
    verify(checkpoint.directory, checkpoint.record["files"])
    if ema and checkpoint.settings.ema is None:
        raise BadInput(f"{checkpoint.directory} has no averaged weights: its run had no --ema")
    state = LAYOUTS[spec_of(checkpoint.settings).layout](checkpoint) | storage.buffers(checkpoint)
    if ema:
        state |= _average(checkpoint)
    return state


def _whole(checkpoint: Checkpoint) -> Weights:
    """Return the weights of an engine that saves them in one file."""
    state: Weights = storage.load(checkpoint.directory / "model.pt")["model"]
    return state


def _sharded(checkpoint: Checkpoint) -> Weights:
    """Return the weights of an engine that saves them in the format of torch.distributed.checkpoint."""
    from . import sharded  # its imports take a while

    state = sharded.whole(checkpoint.directory / sharded.FOLDER, f"{sharded.MODEL}.")
    names = storage.load(checkpoint.directory / sharded.FILE)["names"]
    return state | {name: state[other] for name, other in names.items()}


def _pipeline(checkpoint: Checkpoint) -> Weights:
    """Return the weights of a pipeline, which DeepSpeed saves in one file per layer.

    These files have the dtype of the computation; an fp32 copy replaces half precision where there is one.
    """
    state: Weights = {}
    folder = checkpoint.directory / "deepspeed"
    for file in sorted(folder.glob("layer_*-model_states.pt")):
        layer = int(file.name.removeprefix("layer_").partition("-")[0])
        state |= {f"{layer}.{name}": tensor for name, tensor in _load_with_code(file).items()}
    return state | (_masters_of_shares(folder, state) if _half(checkpoint) else {})


def _deepspeed(checkpoint: Checkpoint) -> Weights:
    """Return the weights of a checkpoint of DeepSpeed.

    The fp32 copy that ZeRO keeps is preferred: it is more exact than half precision, and at stage 3 it is the
    only form that DeepSpeed can combine.
    """
    config, folder = checkpoint.record["deepspeed"], checkpoint.directory / "deepspeed"
    stage = config["zero_optimization"]["stage"]
    experts = sorted(folder.glob("layer_*_expert_*_model_states.pt"))
    if stage == 3 or (stage and _half(checkpoint) and not experts):
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
        from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # it prints every step
            combine = get_fp32_state_dict_from_zero_checkpoint
            adapters = bool(checkpoint.settings.lora)
            return dict(combine(str(checkpoint.directory), folder.name, exclude_frozen_parameters=adapters))
    content = _load_with_code(folder / "mp_rank_00_model_states.pt")
    state: Weights = content["module"]
    if _half(checkpoint) and not experts:
        state |= _masters_of_one_file(content, state)
    for file in experts:
        state |= _load_with_code(file)
    return state


def _masters_of_shares(folder: Path, state: Weights) -> Weights:
    """Return the fp32 weights of a pipeline, combined from the shares of its ranks.

    Each rank saves its share and the position of each parameter in it. The result has the parameters of
    `state` that are complete.
    """
    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # loading imports DeepSpeed, which would search for one
    shards = [(match, file) for file in folder.iterdir() if (match := SHARE.search(file.name))]
    pieces: dict[str, list[torch.Tensor]] = defaultdict(list)
    stages: dict[str, str] = {}  # weights that two stages share are taken from the first one
    for match, file in sorted(shards, key=lambda each: tuple(map(int, each[0].groups()))):
        optimizer = _load_with_code(file)["optimizer_state_dict"]
        shares = optimizer.get("single_partition_of_fp32_groups", ())
        for places, share in zip(optimizer.get("param_slice_mappings", ()), shares, strict=False):
            for name, place in places.items():
                if stages.setdefault(name, match[2]) == match[2]:
                    here = share[place.start : place.start + place.numel]
                    pieces[name.removeprefix(TIED)].append(here)
    whole = {name: torch.cat(some) for name, some in pieces.items() if name in state}
    return {
        name: flat.view(state[name].shape)
        for name, flat in whole.items()
        if flat.numel() == state[name].numel()
    }


def _masters_of_one_file(content: dict[str, Any], state: Weights) -> Weights:
    """Return the fp32 weights at ZeRO stage 0, where every rank saves all of them.

    Return {} if there are none, or if their shapes are not those of the parameters in order.
    """
    groups = (content.get("optimizer") or {}).get("fp32_groups") or []
    names = [name for name in state if name not in content.get("buffer_names", ())]
    if len(groups) != 1 or [each.shape for each in groups[0]] != [state[name].shape for name in names]:
        return {}
    return dict(zip(names, (each.detach() for each in groups[0]), strict=True))


LAYOUTS = {
    "one file": _whole,
    "sharded": _sharded,
    "deepspeed": _deepspeed,
    "deepspeed, a file a layer": _pipeline,
}


def _half(checkpoint: Checkpoint) -> bool:
    return enabled(checkpoint.record["deepspeed"], "bf16") or enabled(checkpoint.record["deepspeed"], "fp16")


def _average(checkpoint: Checkpoint) -> Weights:
    state: Weights = {}
    for file in sorted(checkpoint.directory.glob("ema-*.pt")):
        part = int(file.stem.removeprefix("ema-"))
        weights = storage.load(file)["weights"]
        share = 1 + max((int(at[2]) for name in weights if (at := re.search(EXPERT, name))), default=0)
        for name, tensor in weights.items():
            name = name.removeprefix(TIED)
            # Each rank numbers its own experts from 0.
            state[re.sub(EXPERT, lambda at: f"{at[1]}{int(at[2]) + part * share}", name)] = tensor  # noqa: B023
    return state


EXPERT = r"(\.deepspeed_experts\.)(\d+)"


def _load_with_code(file: Path) -> Any:
    """Load a file of DeepSpeed, which contains more than tensors and could therefore execute code."""
    return torch.load(file, map_location="cpu", weights_only=False)
