"""Waiting for the end of a job: the states are reported on standard error."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from jobgen.runs.states import State, see, states

_FIRST, _LONGEST = 1.0, 30.0  # s between two queries


def wait_for(run: Path) -> int:
    """Wait until the job of a run has ended, and return its exit status, as ``sbatch --wait`` does: that of
    the script, the highest one of an array, or 1 if there is none. Ctrl-C ends the waiting, not the job."""
    told = ""
    pause = _FIRST
    last: State | None = None
    try:
        while True:
            [state], answer = states([run])
            reason = state.reason or next(iter(answer.silent.values()), "")
            word = f"{state.name} is {state.state}" + (f" ({reason})" if reason else "")
            if word != told:
                print(f"jobgen: {word}", file=sys.stderr)
                told, pause = word, _FIRST
            over = not state.live and state.state != "unknown"
            if over and last is not None and last.state == state.state:  # a requeued job is not seen at once
                return _status(run, state)
            last = state
            time.sleep(_FIRST if over else pause)
            pause = min(_LONGEST, pause * 1.3)
    except KeyboardInterrupt:
        print(f"jobgen: the job goes on: jobgen status {run.name}", file=sys.stderr)
        return 130


def _status(run: Path, state: State) -> int:
    found = [one.status for one in see(run).tasks] or [state.status]
    worst = max((1 if status is None else status for status in found), default=1)
    if state.state == "finished":
        return 0
    return worst if 0 < worst < 256 else 1
