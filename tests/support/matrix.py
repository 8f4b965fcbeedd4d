"""The matrix: what happens to a job, by what it was launched, on which scheduler, and what must come of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

from support.cluster import FIRST, OLD

ALL = "all"
ANY = "any"
Saved = Literal["all", "any"]


@dataclass(frozen=True)
class Cell:
    scheduler: str
    launcher: str
    end: str

    @property
    def name(self) -> str:
        return f"{self.scheduler}-{self.launcher}-{self.end}"

    @property
    def family(self) -> str:
        """The scheduler without its version."""
        return "slurm" if self.scheduler == "slurm24" else self.scheduler

    @property
    def ranks(self) -> int:
        """The processes of the job: two on each node, or one on the first of them."""
        return 1 if self.launcher == "none" else 4


@dataclass(frozen=True)
class Expected:
    """What a user finds afterwards."""

    statuses: tuple[int, ...]
    """Of the job, one of these; none where the scheduler keeps none."""
    saved: Saved = ANY
    """Whether every rank has saved. Any: the ranks could not know, or nobody asked them."""
    says: tuple[str, ...] = ()
    """Patterns of the script's messages; LAST is the last rank, HOST its host."""
    bad: bool = False
    """Whether that host stands in bad-hosts. No other host ever does."""
    attempts: int = 1
    moment: tuple[int, int] | None = None
    """The ranks are asked to save between these times, in seconds since the script began."""
    patience: float = 20
    """Within so many seconds after the end no process is left on any node."""


@dataclass(frozen=True)
class End:
    """How a job ends."""

    name: str
    means: str
    expected: Expected
    act: Literal["", "cancel", "delete", "purge", "requeue", "node"] = ""
    """What is done from outside when all ranks have begun."""
    program: Literal["well", "fail", "kill", "peer", "wait"] = "wait"
    options: tuple[str, ...] = ()
    on_slurm: tuple[str, ...] = ()
    """Instead of these."""
    only: dict[str, dict[str, object]] = field(default_factory=dict, hash=False)
    """What a scheduler makes impossible or does in another way: fields of Expected, by the scheduler or by SCHEDULER-LAUNCHER."""

    def options_of(self, cell: Cell) -> tuple[str, ...]:
        return self.on_slurm if self.on_slurm and cell.family == "slurm" else self.options

    def expected_of(self, cell: Cell) -> Expected:
        others = [self.only.get(key, {}) for key in (cell.family, f"{cell.family}-{cell.launcher}")]
        return replace(self.expected, **others[0], **others[1])  # type: ignore[arg-type]


LAUNCHERS = {
    "mpirun4": ("--launcher", "mpirun"),
    "mpirun5": ("--launcher", "mpirun"),
    "mpich": ("--launcher", "mpirun", "--mpi", "mpich"),
    "torchrun": ("--launcher", "torchrun"),
    "deepspeed": ("--launcher", "deepspeed"),
    "srun": ("--launcher", "srun"),
    "none": ("--launcher", "none"),
}
BAD = tuple(range(1, 256))
SIGNALLED = 256 + 15  # as PBS counts a job that TERM ended
CANCELLED = 128 + 15

ENDS = {
    end.name: end
    for end in (
        End(
            "walltime",
            "the end of the wall time is near",
            Expected(
                (75,),
                ALL,
                ("(got USR1|the wall time is nearly over): asking every rank to save and exit",),
                moment=(43, 50),
                patience=30,
            ),
            options=("--walltime", "120s", "--signal", "USR1@75"),
            # Slurm counts in minutes, and its signal may be up to a minute early.
            on_slurm=("--walltime", "2m", "--signal", "USR1@50"),
            only={"slurm": {"moment": (8, 75)}},
        ),
        End(
            "requeue",
            "`qrerun`, `scontrol requeue`",
            Expected((0,), attempts=2, patience=30),
            act="requeue",
            options=("--requeue", "3"),
        ),
        End(
            "purge",
            "`qdel -W force`, `qdel -p`, `scancel --full --signal=KILL`",
            Expected(()),
            act="purge",
            # The server forgets the job, and each node notices when it next compares its jobs with the server's.
            only={"torque": {"patience": 90}},
        ),
        End(
            "delete",
            "`qdel`, `scancel`",
            Expected((75, SIGNALLED), ALL),
            act="delete",
            # TERM and KILL come within a millisecond, to the ranks as to the script.
            # Slurm sends TERM to the programs themselves, which die of it; and KILL, if the script takes longer.
            only={"torque": {"saved": ANY}, "slurm": {"saved": ANY, "statuses": (CANCELLED, 128 + 9)}},
        ),
        End("cancel", "`jobgen cancel`", Expected((75,), ALL, ("save and exit",)), act="cancel"),
        End(
            "killed",
            "a rank is killed (SIGKILL)",
            Expected((137,), ANY, (r"rank LAST on HOST failed first, with status 137",)),
            program="kill",
        ),
        End(
            "fails",
            "a rank ends with status 7",
            Expected((7,), ANY, (r"rank LAST on HOST failed first, with status 7;",)),
            program="fail",
        ),
        End("well", "all ranks end well", Expected((0,), ANY, ("finished after",)), program="well"),
        End(
            "node",
            "a node dies",
            Expected(BAD, ANY, ("HOST does not answer",), bad=True, patience=30),
            act="node",
            program="peer",
            options=("--cpus-per-rank", "4"),  # of eight: nobody else is on the node
        ),
    )
}

# A launcher that waits for the lost ranks as long as the others do not fail. It is a test of its own, without a row in the table.
LOST = replace(ENDS["node"], name="lost", program="wait")

SCHEDULERS = ("slurm", "slurm24", "openpbs", "torque")
# What CI runs; `make matrix` runs all.
IN_CI = {
    "mpirun5": tuple(ENDS),
    "torchrun": tuple(ENDS),
    "mpirun4": ("fails",),
    "mpich": ("cancel",),
    "deepspeed": ("cancel",),
    "srun": ("cancel",),
    "none": ("walltime", "cancel", "delete", "fails"),
}
# On Slurm 24.11 each launcher, and each end that is Slurm's own.
IN_CI_OF_NEW = {
    "mpirun5": ("requeue", "delete"),
    "torchrun": ("walltime", "node"),
    "mpirun4": ("fails",),
    "mpich": ("cancel",),
    "deepspeed": ("cancel",),
    "srun": ("cancel", "well"),
    "none": ("cancel", "requeue"),
}


def cells() -> list[Cell]:
    """Those that are run: first what takes long, last what needs nodes of its own."""
    schedulers = [name for name in SCHEDULERS if FIRST == OLD or name != "slurm"]
    every = (
        Cell(scheduler, launcher, end) for scheduler, end, launcher in product(schedulers, ENDS, LAUNCHERS)
    )
    return [cell for cell in every if _is_possible(cell) and _is_run(cell)]


def _is_possible(cell: Cell) -> bool:
    """Return whether the scheduler has the launcher; a process without one is on the node of the script."""
    return (
        cell.family == "slurm" if cell.launcher == "srun" else (cell.launcher, cell.end) != ("none", "node")
    )


def _is_run(cell: Cell) -> bool:
    some = IN_CI_OF_NEW if cell.scheduler == "slurm24" else IN_CI
    return os.environ.get("JOBGEN_MATRIX") == "all" or cell.end in some[cell.launcher]
