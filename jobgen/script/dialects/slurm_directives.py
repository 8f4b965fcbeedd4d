"""Directives of Slurm for conversion: those without a field in a request, and those not converted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobgen.launch.accelerators import GENERIC_RESOURCES
from jobgen.script.dialects import slurm_sizes
from jobgen.script.dialects.script_request import Directive, ScriptRequest
from jobgen.script.dialects.slurm_values import MAIL_TYPES
from jobgen.values.devices import device_count
from jobgen.values.parsers import mebibytes, number

if TYPE_CHECKING:
    from jobgen.schedulers.request import DirectiveOption, Request
    from jobgen.script.dialects.base import Dialect

_UNITS = {"second": "s", "minute": "m", "hour": "h", "day": "d", "": "s"}
_MAILS = {"BEGIN", "END", "FAIL", "ALL", "NONE"}
_CONVERTED = {
    "--job-name", "--partition", "--account", "--array", "--output", "--error", "--mail-type", "--mail-user",
    "--requeue", "--no-requeue", "--dependency", "--time", "--exclusive", "--nodes", "--ntasks",
    "--ntasks-per-node", "--cpus-per-task", "--gpus-per-node", "--gres", "--gpus", "--gpus-per-task", "--mem",
    "--mem-per-cpu", "--mem-per-gpu", "--cpus-per-gpu", "--ntasks-per-gpu", "--export", "--chdir", "--hold",
}  # fmt: skip


_NUMBERS = {
    "--ntasks", "--ntasks-per-node", "--cpus-per-task", "--gpus-per-node", "--gpus", "--gpus-per-task",
    "--cpus-per-gpu", "--ntasks-per-gpu", "--mincpus",
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


def read(dialect: Dialect, content: ScriptRequest, given: Mapping[str, DirectiveOption]) -> None:
    """Add the values that a request has no field for."""
    slurm_sizes.complete(content, given)
    content.request.walltime = content.request.walltime or None  # 0 is no limit
    for option in given.values():
        takes_value = dialect.scheduler.grammar.long_options.get(option.flag[2:]) == "="
        given_value = option.value or (takes_value and not option.missing)  # sbatch accepts an empty one
        text = f"{option.flag}={option.value}".removeprefix("=") if given_value else option.flag
        if key := dialect.option_of(option.flag):
            content.directives[key] = Directive(option, text, value(key, option.value))
        elif why := _fault(option, content, dialect):
            content.unconverted.append((option, text, why))
    _read_export(content, given["--export"].value if "--export" in given else "ALL")
    if "--export" in given and any(one[:1] == "=" for one in given["--export"].value.split(",")):
        export = given["--export"]
        content.unconverted.append((export, f"--export={export.value}", "names no variable"))
    content.hold = "--hold" in given
    content.directory = given["--chdir"].value if "--chdir" in given else None


def _read_export(content: ScriptRequest, text: str) -> None:
    export = [one.partition("=") for one in text.split(",")]
    content.exports = [(name, value) for name, equals, value in export if equals and name.isidentifier()]
    names = [name for name, equals, _ in export if not equals]
    content.names = [name for name in names if name.upper() not in ("ALL", "NONE")]
    content.all_variables = "ALL" in map(str.upper, names)
    content.own += [] if content.all_variables else [f"--export={text}"]


def _fault(option: DirectiveOption, content: ScriptRequest, dialect: Dialect) -> str:
    """Return why an option cannot be converted; empty if it can."""
    request = content.request
    if option.flag == "--nodelist" and option.value:
        return "names nodes of the old cluster: request those of the new one by their names"
    of_one_task = option.flag == "--mincpus" and slurm_sizes.has_one_task(request)
    if option.flag not in _CONVERTED and not of_one_task:
        return "has no counterpart"
    if option.flag == "--dependency" and content.bad_dependency:
        return f"{content.bad_dependency} {content.dependency_fault}"
    types = set(option.value.upper().split(",")) & set(MAIL_TYPES)  # it ignores other words beside them
    known = _MAILS | {dialect.task_mail} | ({"TIME_LIMIT"} if types & {"FAIL", "ALL"} else set())
    if option.flag == "--mail-type" and (odd := types - known):
        return f"{', '.join(sorted(odd))} has no counterpart"
    if option.flag == "--exclusive" and option.value:
        return "has no counterpart"
    count = device_count(option.value) if option.flag.startswith("--gpus") else number(option.value)
    if option.flag in _NUMBERS and count is None and option.value not in GENERIC_RESOURCES:
        return "is not a number"
    if option.flag.startswith("--mem") and mebibytes(option.value) is None:
        return "is not a size"
    if option.flag == "--time" and request.walltime is None:
        no_limit = option.value.lower() in dialect.unlimited or dialect.seconds(option.value) == 0
        return "means no limit, which has no counterpart" if no_limit else "is not a valid time"
    if option.flag == "--nodes" and request.nodes is None:
        return "is not a single number"
    if option.flag == "--ntasks" and request.nodes and request.ranks and request.ranks % request.nodes:
        return "is not divisible by the nodes, and only equal nodes can be translated"
    return _device_fault(option, request)


def _types(parts: list[str], flag: str) -> list[str]:
    """Return the types in requests of devices: gpu:TYPE and gpu:TYPE:NUMBER, or TYPE and TYPE:NUMBER."""
    if flag not in ("--gres", "--gpus-per-node", "--gpus", "--gpus-per-task"):
        return []
    words = [part.split(":") for part in parts]
    known = ("gpu", *GENERIC_RESOURCES)
    words = [one[1:] if one[0] in known else one for one in words if flag != "--gres" or one[0] in known]
    return [one[0] for one in words if one and one[0] and (len(one) > 1 or number(one[0]) is None)]


def _device_fault(option: DirectiveOption, request: Request) -> str:
    parts = [re.sub(r"^gres[:/]", "", part) for part in option.value.split(",")]
    devices = [part.partition(":")[0] for part in parts]
    kinds = _types(parts, option.flag)
    untyped = f"the number is translated, but not the type {', '.join(kinds)}" if kinds else ""
    odd = [one for one in devices if one not in ("gpu", *GENERIC_RESOURCES)]
    if option.flag == "--gres" and odd:
        why = "has no counterpart" if odd == devices else f"{', '.join(odd)} has no counterpart"
        return "; ".join(filter(None, (why, untyped)))
    if untyped:
        return untyped
    if option.flag == "--gpus" and request.gpus and request.gpus % (request.nodes or request.ranks or 1):
        return "is not divisible by the nodes, and only equal nodes can be translated"
    if option.flag == "--gpus" and request.gpus_per_node is None and device_count(option.value):
        return "a total requires a number of nodes"
    if option.flag.endswith("-per-gpu") and not request.gpus_per_node:
        return "the number of GPUs is not known"
    of_core = option.flag == "--mem-per-cpu" and re.fullmatch("(?i)0+[KMGT]?B?", option.value)
    if of_core or (option.flag == "--mem" and request.mem == 0):
        return "all memory of the nodes has no counterpart"
    return ""
