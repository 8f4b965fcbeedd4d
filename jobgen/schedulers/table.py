"""The table of schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.local import LOCAL
from jobgen.schedulers.pbspro import PBSPRO
from jobgen.schedulers.slurm import SLURM
from jobgen.schedulers.torque import TORQUE

if TYPE_CHECKING:
    from jobgen.spec import Specification

SCHEDULERS: dict[str, Scheduler] = {one.name: one for one in (PBSPRO, TORQUE, SLURM, LOCAL)}
# The commands of jobgen, in the order of its help.
COMMANDS = tuple(dict.fromkeys(one.command_name for one in SCHEDULERS.values()))


def named(command_name: str, dialect: str | None) -> Scheduler:
    """Return the scheduler of a command of jobgen; without a dialect, the first one."""
    known = [one for one in SCHEDULERS.values() if one.command_name == command_name]
    return next((one for one in known if one.name == dialect), known[0])


def scheduler_of(spec: Specification) -> Scheduler:
    """Return the scheduler of a specification."""
    return named(spec.scheduler, spec.dialect).for_job(spec)


def queued() -> dict[str, Scheduler]:
    """Return the schedulers that jobs are submitted to, by their commands."""
    return {name: named(name, None) for name in COMMANDS if not named(name, None).behaviour.one_host}
