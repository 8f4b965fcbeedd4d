"""Write docs/exit-statuses.md from the tables of the code: python -m tools.write_exit_statuses"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jobgen.runs.exit_statuses import COMMANDS, EVERY_COMMAND, JOB, MORE, TRAINING

PAGE = Path(__file__).resolve().parent.parent / "docs/exit-statuses.md"
_TEXT = """\
---
words: exit status code return codes meaning all statuses
---

# Exit statuses

This page is generated from `jobgen/runs/exit_statuses.py`.

## Commands

{commands}

Status 1 has a meaning of its own in these commands.

{own}

{more}

`jobgen status`, `list` and `report` end with 0 if they could show the runs, whatever the runs ended with. `jobgen submit --wait` ends
with the status of the job.

## The script of a job

`jobgen status` and `jobgen report` show them with these words.

{job}

Any other status is that of the rank that failed first, or of the launcher. A program or script that was killed by signal N has status
128 + N; PBS reports 256 + N.

## The training module

`python -m jobgen.train` ends with one of these; 74 and 75 are those of the script.

{training}

How to go on: [what went wrong?](trouble/index.md) has a page for each status of a script; `jobgen help 75` shows it on the cluster.
"""


def page() -> str:
    """Return the text of the page."""
    tables = {
        "commands": EVERY_COMMAND,
        "job": JOB,
        "training": {0: JOB[0], **TRAINING, 74: JOB[74], 75: JOB[75]},
    }
    own = "\n".join(
        [
            "| command | 1 |",
            "|---|---|",
            *(f"| `jobgen {name}` | {meaning} |" for name, meaning in COMMANDS.items()),
        ]
    )
    more = [(name, *one) for name, statuses in MORE.items() for one in statuses.items()]
    lines = "\n".join(f"`jobgen {name}` ends with {status} if {meaning}." for name, status, meaning in more)
    return _TEXT.format(own=own, more=lines, **{name: _table(table) for name, table in tables.items()})


def _table(table: Mapping[int, str]) -> str:
    return "\n".join(
        [
            "| status | meaning |",
            "|---|---|",
            *(f"| {status} | {meaning} |" for status, meaning in table.items()),
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
