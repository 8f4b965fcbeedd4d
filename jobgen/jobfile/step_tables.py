"""The tables [[step]] of a job file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.options import BY_KEY, parse
from jobgen.spec import NO_CONTAINER, Ready, Step
from jobgen.topology.cpus import read
from jobgen.values.parsers import walltime

_OPTIONS = ("launcher", "nodes", "ranks_per_node", "container", "image", "bind", "container_arg")
_KEYS = ("command", "name", *_OPTIONS, "gpus", "cores", "env", "parallel", "starts", "ready", "ends")
_READY = ("file", "port", "line")
_NAME = r"[A-Za-z][A-Za-z0-9_]{0,63}"


def read_steps(
    tables: Sequence[Mapping[str, Any]], origin: str, check_command: Callable[[Sequence[str], str], None]
) -> tuple[Step, ...]:
    """Return the steps in their order.

    Raises:
        JobgenError: a key is unknown, or a value is wrong.
    """
    steps = []
    for number, table in enumerate(tables, 1):
        where = f"{origin}, [[step]] {number}"
        check_keys(table, _KEYS, "step", where)
        command = table.get("command")
        if not isinstance(command, list) or not command or not all(isinstance(one, str) for one in command):
            raise JobgenError(
                f'command ({where}): must be a list of texts, such as ["train.py", "--lr", "0.1"]'
            )
        check_command(command, where)
        steps.append(_step(table, where))
    if steps[0].parallel:
        key = "starts" if steps[0].starts else "parallel"
        reason = "there is no step before the first one"
        reason += "; put the step for which it waits before it" if steps[0].starts else ""
        raise _wrong(key, tables[0], f"{origin}, [[step]] 1", reason)
    return tuple(steps)


def check_keys(table: Mapping[str, Any], known: Sequence[str], noun: str, where: str) -> None:
    """Refuse a key that a table of a list, such as a step, does not have."""
    for key in table:
        if key not in known:
            raise JobgenError(
                f"{shown(key)} ({where}): a {noun} has no such key: use {one_of(known)}{nearest(key, known)}"
            )


def check_number_of_nodes(table: Mapping[str, Any], where: str) -> None:
    """Refuse nodes that are no number of at least 1, the only form of nodes in a table of a list."""
    if not re.fullmatch(r"0*[1-9]\d*", str(table.get("nodes", 1)), re.ASCII):
        raise _wrong("nodes", table, where, "must be a whole number of at least 1")


def check_variables(table: Mapping[str, Any], where: str) -> None:
    """Refuse a name with =, which a text NAME=VALUE would cut."""
    for name in table:
        if "=" in name:
            raise JobgenError(f'{shown(name)} ({where}): a name of a variable has no =; write NAME = "VALUE"')


def _step(table: Mapping[str, Any], where: str) -> Step:
    check_number_of_nodes(table, where)
    values = {
        key: parse(BY_KEY[key], _text(key, table, where), where)[0]
        for key in _OPTIONS
        if key in table and (key, table[key]) != ("container", NO_CONTAINER)
    }
    if table.get("container") == NO_CONTAINER:
        values["container"] = NO_CONTAINER
    parallel, starts = table.get("parallel", False), _starts(table, where)
    if not isinstance(parallel, bool):
        raise _wrong("parallel", table, where, "must be true or false")
    if starts and table.get("parallel") is False:
        raise _wrong("parallel", {"parallel": "false"}, where, "it starts beside the steps that it waits for")
    return Step(
        tuple(table["command"]),
        **values,
        parallel=parallel or bool(starts),
        name=_name(table, where),
        gpus=_amount("gpus", table, where, 0),
        cores=_amount("cores", table, where, 1),
        own_env=_env(table, where),
        starts=starts,
        ends=_ends(table, where),
        ready=_ready(table["ready"], where) if "ready" in table else None,
    )


def _text(key: str, table: Mapping[str, Any], where: str) -> str | list[str]:
    """Return the value of an option as text, or the texts of a repeatable one."""
    if not BY_KEY[key].multiple:
        return str(table[key])
    if isinstance(table[key], list) and all(isinstance(one, str) for one in table[key]):
        return list(table[key])
    raise _wrong(key, table, where, "must be a list of texts")


def _wrong(key: str, table: Mapping[str, Any], where: str, reason: str) -> JobgenError:
    value = str(table[key])
    return JobgenError(
        f"{key} = {shown(value.lower() if isinstance(table[key], bool) else value)} ({where}): {reason}"
    )


def _name(table: Mapping[str, Any], where: str) -> str | None:
    name = table.get("name")
    if name is None or (isinstance(name, str) and re.fullmatch(_NAME, name, re.ASCII)):
        return name
    raise _wrong("name", table, where, "must be a word of letters, digits and _, such as server")


def _amount(key: str, table: Mapping[str, Any], where: str, least: int) -> int | tuple[int, ...] | None:
    value = table.get(key)
    if value is None or (type(value) is int and value >= least):
        return value
    if isinstance(value, str) and value.isdecimal() and not value.startswith("0"):
        raise _wrong(key, table, where, f'is a text: {value} is a number of them, "0-{value}" names them')
    if isinstance(value, str) and (numbers := read(value)):
        return tuple(sorted(numbers))
    raise _wrong(key, table, where, f'must be a number of at least {least}, or a list such as "0-3,6"')


def _env(table: Mapping[str, Any], where: str) -> tuple[tuple[str, str | None], ...]:
    env = table.get("env", {})
    if not isinstance(env, dict):
        raise _wrong("env", table, where, 'must be a table such as { BATCH = "8" }')
    check_variables(env, f"{where}, env")
    for name, value in env.items():
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise _wrong(name, env, f"{where}, env", "must be a text in quotes or a whole number")
    lines = [f"{name}={value}" for name, value in env.items()]
    values: tuple[tuple[str, str | None], ...] = parse(BY_KEY["env"], lines, where)[0] if lines else ()
    return values


def _starts(table: Mapping[str, Any], where: str) -> tuple[str, ...]:
    if "starts" not in table:
        return ()
    found = re.fullmatch(rf"after ({_NAME}(?:(?:, | and ){_NAME})*) (?:is|are) ready", str(table["starts"]))
    if not found:
        raise _wrong(
            "starts", table, where, 'must be "after NAME is ready", or "after NAME and NAME are ready"'
        )
    return tuple(dict.fromkeys(re.split(", | and ", found[1])))


def _ends(table: Mapping[str, Any], where: str) -> str | None:
    if "ends" not in table:
        return None
    found = re.fullmatch(rf"with ({_NAME})", str(table["ends"]))
    if not found:
        raise _wrong("ends", table, where, 'must be "with NAME": it is ended when that step has ended')
    return found[1]


def _ready(table: Any, where: str) -> Ready:
    if not isinstance(table, dict) or sum(key in table for key in _READY) != 1:
        raise JobgenError(
            f"ready ({where}): must be a table with file, port or line, such as "
            '{ port = true, within = "10m" }'
        )
    for key in table:
        if key not in (*_READY, "within"):
            raise JobgenError(
                f"{shown(key)} ({where}, ready): is no such key: use {one_of((*_READY, 'within'))}"
            )
    port = table.get("port", 0)
    if port is False or not isinstance(port, int) or not 0 <= port <= 65535:
        raise _wrong("port", table, f"{where}, ready", "must be true, or a number from 1 to 65535")
    for key in ("file", "line"):
        value = table.get(key, "x")
        if not isinstance(value, str) or not value or "\n" in value:
            raise _wrong(key, table, f"{where}, ready", "must be a text of one line")
    if re.search(r"^~|\$", table.get("file", "")):
        raise _wrong("file", table, f"{where}, ready", "must be a path without variables and ~")
    try:
        within = walltime(str(table.get("within", "10m")))
    except ValueError as error:
        raise _wrong("within", table, f"{where}, ready", str(error)) from None
    return Ready(
        table.get("file", ""), "port" in table, 0 if port is True else port, table.get("line", ""), within
    )
