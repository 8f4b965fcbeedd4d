"""Ends jobs: gently, so that they save first, or at once."""

from __future__ import annotations

from pathlib import Path

from jobgen.errors import JobgenError
from jobgen.life.asking import SCHEDULERS
from jobgen.life.states import State, states

MARK = "cancelled"  # in the run directory: the script does not submit itself again


def cancel(run: Path, at_once: bool) -> str:
    """End the job of a run; the answer says what was done. One that runs is signalled, saves and leaves; a
    second time, or ``at_once``, the scheduler ends it.

    Raises:
        JobgenError: it has no job to end.
        SchedulerError: the scheduler's own words.
    """
    [state], _ = states([run])
    mark = run / MARK
    if not state.live and state.state != "unknown":
        raise JobgenError(f"{state.name} is {state.state}: there is nothing to cancel")
    if state.scheduler not in SCHEDULERS or state.id is None:
        raise JobgenError(f"{state.name} is a run of this machine: end its script with Ctrl-C or kill")
    at_once = at_once or mark.exists()
    mark.touch()
    for task in run.glob("task-*"):
        (task / MARK).touch()
    gently = SCHEDULERS[state.scheduler].cancel(state.id, at_once)
    return _said(state, gently and state.state not in ("pending", "held"))


def _said(state: State, gently: bool) -> str:
    if gently:
        return f"{state.name}: job {state.id} is asked to save and end; cancel it again to end it at once"
    return f"{state.name}: job {state.id} is cancelled"
