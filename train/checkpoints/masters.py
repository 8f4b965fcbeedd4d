"""The weights in fp32 that DeepSpeed's optimizers keep where the model computes in half precision, read from
the files of a checkpoint, in the cases in which DeepSpeed itself has no tool for that."""

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

Weights = dict[str, torch.Tensor]
SHARE = re.compile(r"zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$")


def of_shares(folder: Path, state: Weights) -> Weights:
    """Of a pipeline, each of whose ranks has saved a share, and where in it which parameter lies: those of
    `state`, as far as they are there."""
    files = [(match, file) for file in folder.iterdir() if (match := SHARE.search(file.name))]
    pieces: dict[str, list[torch.Tensor]] = defaultdict(list)
    for _, file in sorted(files, key=lambda each: tuple(map(int, each[0].groups()))):
        optimizer = _load(file)["optimizer_state_dict"]
        shares = optimizer.get("single_partition_of_fp32_groups", ())
        for places, share in zip(optimizer.get("param_slice_mappings", ()), shares, strict=False):
            for name, place in places.items():
                pieces[name].append(share[place.start : place.start + place.numel])
    whole = {name: torch.cat(some) for name, some in pieces.items() if name in state}
    return {
        name: flat.view(state[name].shape)
        for name, flat in whole.items()
        if flat.numel() == state[name].numel()
    }


def of_one_file(saved: dict[str, Any], state: Weights) -> Weights:
    """Of ZeRO stage 0, where every rank has all of them, in the order of the parameters; {} where there are
    none, or in an order of their own."""
    groups = (saved.get("optimizer") or {}).get("fp32_groups") or []
    names = [name for name in state if name not in saved.get("buffer_names", ())]
    if len(groups) != 1 or [each.shape for each in groups[0]] != [state[name].shape for name in names]:
        return {}
    return dict(zip(names, (each.detach() for each in groups[0]), strict=True))


def _load(file: Path) -> Any:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # the file names classes of DeepSpeed, which looks for one
    return torch.load(file, map_location="cpu", weights_only=False)
