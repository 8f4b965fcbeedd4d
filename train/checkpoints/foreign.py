"""Checkpoints of other programs: what a path is, and how to start from it. Does not import torch."""

import json
from pathlib import Path

from ..errors import BadInput, CommonMistake
from .directory import BEST, FOLDER, LATEST, RECORD, STEP

FILES = (".safetensors", ".pt", ".pth", ".bin")
INDEX = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
WHOLE = ("model.safetensors", "pytorch_model.bin")
KINDS = (
    "a checkpoint or run directory of this module, a file with the weights of a model (.safetensors or .pt), "
    f"or a directory with {WHOLE[0]} or {INDEX[0]}, as transformers saves it"
)
OURS, FILE, DIRECTORY = "ours", "file", "directory"  # the kinds of paths for --init-from
TO_FP32 = "python -m deepspeed.utils.zero_to_fp32"
FROM_DCP = "python -m torch.distributed.checkpoint.format_utils dcp_to_torch"


def kind(place: Path) -> str:
    """Return the kind of a path for --init-from. Raise CommonMistake, with the kinds, for any other path."""
    if not place.exists():
        raise CommonMistake(f"--init-from {place}: there is no such file or directory")
    if place.name == BEST:
        return OURS
    if not place.is_dir():
        if place.suffix in FILES:
            return FILE
        raise CommonMistake(
            f"--init-from {place}: {description(place) or 'its suffix is unknown'}; {_usable()}"
        )
    if (place / RECORD).is_file() or is_folder(place) or is_folder(place / FOLDER):
        return OURS
    if any((place / name).is_file() for name in (*INDEX, *WHOLE)):
        return DIRECTORY
    what = description(place)
    raise CommonMistake(f"--init-from {place}: {what or f'it has {_content(place)}'}; {_usable()}")


def is_folder(place: Path) -> bool:
    """Return whether checkpoints of this module are in the directory."""
    return any(STEP.fullmatch(each.name) and (each / RECORD).is_file() for each in place.glob("step-*"))


def files(directory: Path) -> list[Path]:
    """Return the files of the weights in a directory of kind DIRECTORY. Raise BadInput if one is missing."""
    for name in INDEX:
        if (directory / name).is_file():
            return _shards(directory / name)
    return [next(directory / name for name in WHOLE if (directory / name).is_file())]


def _shards(index: Path) -> list[Path]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise BadInput(f"{index} cannot be read: {error!r}") from None
    for name in names:
        if not (index.parent / name).is_file():
            raise CommonMistake(f"{index} names {name}, which does not exist")
    return [index.parent / name for name in names]


def description(place: Path) -> str:
    """Return what another program's checkpoint is, and how its weights can be used; '' if it is not known."""
    if not place.is_dir():
        if place.suffix == ".ckpt":
            return (
                f"a checkpoint of Lightning: {_extraction(place, 'state_dict')} makes a file for --init-from"
            )
        return ""
    if (place / "adapter_config.json").is_file():
        return (
            "an adapter of peft: PeftModel.from_pretrained(BASE, PATH).merge_and_unload() and "
            ".save_pretrained(DIR) make a directory for --init-from"
        )
    if deepspeed := _deepspeed(place):
        return f"a checkpoint that DeepSpeed saved: {deepspeed} for --init-from"
    is_trainer = (place / "trainer_state.json").is_file()
    if is_trainer and any((place / name).is_file() for name in (*INDEX, *WHOLE)):
        return f"a checkpoint of transformers' Trainer: --init-from {place} takes its weights"
    # That of FSDP in Trainer and accelerate is in a directory below, such as pytorch_model_fsdp_0.
    if part := next((each for each in (place, *sorted(place.glob("*model*"))) if _is_dcp(each)), None):
        return (
            f"a checkpoint of torch.distributed.checkpoint: {FROM_DCP} {part} weights.pt makes a file for "
            "--init-from"
        )
    return "a checkpoint of transformers' Trainer, without its weights" if is_trainer else ""


def _is_dcp(place: Path) -> bool:
    return (place / ".metadata").is_file() or any(place.glob("*.distcp"))


def _deepspeed(place: Path) -> str:
    """Return what makes a path for --init-from of a checkpoint of DeepSpeed; '' for anything else."""
    latest, tag = place / LATEST, place
    if latest.is_file():
        tag = place / latest.read_text(encoding="utf-8", errors="replace").strip()
    model = tag / "mp_rank_00_model_states.pt"
    if next(tag.glob("*_optim_states.pt"), None):
        source = f"{place.parent} DIR --tag {place.name}" if tag == place else f"{place} DIR"
        return f"{TO_FP32} {source} --safe_serialization makes a directory"
    return f"{_extraction(model, 'module')} makes a file" if model.is_file() else ""


def _extraction(file: Path, key: str) -> str:
    return f"torch.save(torch.load('{file}', weights_only=False)[{key!r}], 'weights.pt')"


def _content(directory: Path) -> str:
    found = sorted(each.name for each in directory.iterdir())
    return f"{', '.join(found[:5])}{', ...' if len(found) > 5 else ''}" if found else "no files"


def _usable() -> str:
    return f"--init-from takes {KINDS}"
