"""Directives of Slurm for conversion: those without a field in a request, and those not converted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobgen.resources.accelerators import GENERIC_RESOURCES
from jobgen.schedulers.wanted import Told, Wanted

if TYPE_CHECKING:
    from jobgen.schedulers.base import Scheduler
    from jobgen.schedulers.request import Option, Request

_UNITS = {"second": "s", "minute": "m", "hour": "h", "day": "d", "": "s"}
_MAILS = {"BEGIN", "END", "FAIL", "ALL", "NONE"}
_CONVERTED = {
    "--job-name", "--partition", "--account", "--array", "--output", "--error", "--mail-type", "--mail-user",
    "--requeue", "--no-requeue", "--dependency", "--time", "--exclusive", "--nodes", "--ntasks",
    "--ntasks-per-node", "--cpus-per-task", "--gpus-per-node", "--gres", "--gpus", "--gpus-per-task", "--mem",
    "--mem-per-cpu", "--export", "--chdir", "--hold",
}  # fmt: skip


def value(key: str, text: str) -> str:
    """Return the value of a directive in the form of the option; unchanged if it cannot be converted."""
    if key == "begin":
        return _since(text)
    if key == "priority":
        nice = text or "100"
        return str(-int(nice)) if re.fullmatch(r"[+-]?\d{1,9}", nice, re.ASCII) else nice
    return text


def _since(text: str) -> str:
    if match := re.fullmatch(r"now\+(\d{1,8})(?:(second|minute|hour|day)s?)?", text, re.ASCII):
        return f"+{match[1]}{_UNITS[match[2] or '']}"
    return f"{text}T00:00" if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else text


def read(scheduler: Scheduler, wanted: Wanted, given: Mapping[str, Option]) -> None:
    """Add the values that a request has no field for."""
    for option in given.values():
        text = f"{option.flag}={option.value}".rstrip("=")
        if key := scheduler.option_of(option.flag):
            wanted.told[key] = Told(option, text, value(key, option.value))
        elif why := _fault(option, wanted):
            wanted.left.append((option, text, why))
    _read_export(wanted, given["--export"].value if "--export" in given else "ALL")
    wanted.hold = "--hold" in given
    wanted.directory = given["--chdir"].value if "--chdir" in given else None
    asked = wanted.request
    if asked.ranks_per_node is None and asked.nodes and asked.ranks and asked.ranks % asked.nodes == 0:
        asked.ranks_per_node = asked.ranks // asked.nodes


def _read_export(wanted: Wanted, text: str) -> None:
    export = [one.partition("=") for one in text.split(",")]
    wanted.exports = [(name, value) for name, equals, value in export if equals]
    names = [name for name, equals, _ in export if not equals]
    wanted.names = [name for name in names if name not in ("ALL", "NONE")]
    wanted.all_variables = "ALL" in names
    wanted.own += [] if wanted.all_variables else [f"--export={text}"]


def _fault(option: Option, wanted: Wanted) -> str:
    """Return why an option cannot be converted; empty if it can."""
    asked = wanted.request
    if option.flag not in _CONVERTED:
        return "has no counterpart"
    if option.flag == "--dependency" and wanted.bad_dependency:
        return f"{wanted.bad_dependency} has no counterpart"
    if option.flag == "--mail-type" and (odd := set(option.value.upper().split(",")) - _MAILS):
        return f"{', '.join(sorted(odd))} has no counterpart"
    if option.flag == "--exclusive" and option.value:
        return "has no counterpart"
    if option.flag == "--time" and asked.walltime is None:
        return "is not a valid time"
    if option.flag == "--nodes" and asked.nodes is None:
        return "is not a single number"
    if option.flag == "--ntasks" and asked.nodes and asked.ranks and asked.ranks % asked.nodes:
        return "is not divisible by the nodes, and only equal nodes can be translated"
    return _device_fault(option, asked)


def _device_fault(option: Option, asked: Request) -> str:
    listed = r"|,[A-Za-z]\w*:\d+$" if option.flag == "--gpus" else ""
    if option.flag in ("--gres", "--gpus-per-node", "--gpus") and re.search(
        rf":[A-Za-z]\w*:|^[A-Za-z]\w*:\d+${listed}", option.value
    ):
        kind = option.value.split(":")[-2].rpartition(",")[2]
        if kind not in ("gpu", *GENERIC_RESOURCES):
            return f"the number is translated, but not the type {kind}"
    if option.flag == "--gres" and asked.gpus_per_node is None:
        return "has no counterpart"
    if option.flag == "--gpus" and asked.gpus_per_node is None:
        return "a total requires a number of nodes"
    return ""
