"""A launcher as the program of a job: jobgen starts the ranks itself, so each rank would start them again.
A program whose words are one word."""

import os
import re
import shlex

from jobgen.errors import JobgenError, dashed_option, shown, visible
from jobgen.launch.launchers import LAUNCHERS
from jobgen.launch.program import Program, has_operator, joined_words
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


def refuse_joined_words(spec: Specification, program: Program) -> None:
    """Refuse a program whose words are one word in quotes, or that begins with a dash that is no hyphen."""
    if not program.is_ours and (found := joined_words(program.words)):
        word, parts = found
        why = f"is one word; without its quotes it is {shlex.join(parts)}"
        if has_operator(parts):
            why = f"is code of a shell, which jobgen does not read: use {shlex.join(['bash', '-c', word])}"
        elif not re.search(r"/|\s-|^python|sh\s", word):
            why += f", and a file with blanks in its name is {shlex.quote('./' + word)}"
        raise JobgenError(f"{shown(word)} ({spec.program_origin}): {why}")
    if option := dashed_option(program.words[0]):
        raise JobgenError(
            f"{visible(program.words[0])} ({spec.program_origin}): did you mean {option}, with hyphens?"
        )


def _separated(spec: Specification, program: Program) -> tuple[str, ...]:
    """Return the words of the program, also if they are quoted as one word."""
    if not re.search(r"\s", spec.program[0]):
        return program.words
    try:
        return (*shlex.split(spec.program[0]), *spec.program[1:])
    except ValueError:
        return program.words
