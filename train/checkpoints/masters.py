"""The fp32 weights that DeepSpeed's optimizers keep for models in half precision.

They are read from the files of a checkpoint, in cases for which DeepSpeed itself has no tool.
"""

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

Weights = dict[str, torch.Tensor]
SHARE = re.compile(r"zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$")


def of_shares(folder: Path, state: Weights) -> Weights:
    """Return the fp32 weights of a pipeline, combined from the shares of its ranks.

    Each rank saves its share and the position of each parameter in it. The result has the parameters of
    `state` that are complete.
    """
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
    """Return the fp32 weights at ZeRO stage 0, where every rank saves all of them.

    Return {} if there are none, or if their shapes are not those of the parameters in order.
    """
    groups = (saved.get("optimizer") or {}).get("fp32_groups") or []
    names = [name for name in state if name not in saved.get("buffer_names", ())]
    if len(groups) != 1 or [each.shape for each in groups[0]] != [state[name].shape for name in names]:
        return {}
    return dict(zip(names, (each.detach() for each in groups[0]), strict=True))


def _load(file: Path) -> Any:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")  # loading imports DeepSpeed, which would look for one
    return torch.load(file, map_location="cpu", weights_only=False)
