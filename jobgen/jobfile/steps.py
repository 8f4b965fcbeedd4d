"""The tables [[step]] of a job file: several programs in one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.launch.program import read_program
from jobgen.options import BY_KEY, parse
from jobgen.spec import Step

_OPTIONS = ("launcher", "nodes", "ranks_per_node")
KEYS = ("command", *_OPTIONS, "parallel")


def read_steps(tables: Sequence[Mapping[str, Any]], origin: str) -> tuple[Step, ...]:
    """Return the steps in their order.

    Raises:
        JobgenError: a key is unknown, or a value is wrong.
    """
    steps = tuple(_step(table, f"{origin}, [[step]] {number}") for number, table in enumerate(tables, 1))
    if steps[0].parallel:
        raise JobgenError(f"parallel = true ({origin}, [[step]] 1): there is no step before the first one")
    return steps


def _step(table: Mapping[str, Any], where: str) -> Step:
    for key in table:
        if key not in KEYS:
            raise JobgenError(
                f"{shown(key)} ({where}): a step has no such key: use {one_of(KEYS)}{nearest(key, KEYS)}"
            )
    command = table.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(one, str) for one in command):
        raise JobgenError(f'command ({where}): must be a list of texts, such as ["train.py", "--lr", "0.1"]')
    try:
        read_program(tuple(command))
    except JobgenError:
        rule = "must begin with a script, -m MODULE or a command"
        raise JobgenError(f"command = {shown(' '.join(command))} ({where}): {rule}") from None
    values = {key: parse(BY_KEY[key], str(table[key]), where)[0] for key in _OPTIONS if key in table}
    if not isinstance(values.get("nodes", 1), int) or values.get("nodes", 1) < 1:
        raise JobgenError(f"nodes = {table['nodes']} ({where}): must be a whole number of at least 1")
    parallel = table.get("parallel", False)
    if not isinstance(parallel, bool):
        raise JobgenError(f"parallel = {shown(str(parallel))} ({where}): must be true or false")
    return Step(tuple(command), **values, parallel=parallel)
