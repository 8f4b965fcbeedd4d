"""The steps of a job, as its script records them in the events of an attempt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.runs.exit_statuses import RESUMABLE
from jobgen.runs.run_directory import Event, events

STOPPED = "stopped"  # instead of a status: the script has ended it, with another step


class StepState(NamedTuple):
    """A step in one attempt. ``seconds`` is None while it runs in a job whose end is unknown. ``name`` is
    empty, and ``status`` is None, without one."""

    number: int
    name: str
    state: str
    seconds: int | None
    status: int | None

    @property
    def title(self) -> str:
        """Return its number and its name."""
        return f"{self.number} {self.name}".rstrip()


def of(noted: Sequence[Event], now: float | None) -> tuple[StepState, ...]:
    """Return the steps that have begun; ``now`` is the time if the job runs."""
    found: dict[int, StepState] = {}
    began: dict[int, float] = {}
    for event in noted:
        match = re.fullmatch(r"step-(began|ready|ended) (\d{1,6})(?: (\S+))?", f"{event.what} {event.value}")
        if match is None:
            continue
        number, word = int(match[2]), match[3] or ""
        if match[1] == "began":
            began[number] = event.time
            seconds = None if now is None else max(0, round(now - event.time))
            found[number] = StepState(number, word, "running" if now else "lost", seconds, None)
        elif number in found and match[1] == "ready" and now is not None:
            found[number] = found[number]._replace(state="ready")
        elif number in found and match[1] == "ended":
            status = int(word) if word.isdecimal() else None
            took = max(0, round(event.time - began[number]))
            found[number] = found[number]._replace(state=_word(status), seconds=took, status=status)
    return tuple(found[number] for number in sorted(found))


def _word(status: int | None) -> str:
    """Return the state of a step that has ended."""
    return {None: STOPPED, 0: "finished", RESUMABLE: "resumable"}.get(status, "failed")


def folder(attempt: Path, name: str) -> Path:
    """Return the folder with the logs of a step, which is given by its number or its name.

    Raises:
        JobgenError: the attempt has no such step.
    """
    steps = of(events(attempt), None)
    for step in steps:
        if name in (str(step.number), step.name):
            return attempt / f"step-{step.number}"
    if not steps:
        raise JobgenError(f"--step {shown(name)} (command line): {attempt.name} has no steps yet")
    known = {step.name or str(step.number): step for step in steps}
    titles = one_of(f"{key} ({step.number})" if step.name else key for key, step in known.items())
    raise JobgenError(
        f"--step {shown(name)} (command line): no such step has begun in {attempt.name}: use {titles}"
        f"{nearest(name, known)}"
    )
