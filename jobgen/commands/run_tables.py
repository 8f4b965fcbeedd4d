"""The output of status, list and diff."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobgen.commands.terminal import Paint, aligned, plain
from jobgen.errors import visible
from jobgen.runs.remote import place as places
from jobgen.runs.states import State
from jobgen.schedulers.base import clock
from jobgen.schedulers.table import SCHEDULERS

if TYPE_CHECKING:
    from jobgen.runs.differences import Comparison

_TITLES = {row.command_name: row.family for row in SCHEDULERS.values() if row.family}


def as_json(states: Sequence[State]) -> str:
    return json.dumps([state._asdict() for state in states], indent=1) + "\n"


_COLUMNS: dict[str, Callable[[State], str]] = {
    "RUN": lambda state: state.name,
    "JOB": lambda state: state.id or "-",
    "SCHEDULER": lambda state: (
        _TITLES.get(state.scheduler or "", "local") + (f" at {state.host}" if state.host else "")
    ),
    "STATE": lambda state: _state(state),
    "ATTEMPTS": lambda state: str(state.attempts or "-"),
    "STEP": lambda state: "-" if state.step is None else str(state.step),
    "LOSS": lambda state: "-" if state.loss is None else f"{state.loss:.4g}",
    "TIME": lambda state: "-" if state.seconds_used is None else clock(state.seconds_used),
    "LEFT": lambda state: "-" if state.seconds_left is None else clock(state.seconds_left),
    "AGE": lambda state: age(time.time() - state.submitted),
}
LISTED = ("RUN", "JOB", "SCHEDULER", "STATE", "ATTEMPTS", "STEP", "TIME", "AGE")


def table(
    states: Sequence[State],
    columns: Sequence[str] = LISTED,
    width: int | None = None,
    paint: Paint = plain,
) -> list[str]:
    """Return a line of titles and a line for each run, of ``width`` characters at most."""
    rows = [columns, *([visible(_COLUMNS[column](state)) for column in columns] for state in states)]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    title, *lines = (line[:width] for line in aligned(rows))
    at = sum(widths[: columns.index("STATE")]) + 2 * columns.index("STATE")
    return [title, *(paint(line, state.state, at) for line, state in zip(lines, states, strict=True))]


def line(state: State) -> str:
    """Return a run as ``status --watch`` prints a change of it."""
    words = (
        state.name,
        state.id and f"job {state.id}",
        f"attempt {state.attempts}",
        _state(state),
        state.reason,
    )
    return visible(", ".join(filter(None, words)))


def _state(state: State) -> str:
    then = "" if state.reachable else f" {age(time.time() - (state.as_of or 0))} ago" if state.as_of else "?"
    return state.state + (f" ({_tasks(state)})" if state.tasks else "") + then


def blocks(states: Sequence[State], paint: Paint = plain) -> str:
    """Return some lines per run."""
    return "\n".join(paint(_block(state), state.state, len(visible(state.name)) + 2) for state in states)


def _block(state: State) -> str:
    job = f", job {state.id}" if state.id else ""
    where = f" on {_TITLES[state.scheduler]}" if state.scheduler in _TITLES and state.id else ""
    where += f" at {state.host}" if state.host else ""
    lines = [f"{state.name}: {_state(state)}{job}{where}"]
    facts = [
        f"attempt {state.attempts}" if state.attempts else "",
        "" if state.step is None else f"step {state.step}",
        "" if state.loss is None else f"loss {state.loss:.4g}",
        "" if state.accuracy is None else f"accuracy {100 * state.accuracy:.2f}%",
        "" if state.seconds_left is None else f"{clock(state.seconds_left)} left",
    ]
    place = places.of(Path(state.run)) if state.host else None
    there = f"; at {place.host_name} in {place.there(Path(state.run))}" if place else ""
    files = f"files in {Path(state.run).absolute()}{there}"
    lines += [", ".join(filter(None, facts)), state.reason, *map(_step, state.job_steps), files]
    return "\n  ".join(map(visible, filter(None, lines))) + "\n"


def _step(step: Mapping[str, Any]) -> str:
    words = (f"step {step['number']}", step["name"])
    status = "" if step["status"] in (None, 0) else f" with status {step['status']}"
    took = "" if step["seconds"] is None else f", {clock(step['seconds'])}"
    return f"{', '.join(filter(None, words))}: {step['state']}{status}{took}"


def _tasks(state: State) -> str:
    return ", ".join(f"{count} {visible(word)}" for word, count in state.tasks.items())


def age(seconds: float) -> str:
    """Return a time span in its largest unit: 40s, 12m, 5h, 3d."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f}{unit}"
    return f"{max(0, seconds):.0f}s"


def comparison(found: Comparison) -> str:
    """Return the differences by section; the value of the left run comes first."""
    lines: list[str] = []
    section = ""
    for one in found.differences:
        if one.section != section:
            section = one.section
            lines.append(section)
        left, right = map(_value, one.values, one.origins)
        lines.append(f"  {one.name}: {left} -> {right}")
    return "".join(f"{visible(line)}\n" for line in (*lines, *found.script))


def _value(value: Any, origin: str) -> str:
    if value is None or value == []:
        text = "-"
    else:
        text = shlex.join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{text} ({origin})" if origin and origin != "derived" else text


def comparison_as_json(found: Comparison) -> str:
    differences = [one._asdict() for one in found.differences]
    data = {"same": found.same, "differences": differences, "script": found.script, "notes": found.notes}
    return json.dumps(data, indent=1) + "\n"
