"""Sweeps: lists of values, from which each task of an array takes its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from jobgen.errors import counted, one_of, shown
from jobgen.jobfile.sweep_table import Value, value_text
from jobgen.launch.program import Program
from jobgen.spec import Specification
from jobgen.values.arrays import MOST


class Parameter(NamedTuple):
    """A parameter of a sweep: its values as text, of which a task takes the one ``at`` (arithmetic of bash).

    ``kind`` is text, number or switch: the values are true and false, and ``option`` stands alone or is left
    out.
    """

    key: str
    option: str
    variable: str
    values: tuple[str, ...]
    at: str
    kind: str


class Sweep(NamedTuple):
    """The parameters, the number of points, and a description."""

    parameters: tuple[Parameter, ...]
    points: int
    title: str


def sweep(spec: Specification, program: Program) -> Sweep:
    """Return the values of each task, as options of the program.

    Raises:
        JobgenError: the lists do not fit each other, or the program does not accept an option.
    """
    assert spec.sweep
    lists = spec.sweep.values
    points, indices = _indices(spec, [len(values) for _, values in lists])
    found = tuple(
        Parameter(
            key,
            "--" + (key.replace("_", "-") if program.is_ours else key),
            key.replace("-", "_"),
            tuple(value_text(value) for value in values),
            index,
            _kind(values),
        )
        for (key, values), index in zip(lists, indices, strict=True)
    )
    _check(spec, program, found)
    names = " x ".join(one.key for one in found)
    how = "every combination, of which the last changes fastest"
    if spec.sweep.mode == "zip":
        names, how = " with ".join(one.key for one in found), "each task has the next value of every list"
    return Sweep(found, points, f"{names}: {counted(points, 'point')}, {how}.")


def _kind(values: Sequence[Value]) -> str:
    if isinstance(values[0], bool):
        return "switch"
    numbers = all(
        isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)) for value in values
    )
    return "number" if numbers else "text"


def _indices(spec: Specification, counts: list[int]) -> tuple[int, list[str]]:
    """Return the number of points, and the index into each list at the point ``job_index``."""
    assert spec.sweep
    if (max(counts) if spec.sweep.mode == "zip" else math.prod(counts)) > MOST:
        raise spec.refuse("sweep", f"has too many points: an array has at most {MOST} tasks")
    if spec.sweep.mode == "zip":
        if len(set(counts)) > 1:
            lengths = one_of(f"{key} has {n}" for (key, _), n in zip(spec.sweep.values, counts, strict=True))
            why = f"zip takes lists of one length, but {lengths.replace(' or ', ' and ')}"
            raise spec.refuse("sweep", why)
        return counts[0], ["job_index"] * len(counts)
    points, indices = 1, []
    for count in reversed(counts):
        stride = f" / {points}" if points > 1 else ""
        indices.append(f"job_index{stride} % {count}")
        points *= count
    return points, indices[::-1]


def _check(spec: Specification, program: Program, parameters: Sequence[Parameter]) -> None:
    seen: dict[str, str] = {}
    for one in parameters:
        if other := seen.get(one.variable):
            why = f"{other} and {one.key} would be one variable, JOBGEN_SWEEP_{one.variable}"
            raise spec.refuse("sweep", why)
        seen[one.variable] = one.key
        if any(word == one.option or word.startswith(f"{one.option}=") for word in program.words):
            raise spec.refuse("sweep", f"the program is given {one.option} already; leave one of the two out")
        if program.is_ours:
            _check_ours(spec, one)


def _check_ours(spec: Specification, one: Parameter) -> None:
    """Check an option of the training module, before many tasks fail with it."""
    from jobgen.jobfile.training_options import OptionError, check

    for value in dict.fromkeys(one.values):
        words = [one.option] * (value == "true") if one.kind == "switch" else [f"{one.option}={value}"]
        try:
            check(words)
        except OptionError as error:
            raise spec.refuse("sweep", f"{one.key} = {shown(value)}: {error.reason}") from None
