"""``jobgen status --watch``: a table that is drawn in place on a terminal, or a line for each change.

``jobgen submit --wait``: the lines on standard error.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TextIO

from jobgen.commands import run_tables
from jobgen.commands.terminal import is_terminal, painter, progress
from jobgen.errors import INTERRUPTED, visible
from jobgen.runs import waiting
from jobgen.runs.states import read, reasons
from jobgen.runs.waiting import Look

_COLUMNS = ("RUN", "JOB", "STATE", "ATTEMPTS", "STEP", "LOSS", "LEFT", "AGE")


def watch(runs: Sequence[Path], interval: float, named: bool) -> None:
    """Show the states of runs until all have ended: of ``named`` runs all, or else those that go on, or the
    newest."""
    looks = waiting.looks(runs, interval)
    with progress("asking the scheduler"):
        first = next(looks)
    going = [i for i, state in enumerate(first.states) if not waiting.has_ended(state)]
    shown = range(len(runs)) if named else going or [0]
    some = (look._replace(states=[look.states[i] for i in shown]) for look in chain((first,), looks))
    (_redraw if is_terminal(sys.stdout) else _append)(some)


def _redraw(looks: Iterator[Look]) -> None:
    height = 0
    for look in looks:
        width, room = shutil.get_terminal_size()
        lines = run_tables.table(look.states, _COLUMNS, width, painter(sys.stdout))
        lines += [visible(f"jobgen: {why}")[:width] for why in reasons(look.states, look.silent).values()]
        if len(lines) >= room:
            lines[room - 2 :] = [f"... {len(lines) - room + 2} more"]
        up = f"\x1b[{height}F\x1b[J" if height else ""
        sys.stdout.write(up + "".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        height = len(lines)


def _append(looks: Iterator[Look]) -> None:
    printed: dict[str, str] = {}
    for look in looks:
        _tell(look, printed, sys.stdout)


def _tell(look: Look, printed: dict[str, str], stream: TextIO) -> None:
    """Print the lines that differ from those ``printed`` before."""
    for state in look.states:
        line = run_tables.line(state)
        if printed.get(state.run) != line:
            printed[state.run] = line
            print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", file=stream, flush=True)
    for queue, why in look.silent.items():
        if printed.get(str(queue)) != why:
            printed[str(queue)] = why
            print(visible(f"jobgen: {why}"), file=sys.stderr)


def until_end(run: Path) -> int:
    """Wait for the end of a run, with the changes of its state on standard error, and return its exit status
    as ``sbatch --wait`` does: the highest one of an array, or 1 if there is none."""
    printed: dict[str, str] = {}
    try:
        [state] = waiting.wait([run], on_change=lambda look: _tell(look, printed, sys.stderr))
    except KeyboardInterrupt:
        print(f"jobgen: the job goes on: jobgen status {run.name}", file=sys.stderr)
        return INTERRUPTED
    if state.state == "finished":
        return 0
    found = [task.status for task in read(run).tasks] or [state.status]
    worst = max(1 if status is None else status for status in found)
    return worst if 0 < worst < 256 else 1
