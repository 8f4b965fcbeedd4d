"""Variables of other schedulers that the code of a job reads, as that of a job file for one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jobgen.launch.expansion import code_at
from jobgen.launch.expansion import names as expanded_names
from jobgen.schedulers.base import Scheduler
from jobgen.spec import Specification

# A variable with a default, as ${NAME:-1}, is read on purpose where it is not set.
_READ = re.compile(r"(?<!\\)\$(?:(\w+)|\{[#!]?(\w+)(?![\w]|:?[-+=?]))")


def warnings(spec: Specification, scheduler: Scheduler) -> tuple[str, ...]:
    """Return a warning on the variables that have no value under this scheduler."""
    read = dict(_reads(spec))
    if not any("_" in name for name in read):
        return ()
    from jobgen.script.dialects.table import DIALECTS, of_script  # late: most jobs read none

    own = of_script(scheduler.name)
    known = {name: meaning for one in DIALECTS.values() for name, meaning in one.job_variables.items()}
    prefixes = {one.variable_prefix for one in DIALECTS.values()} - {own.variable_prefix}
    found = []
    for name, where in read.items():
        if name in own.job_variables or not (
            name.startswith(tuple(prefixes)) or name in own.foreign_variables
        ):
            continue
        use = own.foreign_variables.get(name) or own.variable(known.get(name, ""))
        found.append(f"{name} ({where}{f'; use {use}' if use else ''})")
    return (f"{scheduler.title} does not set {', '.join(found)}",) if found else ()


def _reads(spec: Specification) -> Iterator[tuple[str, str]]:
    """Yield the names that the code of a job reads and does not set, each with its last place."""
    code = {"setup": spec.setup, "before": spec.before, "after": spec.after_block}
    programs = {"program": spec.program}
    programs |= {f"program of step {at}": one.program for at, one in enumerate(spec.steps, 1)}
    texts = [(place, text) for place, text in code.items() if text]
    texts += [(place, one) for place, words in programs.items() if (one := _code(words))]
    own = {name for name, _ in spec.env}
    for _, text in texts:
        own.update(re.findall(r"(?:^|[\s;&|(])(\w+)\+?=", text))
    for place, text in texts:
        for plain, braced in _READ.findall(re.sub(r"(?m)(?:^|\s)#.*", "", text)):
            if (name := plain or braced) not in own:
                yield name, place
    for place, words in programs.items():
        yield from (
            (name, place) for name in (expanded_names(words) if spec.expand else ()) if name not in own
        )


def _code(words: Sequence[str]) -> str:
    """Return the text that a shell runs, as after ``bash -c``."""
    at = code_at(words)
    return words[at] if 0 <= at < len(words) else ""
