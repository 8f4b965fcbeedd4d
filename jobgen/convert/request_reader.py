"""The content of a script's directives: what another scheduler can express, and what it cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.convert import launch_nodes
from jobgen.convert.result import Remark, hint
from jobgen.schedulers.request import Request
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.request import heeded
from jobgen.script.script import Script
from jobgen.values import arrays

_KINDS = {array: kind for one in DIALECTS.values() for kind, array in one.array_kinds.items()}
_KIND = "|".join([*_KINDS, *_KINDS.values()])
_DEPENDENCIES = rf"({_KIND}):\d+(\[])?(\.[\w.-]+)?(:\d+(\[])?(\.[\w.-]+)?)*"


def at_directive(script: Script, field: str, why: str) -> Iterator[Remark]:
    """Yield a remark on the directive that sets a field of the request."""
    if directive := script.dialect.origin(script.heeded, field):
        yield hint(directive.option.line, directive.text, why)


def line_of(script: Script, *fields: str) -> int:
    """Return the line of the directive for the first of these fields or flags, else of the first one."""
    for field in fields:
        if (given := script.heeded.get(field)) is not None:
            return given.line
        if (origin := script.dialect.origin(script.heeded, field)) is not None:
            return origin.option.line
    return script.directives.first


def has_directives(script: Script) -> bool:
    """Return whether a script is for a scheduler; some of its directives may have no effect."""
    return script.is_batch or bool(script.directives.late)


def read(script: Script, whole: bool = False, totals: bool = False) -> ScriptRequest:
    """Read all directives of a script. With ``whole`` what is missing has the scheduler's default; with
    ``totals`` the resources of a job without chunks are those of one chunk."""
    source, request = DIALECTS[script.scheduler], script.request
    bad = next((one for one in request.depend if not re.fullmatch(_DEPENDENCIES, one)), "")
    content = ScriptRequest(request, whole, totals, bad)
    launch_nodes.fill_devices(script, content)
    launch_nodes.fill_cray(script, content)
    given = heeded(script.options, source.scheduler)
    known = source.scheduler.grammar.long_options  # of others, as those of a plug-in, all may be in effect
    for one in script.options:
        if one.flag.startswith("--") and one.flag[2:] not in known and given.get(one.flag, one) is not one:
            text = f"{one.flag}={one.value}".removesuffix("=")
            content.unconverted.append((one, text, "has no counterpart"))
    source.read_more(content, given)
    launch_nodes.spread(script, content)
    if content.directory and re.fullmatch(r"\./+", content.directory):
        content.directory = "."
    return content


def single_task(content: ScriptRequest, source: Dialect, target: Dialect) -> bool:
    """Make a job of an array with one index if arrays must have more; return whether it did."""
    request = content.request
    array = arrays.read(request.array) if request.array else None
    single = array is not None and [first == last for first, last, _ in array.ranges] == [True]
    if array is None or not single or target.least_range < 2:
        return False
    index = str(array.ranges[0][0])
    content.exports.append((str(target.variable("array_index")), index))
    request.array = None
    if source.percent_codes:
        for field in ("output", "error"):
            if path := getattr(request, field):
                path = re.sub(r"%(\d*)a", lambda code: index.zfill(int(code[1] or 0)), path)
                setattr(request, field, path.replace("%A", "%j"))
    return True


def jobs(one: str) -> list[tuple[str, str]]:
    """Return each job of a dependency with its kind; kinds for arrays become those for jobs."""
    kind, *ids = one.split(":")
    return [(_KINDS.get(kind, kind), job) for job in ids or [""]]


def waits_for_number(request: Request) -> bool:
    """Return whether a directive has the number of another job, which only its own scheduler knows."""
    return any(re.fullmatch(_DEPENDENCIES, one) for one in request.depend)


def dependencies(request: Request, target: Dialect) -> Iterator[str]:
    """Yield the dependencies that all schedulers support, with job numbers only."""
    for one in request.depend:
        if not re.fullmatch(_DEPENDENCIES, one):
            continue
        kinds: dict[str, list[str]] = {}
        for kind, job in jobs(one):
            number = re.split(r"\D", job)[0] + target.array_id * ("[]" in job)
            kinds.setdefault(target.scheduler.dependency(kind, number), []).append(number)
        yield from (":".join([kind, *ids]) for kind, ids in kinds.items())
