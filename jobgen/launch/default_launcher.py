"""The launcher of a job for which neither its options nor its site name one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobgen.errors import one_of
from jobgen.launch.launchers import LAUNCHERS, ONE_PROCESS, PYTHON, RANKS, TRAINING
from jobgen.launch.program import read_program

# Options that only several ranks need.
OF_RANKS = ("ranks", "launcher_arg", "master_addr", "master_port", "spare_nodes", "min_nodes", "preflight")


class DefaultLauncher(NamedTuple):
    """The name of a launcher, and the programs for which it is the default."""

    name: str
    use: str


def default_launcher(words: Sequence[str], scheduler: str, several: bool) -> DefaultLauncher:
    """Return the launcher of a program; ``scheduler`` is a command of jobgen, ``several``: the job requests
    several ranks.

    Raises:
        JobgenError: the name of the program is missing.
    """
    program = read_program(tuple(words))
    if program.is_ours:
        use = TRAINING
    elif program.is_python:
        use = PYTHON
    else:
        use = RANKS if several else ONE_PROCESS
    names = [name for name, row in LAUNCHERS.items() if row.default_for == use and row.starts(scheduler)]
    return DefaultLauncher(max(names, key=lambda name: bool(LAUNCHERS[name].schedulers)), use)


def defaults_text() -> str:
    """Return the default launchers of the programs in words."""
    names = {
        use: one_of(name for name, row in LAUNCHERS.items() if row.default_for == use)
        for use in (TRAINING, PYTHON, RANKS, ONE_PROCESS)
    }
    return ", ".join(f"{name} for {use}" for use, name in names.items())
