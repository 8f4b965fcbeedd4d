"""How many samples each forward pass takes: global batch = micro batch x accumulation x data-parallel
ranks, of which any two of the first three give the third. No torch here."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import CommonMistake
from . import Settings

MICRO, ACCUMULATION, TOTAL = (
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "train_batch_size",
)
DEFAULT_MICRO = 32


class Batch(NamedTuple):
    """Samples per forward pass of one rank, and forward passes per optimizer step."""

    micro: int
    accumulation: int


class Number(NamedTuple):
    """A size and what stated it, for messages."""

    value: int
    source: str


def replicas(settings: Settings, world_size: int) -> int:
    """How many ranks take samples of their own: all of them, but for the stages of a pipeline.

    Raises CommonMistake if the ranks cannot be shared out.
    """
    stages = stages_of(settings, world_size)
    if world_size % stages:
        raise CommonMistake(
            f"--stages {stages} does not divide the {world_size} ranks: a pipeline has one rank a stage"
        )
    share = settings.expert_parallel or 1
    if world_size % share:
        raise CommonMistake(
            f"--expert-parallel {share} does not divide the {world_size} ranks: each group of "
            f"{share} ranks holds all experts"
        )
    return world_size // stages


def stages_of(settings: Settings, world_size: int) -> int:
    """Stages of the pipeline, 1 for the engines that have none."""
    return (settings.stages or world_size) if settings.engine == "pipeline" else 1


def batch_sizes(config: Mapping[str, Any], settings: Settings, parallel: int) -> tuple[Batch, list[str]]:
    """The batch sizes for so many ranks that take samples (see replicas), and notes on what was overruled.

    What the options say comes first; the file fills in what they leave open. Raises CommonMistake, with
    all numbers, where they do not agree.
    """
    options = {TOTAL: settings.global_batch, MICRO: settings.batch_size, ACCUMULATION: settings.accumulation}
    said = {key: value for key, value in options.items() if value}
    in_file = {key: size for key in options if (size := _size(config, key))}
    sizes = {key: Number(value, OPTIONS[key]) for key, value in said.items()}
    notes = [
        f"{OPTIONS[key]} {said[key]} wins over the config file's {in_file[key]}"
        for key in said
        if in_file.get(key, said[key]) != said[key]
    ]
    # Of the file's sizes the total yields first: what fits into a device's memory is the micro batch.
    for key in (MICRO, ACCUMULATION, TOTAL):
        if key in in_file and key not in sizes and (not said or _fits(sizes, key, in_file[key], parallel)):
            sizes[key] = Number(in_file[key], "the config file")
        elif key in in_file and key not in sizes:
            notes.append(f"the options win over the config file's {key} {in_file[key]}")
    return _complete(sizes, parallel), notes


OPTIONS = {TOTAL: "--global-batch", MICRO: "--batch-size", ACCUMULATION: "--accumulation"}


def _fits(sizes: Mapping[str, Number], key: str, value: int, parallel: int) -> bool:
    """Whether the file's value goes with the sizes that are settled already."""
    try:
        _complete({**sizes, key: Number(value, "")}, parallel)
    except CommonMistake:
        return False
    return True


def _complete(sizes: Mapping[str, Number], parallel: int) -> Batch:
    total, micro, accumulation = (
        sizes[key].value if key in sizes else None for key in (TOTAL, MICRO, ACCUMULATION)
    )
    if total is None:
        return Batch(micro or DEFAULT_MICRO, accumulation or 1)
    if micro is None:
        micro = total // ((accumulation or 1) * parallel)
    if accumulation is None:
        accumulation = total // (micro * parallel) if micro else 1
    if micro * accumulation * parallel != total:
        raise CommonMistake(
            f"{_name(sizes, TOTAL)} {total} is not {_name(sizes, MICRO)} {micro} x "
            f"{_name(sizes, ACCUMULATION)} {accumulation} x {parallel} ranks "
            f"= {micro * accumulation * parallel}"
        )
    return Batch(micro, accumulation)


def _name(sizes: Mapping[str, Number], key: str) -> str:
    """The size's option, or its key where the file or nobody stated it."""
    return OPTIONS[key] if key in sizes and sizes[key].source.startswith("--") else key


def _size(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise CommonMistake(f"{key} in the config file must be a whole number of at least 1, not {value!r}")
    return value
