"""The content of a script's directives: what another scheduler can express, and what it cannot."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.request import heeded
from jobgen.check.script import Script
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.request import Request
from jobgen.schedulers.table import SCHEDULERS
from jobgen.schedulers.wanted import Wanted
from jobgen.values import mebibytes

_KINDS = {array: kind for one in SCHEDULERS.values() for kind, array in one.array_kinds.items()}
_KIND = "|".join([*_KINDS, *_KINDS.values()])
_DEPENDENCIES = rf"({_KIND}):\d+(\[])?(\.[\w.-]+)?(:\d+(\[])?(\.[\w.-]+)?)*"


def read(script: Script) -> Wanted:
    """Read all directives of a script."""
    source, asked = SCHEDULERS[script.scheduler], script.request
    bad = next((one for one in asked.depend if not re.fullmatch(_DEPENDENCIES, one)), "")
    given = heeded(script.options, source.name)
    per_core = next((one.value for one in given.values() if one.flag == source.memory_per_core), "")
    if asked.mem is None and (each := mebibytes(per_core)):
        asked.mem = each * (asked.cpus_per_rank or 1) * (asked.ranks_per_node or 1)
    wanted = Wanted(asked, bad)
    source.read_more(wanted, given)
    return wanted


def jobs(one: str) -> list[tuple[str, str]]:
    """Return each job of a dependency with its kind; kinds for arrays become those for jobs."""
    kind, *ids = one.split(":")
    return [(_KINDS.get(kind, kind), job) for job in ids or [""]]


def dependencies(asked: Request, target: Scheduler) -> Iterator[str]:
    """Yield the dependencies that all schedulers support, with job numbers only."""
    for one in asked.depend:
        if not re.fullmatch(_DEPENDENCIES, one):
            continue
        kinds: dict[str, list[str]] = {}
        for kind, job in jobs(one):
            number = re.split(r"\D", job)[0] + target.array_id * ("[]" in job)
            kinds.setdefault(target.dependency(kind, number), []).append(number)
        yield from (":".join([kind, *ids]) for kind, ids in kinds.items())
