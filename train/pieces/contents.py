"""The contents of a checkpoint: states of objects, and plain values."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ..errors import BadInput, suggestion

PLAIN = (str, bytes, bool, int, float, type(None), torch.dtype, torch.device, torch.Size)


def split(state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return {"objects": states of those with state_dict(), "values": the others}, by name.

    Raise BadInput for a value that storage.load would not read.
    """
    objects = {name: _inner(one).state_dict() for name, one in state.items() if hasattr(one, "state_dict")}
    values = {name: one for name, one in state.items() if name not in objects}
    for name, one in {**objects, **values}.items():
        for place, wrong in _foreign(one, name):
            raise BadInput(
                f"Checkpoints.save: {place} is a {type(wrong).__module__}.{type(wrong).__name__}: save "
                "numbers, texts, lists, dicts, tensors and arrays, or objects with state_dict()"
            )
    return {"objects": objects, "values": values}


def buffers(state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return copies of the buffers of all modules in `state`, which each rank has of its own."""
    return {name: buffer.detach().cpu() for name, buffer in _buffers(state)}


def load_buffers(there: Mapping[str, torch.Tensor], objects: Mapping[str, Any]) -> None:
    """Set the buffers of all modules in `objects` to those of `buffers`."""
    for name, buffer in _buffers(objects):
        buffer.copy_(there[name])


def match(folder: Path, there: Mapping[str, Any], objects: Mapping[str, Any]) -> None:
    """Raise BadInput unless `objects` has the names in the checkpoint, and each can load a state."""
    for name, one in objects.items():
        if one is not None and not hasattr(one, "load_state_dict"):
            raise BadInput(
                f"Checkpoints.resume: {name} has no load_state_dict(); values are returned, not given"
            )
        if name not in there:
            has = f"it has {', '.join(there)}" if there else "it has none"
            raise BadInput(f"{folder} has no object {name}; {has}{suggestion(name, there)}")
    for name in there:
        if name not in objects:
            raise BadInput(
                f"{folder} has the object {name}: give {name}= to resume, or {name}=None to ignore it"
            )


def load(there: Mapping[str, Any], objects: Mapping[str, Any]) -> None:
    """Load the states into the objects that are not None."""
    for name, one in objects.items():
        if one is not None:
            _inner(one).load_state_dict(there[name])


def _inner(one: Any) -> Any:
    # A checkpoint does not depend on the number of ranks.
    return one.module if isinstance(one, DistributedDataParallel) else one


def _buffers(state: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, one in state.items():
        if isinstance(one, nn.Module):
            yield from ((f"{name}.{key}", buffer) for key, buffer in _inner(one).named_buffers())


def _foreign(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the values that cannot be read back, with their places."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _foreign(key, f"a key of {place}")
            yield from _foreign(one, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple | set):
        for number, one in enumerate(value):
            yield from _foreign(one, f"{place}[{number}]")
    elif isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biuf":
        return
    elif type(value) not in (*PLAIN, torch.Tensor, nn.Parameter):
        yield place, value
