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

import datetime
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tomllib

from jobgen.schedulers.table import SCHEDULERS
from jobgen.site_making.creation import LoginNode, site_file, taking_jobs, without_reservations
from support import ROOT, answers, jobs

FOLDER = ROOT / "tests/departments"
USER = "ada"
"""The user whose answers are recorded."""
_LOGIN = "login1"
_DAY = "2026-01-31"


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


def differences(expected: dict[str, str], fields: dict[str, str]) -> list[str]:
    """Return the fields that differ from what to expect; of a list, only the members to expect are compared."""
    wrong = []
    for name, text in expected.items():
        value = fields.get(name, "nothing")
        members = {*text.split(",")} - {*value.split(",")} if "=" in text else {text} - {value}
        wrong += [f"{name} is {value}, not {text}"] if members else []
    return wrong


def site_file_of(department: Department, folder: Path) -> str:
    """Return the site file from the recorded answers, as if it was made on a login node on a certain day. The folder is for
    programs that print the answers; only they are on PATH, with a shell."""
    scheduler = SCHEDULERS[department.scheduler]
    (folder / "bin").mkdir()
    path = answers.commands(folder, answers.read(department.folder / "answers.txt"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path.partition(":")[0] + ":/bin")
        patch.setenv("LOGNAME", USER)
        facts = taking_jobs(without_reservations(scheduler, scheduler.cluster().facts()))
    assert not facts.unread, facts.unread
    host = LoginNode(_LOGIN, cluster=facts.name, groups=(USER,), user=USER)
    return site_file(scheduler, facts, host).replace(datetime.date.today().isoformat(), _DAY)


def job_of(job: DepartmentJob, scheduler: str, folder: Path) -> str:
    """Return the directives and the warnings of a job by the site file in the folder, or the refusal."""
    command = SCHEDULERS[scheduler].command_name
    words = (command, "--site", "./site.toml", *job.options.split(), "--", "train.py")
    (folder / "train.py").touch()
    done = jobs.jobgen(*words, cwd=folder)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("#SBATCH ", "#PBS "))]
    messages = [f"# {line}" for line in done.stderr.replace(str(folder), "").splitlines()]
    return "\n".join([f"# jobgen {' '.join(words)}", *lines, *messages, ""])


def facts_in(text: str) -> dict[str, Any]:
    """Return what a site file says of the cluster: all but its source, and the texts about queues, which have the
    day and the name of the user."""
    facts = {name: value for name, value in tomllib.loads(text).items() if name != "source"}
    for queue in facts["queues"].values():
        queue.pop("about", None)
    return facts


def without_memory(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts without the memory of nodes, where that is the memory of the machine that plays them."""
    return {
        name: without_memory(value) if isinstance(value, dict) else value
        for name, value in facts.items()
        if not name.startswith("memory")
    }
