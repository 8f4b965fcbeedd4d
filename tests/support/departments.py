"""The clusters of tests/departments: a folder each, with the configuration of its scheduler, the recorded answers of the
scheduler, the site file that they become, and the jobs to expect.

=================  ================================================================================================
department.toml    what the cluster is, and its jobs: options, what the scheduler shows of each, whether it starts
slurm.conf         nodes, partitions and what differs from the defaults; nodes have neither addresses nor ports
gres.conf          the devices of the nodes, which are numbers without files
accounts           lines for sacctmgr; without this file the cluster has no accounting
qmgr               of PBS Pro and Torque: lines for qmgr
NODE.vnodes        of PBS Pro: the vnodes of a node, for its pbs_mom
answers.txt        the answers of the scheduler's commands (``support.answers``), to the user ada
site.toml          what ``jobgen site new`` writes
job-1.sh, ...      the first lines of each job
=================  ================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tomllib

from support import ROOT

FOLDER = ROOT / "tests/departments"


@dataclass(frozen=True)
class DepartmentJob:
    """A job, and what its scheduler shows of it."""

    options: str
    """Those of jobgen, but for the site and the program."""
    shows: dict[str, str] = field(default_factory=dict)
    """Fields of ``scontrol show job`` or ``qstat -f``; of a list such as TRES, the members to expect."""
    refused: str = ""
    """A part of the message with which jobgen refuses it."""
    starts: bool = True


@dataclass(frozen=True)
class Department:
    """A cluster."""

    folder: Path
    about: str
    scheduler: str
    jobs: tuple[DepartmentJob, ...]
    slurm: str = "22.05"
    """The version of Slurm whose answers are recorded."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def vnodes(self) -> list[Path]:
        """The files NODE.vnodes, with the vnodes of a node of OpenPBS."""
        return [*self.folder.glob("*.vnodes")]

    def text(self, name: str) -> str:
        """Return a file; an empty text where it is absent."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""


def load(folder: Path) -> Department:
    table = tomllib.loads((folder / "department.toml").read_text())
    jobs = tuple(DepartmentJob(**job) for job in table.pop("job"))
    return Department(folder, jobs=jobs, **table)


ALL = [load(path.parent) for path in sorted(FOLDER.glob("*/department.toml"))]
SLURM, PBS, TORQUE = ([one for one in ALL if one.scheduler == name] for name in ("slurm", "pbspro", "torque"))


def differences(expected: dict[str, str], shown: dict[str, str]) -> list[str]:
    """Return the fields that differ from what to expect; of a list, only the members to expect are compared."""
    wrong = []
    for name, text in expected.items():
        found = shown.get(name, "nothing")
        members = {*text.split(",")} - {*found.split(",")} if "=" in text else {text} - {found}
        wrong += [f"{name} is {found}, not {text}"] if members else []
    return wrong
