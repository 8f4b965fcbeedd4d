"""A launcher as the program of a job. jobgen starts the ranks itself, so each rank would start them again."""

import os
import re

from jobgen.errors import JobgenError, shown
from jobgen.launch.launchers import LAUNCHERS
from jobgen.launch.program import Program
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import queued
from jobgen.spec import Specification

_SUBMIT = frozenset(row.command for row in queued().values())
_NAMES = _SUBMIT.union(*((*row.names, *row.line.modules) for row in LAUNCHERS.values()))


def refuse_launcher(spec: Specification, program: Program, scheduler: Scheduler) -> None:
    """Refuse a program that is a launcher, with the options of jobgen that start the same ranks.

    A job of one process may start launchers of its own, if an option or the site says that it is one.
    """
    if LAUNCHERS[spec.launcher].one_process and "launcher" in spec.origins:
        return
    if _NAMES.isdisjoint(re.split(r"[^\w.-]+", " ".join(program.words))):
        return
    import shlex

    from jobgen.launch.program_launcher import launchers_in
    from jobgen.launch.wrappers import command_start
    from jobgen.plan.launcher_advice import advice

    words = _separated(spec, program)
    if (found := launchers_in(words)) is not None:
        fault = f"is a launcher, which jobgen starts itself; {advice(found, spec, scheduler)}"
    elif not _SUBMIT.isdisjoint(map(os.path.basename, words[command_start(words) :][:1])):
        fault = "submits a job, which jobgen submit does; give the program of the job"
    else:
        return
    raise JobgenError(f"{shown(shlex.join(words))} ({spec.program_origin}): {fault}")


def _separated(spec: Specification, program: Program) -> tuple[str, ...]:
    """Return the words of the program, also if they are quoted as one word."""
    import shlex

    if not re.search(r"\s", spec.program[0]):
        return program.words
    try:
        return (*shlex.split(spec.program[0]), *spec.program[1:])
    except ValueError:
        return program.words
