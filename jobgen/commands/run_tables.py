"""The output of status, list and diff."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobgen.errors import visible
from jobgen.runs.states import State
from jobgen.schedulers.base import clock

if TYPE_CHECKING:
    from jobgen.runs.differences import Comparison

_TITLES = {"slurm": "Slurm", "pbs": "PBS"}


def as_json(states: Sequence[State]) -> str:
    return json.dumps([state._asdict() for state in states], indent=1) + "\n"


def table(states: Sequence[State], now: float | None = None) -> str:
    """Return one line per run."""
    now = time.time() if now is None else now
    cells = [("RUN", "JOB", "STATE", "ATTEMPTS", "STEP", "AGE")]
    cells += [
        (
            visible(state.name),
            visible(state.id or "-"),
            visible(state.state) + (f" ({_tasks(state)})" if state.tasks else ""),
            str(state.attempts or "-"),
            "-" if state.step is None else str(state.step),
            age(now - state.submitted),
        )
        for state in states
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(5)]
    lines = map("  ".join, ((*map(str.ljust, row[:5], widths), row[5]) for row in cells))
    return "\n".join(lines) + "\n"


def blocks(states: Sequence[State]) -> str:
    """Return some lines per run."""
    return "\n".join(map(_block, states))


def _block(state: State) -> str:
    job = f", job {state.id}" if state.id else ""
    where = f" on {_TITLES[state.scheduler]}" if state.scheduler in _TITLES and state.id else ""
    tasks = f" ({_tasks(state)})" if state.tasks else ""
    lines = [f"{state.name}: {state.state}{tasks}{job}{where}"]
    facts = [
        f"attempt {state.attempts}" if state.attempts else "",
        "" if state.step is None else f"step {state.step}",
        "" if state.loss is None else f"loss {state.loss:.4g}",
        "" if state.accuracy is None else f"accuracy {100 * state.accuracy:.2f}%",
        "" if state.seconds_left is None else f"{clock(state.seconds_left)} left",
    ]
    lines += [", ".join(filter(None, facts)), state.reason, f"files in {Path(state.run).absolute()}"]
    return "\n  ".join(map(visible, filter(None, lines))) + "\n"


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
    told = {"same": found.same, "differences": differences, "script": found.script, "notes": found.notes}
    return json.dumps(told, indent=1) + "\n"
