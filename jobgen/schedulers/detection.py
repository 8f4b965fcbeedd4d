"""Detection of the scheduler of this machine, by the commands on PATH."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import SCHEDULERS


class LocalScheduler(NamedTuple):
    """The scheduler of this machine. ``dialect`` is the value of --dialect; None if its command has one only.

    ``reason`` goes on after the name of the scheduler; ``certain``: nothing speaks for another dialect.
    """

    scheduler: Scheduler
    dialect: str | None
    reason: str
    certain: bool


def of_machine() -> LocalScheduler:
    """Return the scheduler of this machine."""
    name, reason = detect()
    row = SCHEDULERS[name]
    return LocalScheduler(
        row, None if "dialect" in row.lacks else name, reason, reason.startswith(", because")
    )


def detect() -> tuple[str, str]:
    """Return the scheduler of this machine and the reason. Slurm first: it often has its own qsub."""
    from shutil import which

    if which("sbatch"):
        return "slurm", ", because sbatch is on PATH"
    if (qsub := which("qsub")) is None:
        return "local", ", because neither sbatch nor qsub is on PATH"
    version = _version(qsub)
    if "pbs_version" in version.lower():
        return "pbspro", ", because qsub says pbs_version"
    if version.lower().lstrip().startswith("version:") or "torque" in version.lower():
        return "torque", ", because qsub has Torque's version"
    return "pbspro", ", but qsub --version does not print it: it may be Torque"


def _version(qsub: str) -> str:
    from jobgen.hosts.calls import SchedulerError, call

    try:
        done = call((qsub, "--version"), patience=10)
    except SchedulerError:
        return ""
    return done.out + done.err
