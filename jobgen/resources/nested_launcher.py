"""A launcher as the program of a job. jobgen starts the ranks itself, so each rank would start them again."""

import os
from collections.abc import Mapping

from jobgen.errors import JobgenError, shown
from jobgen.launchers import LAUNCHERS, CommandLine, known
from jobgen.program import Program
from jobgen.schedulers.base import Scheduler
from jobgen.spec import COMMAND_LINE, JobSpec

_NAMES = frozenset(name for row in known().values() for name in row.names)
_MODULES = frozenset(module for row in known().values() for module in row.line.modules)


def refuse_launcher(spec: JobSpec, program: Program, scheduler: Scheduler) -> None:
    """Refuse a program that is a launcher, with the options of jobgen that start the same ranks."""
    words = program.words
    if os.path.basename(words[0]) not in _NAMES and _MODULES.isdisjoint(words[1:5]):
        return
    import shlex

    from jobgen.check.launches import read_words

    if (read := read_words(words)) is None:
        return
    kind, options, rest = read
    row = known()[kind]
    name = row.replacement or kind
    if spec.scheduler not in LAUNCHERS[name].schedulers:
        name = scheduler.default_launcher
    use = {"launcher": name, **_counts(options, row.line, spec)}
    given = [f"--{key.replace('_', '-')} {value}" for key, value in use.items()]
    command = " ".join([*given, "--", shlex.join(rest or ("PROGRAM",))])
    origin = spec.origin("program")
    where = origin if origin not in ("default", "derived", COMMAND_LINE) else "after --"
    raise JobgenError(
        f"{shown(shlex.join(words))} ({where}): is a launcher, which jobgen starts itself; use {command}"
    )


def _counts(options: Mapping[str, str | None], line: CommandLine, spec: JobSpec) -> dict[str, int]:
    """Return the nodes and the ranks per node of a launcher, unless options of jobgen set them."""
    from jobgen.schedulers.request import number  # late: only the error needs it

    def told(names: tuple[str, ...]) -> int | None:
        return next((count for name in names if (count := number(options.get(name)))), None)

    nodes = told(line.nodes) or (spec.nodes if isinstance(spec.nodes, int) else 1)
    total, each = told(line.ranks), told(line.local_ranks)
    if each is None and total and total % nodes == 0:
        each = total // nodes
    found = {"nodes": nodes if nodes > 1 else None, "ranks_per_node": each}
    return {key: count for key, count in found.items() if count and key not in spec.origins}
