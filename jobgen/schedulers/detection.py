"""Detection of the scheduler of a machine, by the commands on its PATH."""

from __future__ import annotations

from typing import NamedTuple

from jobgen.hosts.calls import SchedulerError
from jobgen.hosts.host import HERE, Host
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import SCHEDULERS


class LocalScheduler(NamedTuple):
    """The scheduler of a machine. ``dialect`` is the value of --dialect; None if its command has one only.

    ``reason`` goes on after the name of the scheduler; ``certain``: nothing speaks for another dialect.
    """

    scheduler: Scheduler
    dialect: str | None
    reason: str
    certain: bool


def of_machine(host: Host = HERE) -> LocalScheduler:
    """Return the scheduler of a machine."""
    name, reason = detect(host)
    row = SCHEDULERS[name]
    return LocalScheduler(
        row, None if "dialect" in row.lacks else name, reason, reason.startswith(", because")
    )


def detect(host: Host = HERE) -> tuple[str, str]:
    """Return the scheduler of a machine and the reason. Slurm first: it often has its own qsub."""
    if host.which("sbatch"):
        return "slurm", ", because sbatch is on PATH"
    if host.which("qsub"):
        return of_qsub(host)
    return "local", ", because neither sbatch nor qsub is on PATH"


def of_qsub(host: Host = HERE) -> tuple[str, str]:
    """Return the scheduler to which qsub belongs, and the reason."""
    version = _version(host)
    if "pbs_version" in version.lower():
        return "pbspro", ", because qsub says pbs_version"
    if version.lower().lstrip().startswith("version:") or "torque" in version.lower():
        return "torque", ", because qsub has Torque's version"
    return "pbspro", ", but qsub --version does not print it: it may be Torque"


def _version(host: Host) -> str:
    try:
        done = host.call(("qsub", "--version"), patience=10)
    except SchedulerError:
        return ""
    return done.out + done.err
