"""The differences between two runs: options, environment and results."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jobgen.errors import JobgenError
from jobgen.runs import plan_file, regular_file, run_directory
from jobgen.runs.plan_file import PlanFile, PlanValue
from jobgen.runs.states import states
from jobgen.secrets import masked, masked_data

_SPEED = 0.1  # greater relative differences in speed are reported


class Difference(NamedTuple):
    """A difference, with both values and their origins; a value is None if a run lacks it.

    A difference that ``is_remark`` does not make two runs different.
    """

    section: str
    name: str
    values: tuple[Any, Any]
    origins: tuple[str, str] = ("", "")
    is_remark: bool = False


class Comparison(NamedTuple):
    """The differences, the lines of the scripts that differ, and notes on what could not be compared.

    The scripts are compared only if a run has no plan, or if there is no other difference.
    """

    differences: list[Difference]
    script: list[str]
    notes: list[str]

    @property
    def same(self) -> bool:
        return not self.script and all(one.is_remark for one in self.differences)


def compare(left: Path, right: Path) -> Comparison:
    """Return all differences between two runs.

    Raises:
        JobgenError: a plan.json cannot be read.
    """
    plans = _plan(left), _plan(right)
    rows = run_directory.read_metrics(left).rows, run_directory.read_metrics(right).rows
    began = _began(rows[0]), _began(rows[1])
    found = list(_facts("point", _point(left), _point(right)))
    notes: list[str] = []
    if plans[0] and plans[1]:
        found += _requests(plans[0], plans[1])
        began = _versions(began[0]), _versions(began[1])
    else:
        without = ", ".join(run.name for run, plan in zip((left, right), plans, strict=True) if not plan)
        notes.append(f"without plan.json: {without}; so the scripts are compared line by line")
    found += _facts("training", *began)
    script = _script(left, right) if not found or notes else []
    found += _facts("results", *_outcomes(left, right))
    hidden = [one._replace(values=tuple(masked_data(one.values, one.name))) for one in found]
    return Comparison([*hidden, *_speeds(*rows)], list(map(masked, script)), notes)


def _point(task: Path) -> dict[str, Any]:
    """Return the values of the sweep for a task."""
    return run_directory.as_object(regular_file.text(task / "sweep.json"))


def _plan(run: Path) -> PlanFile | None:
    """Return the plan of a run, or of the array that it is a task of; None if there is none."""
    for place in (run, run.parent) if run.name.startswith("task-") else (run,):
        if (place / plan_file.NAME).exists():
            return plan_file.read(place)
    return None


def _requests(left: PlanFile, right: PlanFile) -> Iterator[Difference]:
    for key in dict.fromkeys((*left.options, *right.options)):
        one, other = (plan.options.get(key, PlanValue(None, "")) for plan in (left, right))
        if one.value != other.value:
            yield Difference("options", key, _items(one.value, other.value), (one.origin, other.origin))
    for section, facts in _SECTIONS.items():
        yield from _facts(section, facts(left), facts(right))


def _items(one: Any, other: Any) -> tuple[Any, Any]:
    """Return the values; of two lists, only the items that the other one lacks."""
    if not isinstance(one, list) or not isinstance(other, list) or sorted(one) == sorted(other):
        return one, other
    return [item for item in one if item not in other], [item for item in other if item not in one]


def _words(words: Sequence[str]) -> dict[str, str]:
    """Return a program's options by their names and its other words by their places, so that an inserted
    option does not change the rest."""
    table: dict[str, str] = {}
    waiting: str | None = None
    place = 0
    for word in words:
        flag, equals, value = word.partition("=")
        if word.startswith("--") and len(word) > 2:
            while flag in table:
                flag += " (again)"
            table[flag] = value if equals else ""
            waiting = None if equals else flag
        elif waiting is not None:
            table[waiting], waiting = word, None
        else:
            table[f"word {place}"] = word
            place += 1
    return table


def _git(plan: PlanFile) -> dict[str, Any]:
    if plan.git is None:
        return {}
    changes = f"changed since, {plan.git.diff or plan.git.diff_sha256}" if plan.git.dirty else "as committed"
    if plan.git.diff_sha256:
        changes += f" ({plan.git.diff_sha256[:12]})"
    return {"commit": plan.git.commit, "branch": plan.git.branch, "files": changes}


_SECTIONS: Mapping[str, Callable[[PlanFile], Mapping[str, Any]]] = {
    "program": lambda plan: _words(plan.program.value),
    "sweep": lambda plan: {"mode": plan.sweep.mode, **dict(plan.sweep.values)} if plan.sweep else {},
    "job": lambda plan: {"scheduler": plan.scheduler, "submitted from": plan.directory, "site": plan.site},
    "files": lambda plan: {one.path: (one.sha256 or "unreadable")[:12] for one in plan.sources},
    "git": _git,
    "versions": lambda plan: {"jobgen": plan.jobgen, "python": plan.python},
    "packages": lambda plan: plan.packages,
}


def _began(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the last start event of the training, with its tables flattened."""
    return dict(_flat(next((row for row in reversed(rows) if row.get("event") == "start"), {})))


def _versions(began: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions, which no plan contains; the other values follow from the options."""
    return {key: value for key, value in began.items() if key.startswith("versions.")}


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _facts(section: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[Difference]:
    for key in dict.fromkeys((*left, *right)):
        values = left.get(key), right.get(key)
        if values[0] != values[1]:
            yield Difference(section, key, values)


def _script(left: Path, right: Path) -> list[str]:
    one, other = (run_directory.script(run).splitlines() for run in (left, right))
    names = f"{left.name}/job.sh", f"{right.name}/job.sh"
    return list(difflib.unified_diff(one, other, *names, lineterm="", n=1))


def _outcomes(left: Path, right: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    keys = ("state", "status", "attempts", "step", "loss", "accuracy")
    one, other = ({key: getattr(state, key) for key in keys} for state in states((left, right))[0])
    return one, other


def _speeds(*rows: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
    left, right = map(_speed, rows)
    if left and right and abs(left - right) > _SPEED * max(left, right):
        yield Difference("results", "samples per second", (round(left, 1), round(right, 1)), is_remark=True)


def _speed(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean speed of the steps without the first one, which includes the start."""
    found = (run_directory.number(row.get("samples_per_second")) for row in rows)
    speeds = [speed for speed in found if speed][1:]
    return sum(speeds) / len(speeds) if speeds else 0.0


def check(left: Path, right: Path) -> None:
    """Refuse to compare a run with itself.

    Raises:
        JobgenError: both are the same run.
    """
    if left.resolve() == right.resolve():
        raise JobgenError(f"diff: both names mean the run {left.name}; name two runs")
