"""Sentences on commands that do not exist, each with the command to use instead."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from jobgen.errors import dashed_option, one_of, shown
from jobgen.launch.command_line import begins_launch
from jobgen.launch.program_launcher import launchers_in
from jobgen.plan.directives import unpattern
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.detection import of_machine
from jobgen.schedulers.table import COMMANDS, named, queued
from jobgen.spec import COMMAND_LINE
from jobgen.values.text_files import is_job_file_name, is_script_name


def command_missing(option: str, words: Sequence[str], program: Sequence[str]) -> str:
    """Return the sentence on an option before any command."""
    command = next((word for word in words if word in COMMANDS), None)
    line = _line([command or _queue(), *(word for word in words if word != command)], program)
    return f"{shown(option)} comes after {one_of(COMMANDS)}, as in: {line}"


def run_advice(words: Sequence[str], program: Sequence[str]) -> str:
    """Return the sentence on ``jobgen run``; ``words`` follow it."""
    if words and not words[0].startswith("-"):
        words, program = (), (*words, *program)
    if len(program) == 1 and is_job_file_name(program[0]):
        words, program = ("--job", *program), ()
    local, queue = _line(["local", *words], program), _line(["submit", _queue(), *words], program)
    return (
        f"there is no command run; for a run on this machine: {local} | bash; for a job in a queue: {queue}"
    )


def log_advice(scheduler: Scheduler, path: str) -> str:
    """Return the sentence on a file of the script that is named like that of the job's output."""
    advice = scheduler.lacks.get("log") or f"for that use --log {shlex.quote(_pattern(scheduler, path))}"
    return f"-o {shown(path)} (command line): is the file of the script, not of the job's output; {advice}"


def _pattern(scheduler: Scheduler, path: str) -> str:
    """Return the value of --log for a path of the output: in a folder a name is added, and the id of the job,
    which the names of PBS Pro cannot have, becomes the name of the job."""
    if path.endswith("/"):
        path += "%x-%j.log"
    elif "%" not in path:  # it has no patterns of Slurm
        path = unpattern(path)
    try:
        scheduler.log("", path)
    except ValueError:
        return path.replace("%x-%j", "%x").replace("%j", "%x")
    return path


def script_advice(path: str, name: str | None) -> str:
    """Return the sentence on a script as an argument; ``name`` is the scheduler, or the name of the
    command."""
    commands = [named(one, None).command for one in COMMANDS if name not in COMMANDS or one == name]
    lines = one_of(shlex.join([command, path]) for command in commands)
    return f"{shown(path)} (command line): is a script already, and jobgen makes its own; run it by: {lines}"


def job_file_advice(path: str, command: Sequence[str] = (), origin: str = COMMAND_LINE) -> str:
    """Return the sentence on a job file as an argument or a program; without a command, the one of this
    machine's scheduler is named."""
    line = _line([*(command or [_queue()]), "--job", path], ())
    return f"{shown(path)} ({origin}): is a job file, which is given with --job, as in: {line}"


def program_advice(words: Sequence[str], program: Sequence[str]) -> str:
    """Return the sentence on a program, a script, a job file or a command of a scheduler instead of a command
    of jobgen; empty for other words."""
    name = os.path.basename(words[0])
    if job_file := next(filter(is_job_file_name, words), None):
        submit = next((("submit", key) for key, row in queued().items() if row.command == name), ())
        return job_file_advice(job_file, submit)
    schedulers = {row.command: row.command_name for row in queued().values()}
    if command := schedulers.get(name):
        if is_script_name(words[-1]):
            return script_advice(words[-1], command)
        line = _line(["submit", command], program or ["PROGRAM"])
        return f"there is no command {name}; jobgen makes the script and submits it: {line}"
    if is_script_name(name):
        return script_advice(words[0], None)
    if is_program(words[0]):
        line = _with_program([*words, *program])
        return f"{shown(words[0])} is no command of jobgen; a program goes after --, as in: {line}"
    return ""


def is_program(word: str) -> bool:
    """Return whether a word is a Python script, a launcher, an interpreter, or the path of a file."""
    return (
        word.endswith(".py")
        or begins_launch(os.path.basename(word))
        or ("/" in word and os.path.exists(word))
    )


def _with_program(words: Sequence[str]) -> str:
    """Return the command for a program; a launcher in front of it becomes options."""
    if (found := launchers_in(tuple(words))) is None:
        return _line([_queue()], words)
    from jobgen.config import read_spec
    from jobgen.plan.launcher_advice import advice

    name = _queue()
    text = advice(found, read_spec(name, {}, tuple(words)), named(name, None))
    return f"jobgen {name} {text.removeprefix('use ')}"


def stray_advice(words: Sequence[str], command: Sequence[str], program: Sequence[str]) -> str:
    """Return the hint on words that are no options of a command, which may have a scheduler as a word."""
    if option := dashed_option(words[0]):
        return f"did you mean {shown(option)}, with hyphens?"
    example = "" if program else f", as in: {_line(command, words)}"
    return f"the program goes after --{example}"


def _queue() -> str:
    """Return the command of this machine's scheduler, or that of another one if it has none."""
    scheduler = of_machine().scheduler
    return list(queued())[-1] if scheduler.behaviour.one_host else scheduler.command_name


def _line(words: Sequence[str], program: Sequence[str]) -> str:
    return shlex.join(["jobgen", *words, *(["--", *program] if program else [])])
