"""The options that a scheduler accepts, with or without a value: for completion, the web page and errors."""

from __future__ import annotations

import re
from collections.abc import Collection

from jobgen.launch.containers import RUNTIMES
from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import SCHEDULERS


def accepts(scheduler: Scheduler, key: str, word: str = "") -> bool:
    """Return whether jobs of a scheduler can have an option, with this word as its value."""
    if key in scheduler.lacks or not word:
        return key not in scheduler.lacks
    if key == "launcher":
        return LAUNCHERS[word].starts(scheduler.command_name)
    if key == "mpi":
        return scheduler.name in (MPI_FLAVOURS[word].dialects or SCHEDULERS)
    if key == "container":  # a runtime can be a part of a scheduler's command
        command = RUNTIMES[word].command
        return command == scheduler.node_step or command not in _NODE_STEPS
    return key != "remote" or word == "auto" or not scheduler.behaviour.one_host


_NODE_STEPS = {row.node_step for row in SCHEDULERS.values()}


def is_bare(takes: Collection[str], name: str, following: str) -> bool:
    """Return whether a word is an option with a value in jobgen that a scheduler's command has without one,
    and no value follows."""
    bare = (row.grammar.long_options.get(name[2:], "=") != "=" for row in SCHEDULERS.values())
    return name in takes and not re.match(r"[^-]", following) and any(bare)
