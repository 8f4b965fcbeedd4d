"""Batch sizes: global batch = micro batch x accumulation x data-parallel ranks.

Any two of the first three determine the third. Does not import torch.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import CommonMistake
from .engines import spec_of
from .settings import Settings

MICRO, ACCUMULATION, TOTAL = (
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "train_batch_size",
)
DEFAULT_MICRO = 32


class Batch(NamedTuple):
    """micro: samples per forward pass of one rank; accumulation: forward passes per optimizer step."""

    micro: int
    accumulation: int


class Number(NamedTuple):
    """A size and its origin, for messages."""

    value: int
    source: str


def replicas(settings: Settings, world_size: int) -> int:
    """Return the number of data-parallel ranks: all ranks, divided by the number of pipeline stages.

    Raise CommonMistake if the ranks cannot be divided by --stages or --expert-parallel.
    """
    stages = stages_of(settings, world_size)
    if world_size % stages:
        raise CommonMistake(
            f"--stages {stages} does not divide the {world_size} ranks: each stage of a pipeline has one rank"
        )
    share = settings.expert_parallel or 1
    if world_size % share:
        raise CommonMistake(
            f"--expert-parallel {share} does not divide the {world_size} ranks: each group of "
            f"{share} ranks has all experts"
        )
    return world_size // stages


def stages_of(settings: Settings, world_size: int) -> int:
    """Return the number of pipeline stages; 1 for engines without a pipeline."""
    return (settings.stages or world_size) if spec_of(settings).pipelined else 1


def batch_sizes(config: Mapping[str, Any], settings: Settings, parallel: int) -> tuple[Batch, list[str]]:
    """Return the batch sizes, and notes on values that were overruled.

    parallel: number of data-parallel ranks, see `replicas`. Options take precedence; the file determines
    sizes that they leave open. Raise CommonMistake, with all numbers, if the sizes contradict each other.
    """
    values = {TOTAL: settings.global_batch, MICRO: settings.batch_size, ACCUMULATION: settings.accumulation}
    options = {key: value for key, value in values.items() if value}
    in_file = {key: size for key in values if (size := _size(config, key))}
    sizes = {key: Number(value, OPTIONS[key]) for key, value in options.items()}
    notes = [
        f"{OPTIONS[key]} {options[key]} overrides the config file's {in_file[key]}"
        for key in options
        if in_file.get(key, options[key]) != options[key]
    ]
    # Of the file's sizes, the total has the lowest priority: the micro batch must fit into device memory.
    for key in (MICRO, ACCUMULATION, TOTAL):
        if key in in_file and key not in sizes and (not options or _fits(sizes, key, in_file[key], parallel)):
            sizes[key] = Number(in_file[key], "the config file")
        elif key in in_file and key not in sizes:
            notes.append(f"the options override the config file's {key} {in_file[key]}")
    return _complete(sizes, parallel), notes


class Before(NamedTuple):
    """The batch sizes of a checkpoint to resume from.

    total: global batch; parallel: data-parallel ranks; lr_ranks: see recipe.Recipe
    """

    total: int
    micro: int
    parallel: int
    lr_ranks: int


def same_total(
    before: Before, config: Mapping[str, Any], settings: Settings, parallel: int
) -> tuple[Batch, list[str]]:
    """Return batch sizes for another number of data-parallel ranks with the same global batch, and notes.

    The micro batch is --batch-size or that of the checkpoint, or less if there are more ranks. Raise
    CommonMistake if `parallel` does not divide the global batch.
    """
    try:
        batch, notes = batch_sizes(config, settings, parallel)
    except CommonMistake:
        batch, notes = Batch(0, 0), []
    if batch.micro * batch.accumulation * parallel == before.total or settings.global_batch not in (
        None,
        before.total,
    ):
        return batch, notes
    each, rest = divmod(before.total, parallel)
    if rest:
        raise CommonMistake(
            f"--resume: {parallel} data-parallel ranks cannot divide the global batch of {before.total} "
            f"samples of the checkpoint, saved by {before.parallel}: use a number of ranks that divides it"
        )
    limit = min(settings.batch_size or before.micro, each)
    micro = next(size for size in range(limit, 0, -1) if each % size == 0)
    result = Batch(micro, each // micro)
    return result, [
        f"resumed with {parallel} data-parallel rank(s) instead of {before.parallel}: the global batch stays "
        f"{before.total} = micro batch {result.micro} x accumulation {result.accumulation} x {parallel}"
    ]


OPTIONS = {TOTAL: "--global-batch", MICRO: "--batch-size", ACCUMULATION: "--accumulation"}


def _fits(sizes: Mapping[str, Number], key: str, value: int, parallel: int) -> bool:
    """Return whether the file's value is consistent with the sizes that are already determined."""
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
    """Return the size's option, or its config key if no option stated it."""
    return OPTIONS[key] if key in sizes and sizes[key].source.startswith("--") else key


def _size(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise CommonMistake(f"{key} in the config file must be a whole number of at least 1, not {value!r}")
    return value
