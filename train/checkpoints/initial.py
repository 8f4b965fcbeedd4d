"""--init-from: the weights with which a training starts, from any kind of path that foreign.py lists."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..errors import BadInput, CommonMistake
from ..models.division import WHOLE, Division
from . import foreign, resume, whole

PREFIXES = ("module.", "_orig_mod.")  # of DistributedDataParallel and torch.compile
NESTED = ("model", "state_dict", "model_state_dict", "module")  # keys of a state_dict in a larger file
SHOWN = 3  # names in a message


@dataclass(frozen=True)
class Weights:
    """The weights in a path: their shapes by name, and a function that reads one of them."""

    shapes: dict[str, tuple[int, ...]]
    read: Callable[[str], torch.Tensor]


def load(model: nn.Module, place: Path, division: Division = WHOLE) -> None:
    """Copy the weights in `place` into the model, which may be divided among the ranks.

    Raise CommonMistake, with names and shapes, if they do not fit it, and BadInput if they cannot be read.
    All ranks go on until the last weight: at ZeRO 3 they exchange each one.
    """
    source = _renamed(weights(place), set(model.state_dict()))
    targets = dict(with_names(model))
    problems = list(_problems(targets, source, set(model.state_dict())))
    if problems:
        raise CommonMistake(f"--init-from {place} does not fit the model: {'; '.join(problems)}")
    for names, target in targets.items():
        with division.change(target) as here, torch.no_grad():
            if here:
                value = source.read(next(name for name in names if name in source.shapes))
                if value.is_floating_point() != target.is_floating_point():
                    problems.append(f"{names[0]} has {value.dtype} there, and {target.dtype} in the model")
                target.copy_(value)
    if problems:
        raise CommonMistake(f"--init-from {place} does not fit the model: {problems[0]}")


def weights(place: Path) -> Weights:
    """Return the weights in a path. Raise BadInput if they cannot be read."""
    kind = foreign.kind(place)
    if kind == foreign.OURS:
        checkpoint = resume.at(place)
        if checkpoint.settings.lora:
            raise CommonMistake(
                f"--init-from {place} has adapters alone, of a run with --lora: export it first, "
                "python -m jobgen.train export CKPT OUT"
            )
        return _in_memory(whole.weights(checkpoint, ema=False))
    parts = [_file(file) for file in ([place] if kind == foreign.FILE else foreign.files(place))]
    owners = {name: part for part in parts for name in part.shapes}
    shapes = {name: part.shapes[name] for name, part in owners.items()}
    return Weights(shapes, lambda name: owners[name].read(name))


def _file(file: Path) -> Weights:
    return _safetensors(file) if file.suffix == ".safetensors" else _in_memory(read_torch(file))


def _safetensors(file: Path) -> Weights:
    from safetensors import SafetensorError, safe_open

    try:
        content: Any = safe_open(file, "pt")
        shapes = {name: tuple(content.get_slice(name).get_shape()) for name in content.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{file} cannot be read as safetensors: {error}; {_begin(file)}") from None
    return Weights(shapes, content.get_tensor)


def _in_memory(state: Mapping[str, torch.Tensor]) -> Weights:
    return Weights({name: tuple(tensor.shape) for name, tensor in state.items()}, state.__getitem__)


def read_torch(file: Path) -> dict[str, torch.Tensor]:
    """Return the state_dict in a file of torch.save. Raise BadInput if there is none."""
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can raise almost any exception
        kinds = _unsafe(file)
        reason = f"it has {kinds}, not only tensors" if kinds else _begin(file)
        raise BadInput(
            f"{file} cannot be read as weights: {reason}; --init-from takes a file of "
            f"torch.save(model.state_dict(), FILE) ({type(error).__name__})"
        ) from None
    if isinstance(content, Mapping):
        content = next((content[key] for key in NESTED if isinstance(content.get(key), Mapping)), content)
        tensors = {str(name): each for name, each in content.items() if isinstance(each, torch.Tensor)}
        if tensors:
            return tensors
    names = (
        ", ".join(map(str, list(content)[:SHOWN])) if isinstance(content, Mapping) else type(content).__name__
    )
    raise BadInput(f"{file} has no weights by name, but {names}: --init-from takes a state_dict")


def _unsafe(file: Path) -> str:
    """Return the classes in a file of torch.save that could execute code; '' if it is no such file."""
    try:
        return ", ".join(sorted(torch.serialization.get_unsafe_globals_in_checkpoint(file))[:SHOWN])
    except Exception:  # not a file of torch.save
        return ""


def _begin(file: Path) -> str:
    with open(file, "rb") as stream:
        return f"its {file.stat().st_size} bytes begin with {stream.read(8)!r}"


def with_names(model: nn.Module) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each weight and buffer of the state_dict once, after all its names."""
    persistent = set(model.state_dict())
    names: dict[int, list[str]] = {}
    tensors: dict[int, Any] = {}
    for each in (model.named_parameters(remove_duplicate=False), model.named_buffers(remove_duplicate=False)):
        for name, tensor in each:
            if name in persistent:
                names.setdefault(id(tensor), []).append(name)
                tensors[id(tensor)] = tensor
    for key, tensor in tensors.items():
        yield tuple(names[key]), tensor


def _problems(targets: Mapping[tuple[str, ...], Any], source: Weights, known: set[str]) -> Iterator[str]:
    missing = [names[0] for names in targets if not any(name in source.shapes for name in names)]
    if missing:
        yield f"of its {len(targets)} weights, {len(missing)} are missing there, {_some(missing)}"
    unknown = [name for name in source.shapes if name not in known]
    if unknown:
        yield f"of the {len(source.shapes)} there, it does not have {len(unknown)}, {_some(unknown)}"
    for names, target in targets.items():
        needed = tuple(getattr(target, "ds_shape", target.shape))  # ds_shape: of a weight that ranks divide
        for name in names:
            shape = source.shapes.get(name, needed)
            if shape != needed:
                yield f"{name} is {list(shape)} there, and {list(needed)} in the model"
                return


def _some(names: list[str]) -> str:
    return "such as " + ", ".join(names[:SHOWN])


def _renamed(source: Weights, known: set[str]) -> Weights:
    """Return the weights without the prefixes of all their names that the model does not have."""
    names = {name: name for name in source.shapes}  # without prefixes: in the file
    while not known & set(names) and (
        prefix := next((each for each in PREFIXES if names and all(n.startswith(each) for n in names)), None)
    ):
        names = {name.removeprefix(prefix): there for name, there in names.items()}
    shapes = {name: source.shapes[there] for name, there in names.items()}
    return Weights(shapes, lambda name: source.read(names[name]))
