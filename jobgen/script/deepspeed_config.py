"""The DeepSpeed config that a program reads: its file, and batch sizes that do not fit the ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jobgen.values import hjson_text
from jobgen.values.text_files import read_text

if TYPE_CHECKING:
    from jobgen.plan.plan import Plan

_OPTIONS = (
    *("--deepspeed_config", "--deepspeed-config", "--ds_config", "--deepspeed"),
    *("--deepspeed_config_file", "--deepspeed-config-file"),  # of accelerate launch
)
_SIZES = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
PARALLEL = re.compile(r"pipeline|tensor.?model.?parallel|--tp|--pp|sequence.?parallel", re.IGNORECASE)


def file_in(words: Sequence[str | None]) -> tuple[int, str] | None:
    """Return the config that the words of a program name, with the index of its option; None without one."""
    for at, word in enumerate(words):
        name, equals, value = (word or "").partition("=")
        file = value if equals else words[at + 1] if at + 1 < len(words) else None
        if name in _OPTIONS and file and file.endswith(".json"):
            return at, file
    return None


def read(path: str) -> Any:
    """Return what a file holds for DeepSpeed, or the text of the error; None if it cannot be read."""
    try:
        return hjson_text.parse(read_text(path))
    except OSError:
        return None  # it may be written later, or be in another directory
    except (ValueError, RecursionError) as error:
        return str(error)


def whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def batch_fault(name: str, config: Mapping[str, Any], world: int) -> tuple[str, str] | None:
    """Return the fault in the batch sizes of a config for this number of ranks, and its remedy."""
    total, micro, steps = (whole(config.get(key)) for key in _SIZES)
    if any(config.get(key) is not None and whole(config[key]) is None for key in _SIZES):
        return None  # "auto"
    if total and micro and steps and total != micro * steps * world:
        fault = f"{name}: train_batch_size is {total}, but {micro} x {steps} accumulation steps x {world} "
        fault += f"ranks = {micro * steps * world}: every rank fails at deepspeed.initialize"
        return fault, "remove one of the three: DeepSpeed computes it"
    if total and (other := micro or steps) and not (micro and steps) and total % (other * world):
        fault = f"{name}: train_batch_size {total} is not a multiple of {other} x {world} ranks"
        return fault, f"choose a multiple of {other * world}"
    return None


def warnings(plan: Plan) -> tuple[str, ...]:
    """Return a warning for each program of a job whose config can be read and does not fit its ranks."""
    found = []
    for one in plan.steps or (plan,):
        words, world = one.program.words, one.resources.active.world_size
        named = file_in(words)
        if named is None or not world or PARALLEL.search(" ".join(words)):
            continue
        config = read(os.path.join(plan.spec.directory_on_this_machine(), named[1]))
        if isinstance(config, dict) and (fault := batch_fault(named[1], config, world)):
            found.append("; ".join(fault))
    return tuple(found)
