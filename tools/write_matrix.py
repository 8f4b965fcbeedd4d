"""The outcomes of the matrix as the table of the documentation: python -m tools.write_matrix RECORD... >docs/matrix.md

RECORD is the file that JOBGEN_MATRIX_RECORD named while the tests ran: a line of JSON for each job. Runs with
JOBGEN_TEST_BASH, which are counted below the table, may have records of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.matrix import ENDS, LAUNCHERS, SCHEDULERS, Cell

Rows = dict[Cell, dict[str, Any]]

HEAD = """# How jobs end

Real jobs of two nodes with two ranks each, on a real Slurm, OpenPBS and Torque, with every launcher and every end of a job. With the
launcher `none` the job has one process, on the first node, where the script runs: that this node dies is the end of both.
A cell contains the status of the job in the records of the scheduler, the number of ranks that saved, and the hosts that the job
reported as bad. No process of a job remains on any node, unless the cell says so. `make matrix` runs the jobs and writes this page.

Slurm 22.05 and Open MPI 4 are those of Debian 12, Slurm 24.11 and "Open MPI 5 of Debian" those of Debian 13; the other Open MPI 5 and
MPICH are the wheels of PyPI. The program saves and ends with 75 when USR1 asks for it.
271 and 265 are the statuses that PBS records for a job that TERM and KILL ended, whatever the status of the script.

Limits of the schedulers:

- `qdel -W force`, `qdel -p` and `scancel --full --signal=KILL` kill at once, and nothing can be saved. The nodes of Torque
  detect this only at the next comparison of their jobs with those of the server, up to a minute later.
- `scancel` sends TERM to the programs themselves, which die of it. `jobgen cancel` and `scancel --batch --signal=USR1`
  let them save.
- Torque sends KILL within a millisecond after TERM, so after `qdel` and `qrerun` the ranks save only if they are quick.
"""
NAMES = {"slurm": "Slurm 22.05", "slurm24": "Slurm 24.11", "openpbs": "OpenPBS", "torque": "Torque"}
LAUNCHER_NAMES = {"mpirun4": "mpirun, Open MPI 4", "mpirun5": "mpirun, Open MPI 5", "mpich": "mpirun, MPICH"}
ON_NEW = {"mpirun4": "mpirun, Open MPI 5 of Debian"}


def field(cell: Cell, row: dict[str, Any]) -> str:
    saved = f", {row['saved']}/{cell.ranks} saved" if row["saved"] else ""
    hosts = [line.split("\t")[0] for line in row["bad"].splitlines()]
    bad = f", bad: {' '.join(hosts)}" if hosts else ""
    left = f", **{row['left']} processes left**" if row["left"] else ""
    status = "no status" if row["status"] < 0 else f"{row['status']}"
    return f"{status}{saved}{bad}{left}"


def table(scheduler: str, rows: Rows) -> str:
    launchers = [
        name
        for name in LAUNCHERS
        if any((cell.scheduler, cell.launcher) == (scheduler, name) for cell in rows)
    ]
    names = LAUNCHER_NAMES | (ON_NEW if scheduler == "slurm24" else {})
    lines = [
        f"## {NAMES[scheduler]}",
        "",
        "| end | " + " | ".join(names.get(name, name) for name in launchers) + " |",
    ]
    lines.append("|---|" + "---|" * len(launchers))
    for end in ENDS.values():
        cells = [Cell(scheduler, launcher, end.name) for launcher in launchers]
        fields = (field(cell, rows[cell]) if cell in rows else "" for cell in cells)
        lines.append(f"| {end.means} | {' | '.join(fields)} |")
    return "\n".join(lines) + "\n"


OLDER = """## Older versions of bash

The same jobs with another bash as `/bin/bash` of all hosts: the number of cells, and how many of them ended as they do with bash {newest}.
"""


def older(lines: Iterable[dict[str, Any]], newest: str) -> str:
    """Return the table of the cells by scheduler and version of bash."""
    cells: dict[str, dict[str, list[bool]]] = {}
    for line in lines:
        cells.setdefault(line["bash"], {}).setdefault(line["cell"][0], []).append(not line["faults"])
    used = [one for one in SCHEDULERS if any(one in by for by in cells.values())]
    rows = [f"| bash | {' | '.join(NAMES[one] for one in used)} |", "|---|" + "---|" * len(used)]
    for version in sorted(cells):
        fields = (cells[version].get(one, []) for one in used)
        rows.append(f"| {version} | {' | '.join(f'{sum(f)} of {len(f)}' if f else '' for f in fields)} |")
    return "\n".join([OLDER.format(newest=newest), *rows]) + "\n"


NEXT = """\
How to go on: [checkpoints, signals and requeue](survival.md), [all exit statuses](exit-statuses.md).
"""


def main(paths: list[str]) -> None:
    lines = [
        json.loads(line) for path in paths for line in Path(path).read_text(encoding="utf-8").splitlines()
    ]
    newest = max(line["bash"] for line in lines)
    rows = {Cell(*line["cell"]): line for line in lines if line["bash"] == newest}
    others = [line for line in lines if line["bash"] != newest]
    parts = [HEAD, *(table(scheduler, rows) for scheduler in SCHEDULERS)]
    print("\n".join([*parts, *([older(others, newest)] if others else []), NEXT]), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
