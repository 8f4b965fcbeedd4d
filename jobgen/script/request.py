"""The options of a script that are in effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.pbspro import PBSPRO
from jobgen.schedulers.request import DirectiveOption, Request


def resources(options: tuple[DirectiveOption, ...]) -> Iterator[tuple[DirectiveOption, str, str]]:
    """Yield each ``NAME=VALUE`` of PBS's -l options; a select with its chunks is one value."""
    for option in options:
        if option.flag == "-l":
            for key, part in PBSPRO.settings(option):
                yield option, key[len("-l ") :], part.value


def settings(
    options: Sequence[DirectiveOption], scheduler: Scheduler
) -> Iterator[tuple[str, DirectiveOption]]:
    """Yield each option with the key that identifies its repetitions: see Grammar in schedulers/base.py."""
    return (setting for option in options for setting in scheduler.settings(option))


def heeded(options: Sequence[DirectiveOption], scheduler: Scheduler) -> dict[str, DirectiveOption]:
    """Return the options in effect by key; the values of options that add up are joined with commas."""
    found: dict[str, DirectiveOption] = {}
    for key, option in settings(options, scheduler):
        before, which = found.get(key), scheduler.grammar.precedence(key)
        if not key:  # words without an option
            which = "all"
        if before is None or which == "last":
            found[key] = option
        elif which == "all":
            found[key] = option._replace(value=f"{before.value},{option.value}")
    return found


_OF_NODES = ("ranks_per_node", "cpus_per_rank", "gpus_per_node", "gpu_type", "mem")


def of_components(requests: Sequence[Request]) -> Request:
    """Return the request of a job from those of its components: the number of all nodes, and what a node or a
    rank has in each of them. The numbers of ranks and devices are not known if there are several."""
    if len(requests) == 1:
        return requests[0]
    counts = [one.nodes for one in requests]
    joined = dataclasses.replace(
        requests[0],
        nodes=None if None in counts else sum(filter(None, counts)),
        ranks=None,
        gpus=None,
        chunks=tuple({"": str(count or 1)} for count in counts),
    )
    for key in _OF_NODES:
        if len({getattr(one, key) for one in requests}) > 1:
            setattr(joined, key, None)
    return joined
