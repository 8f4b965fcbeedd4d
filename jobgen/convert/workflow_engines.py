"""Workflow engines that a script starts: they submit jobs as their options or their configuration say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from jobgen.launch.wrappers import command_start
from jobgen.script.command_kinds import PRINT, STATE, TOOLS
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import parse
from jobgen.script.word_lists import expanded

# The engines, and patterns of the options with which they submit jobs.
_ENGINES = {
    "nextflow": r"(?<!\S)(run(?!\S)|-profile)",
    "snakemake": r"(?<!\S)(--((workflow-)?profile|profiles|cluster(-sync|-generic-submit-cmd)?|drmaa|slurm)"
    r"(?![\w-])|(--executor|-e)[ =](?!local\b))",
}
_PROFILE = {"snakemake": "SNAKEMAKE_PROFILE"}  # variables that name a configuration
_OWN_COMMAND = r"--cluster[\w-]*[ =]+(\S*/)?({})\b"  # a command of the scheduler, which the user sees


class Workflow(NamedTuple):
    """A call of an engine that submits jobs."""

    line: int
    engine: str


def workflows(script: Script) -> Iterator[Workflow]:
    """Yield the calls of engines that submit jobs, except by a command of the scheduler that they name."""
    own = re.compile(_OWN_COMMAND.format("|".join(map(re.escape, script.dialect.commands))))
    for command in [*script.commands, *commands_of_shells(script)]:
        words = _words(script, command)
        first = os.path.basename(words[0]) if words else ""
        at = next((at for at, word in enumerate(words) if os.path.basename(word) in _ENGINES), None)
        if at is None or first in PRINT | STATE | TOOLS:
            continue
        engine, options = os.path.basename(words[at]), own.sub("", " ".join(words[at + 1 :]))
        by_variable = at == 0 and _PROFILE.get(engine) in script.values
        if by_variable or re.search(_ENGINES[engine], options):
            yield Workflow(command.line, engine)


def _words(script: Script, command: Command) -> list[str]:
    """Return the words of a command behind its wrappers, with the values of variables, without quotes."""
    nodes = (one for word in command.words for one in expanded(word, script.constants, command.node))
    words = " ".join(script.constants.text(one).strip("\"'") for one in nodes).split()
    return words[command_start(words) :]


def commands_of_shells(script: Script) -> Iterator[Command]:
    """Yield the commands in a text that the script gives to a shell: ``bash -c "..."``."""
    for command in script.commands:
        for option, text in pairwise(command.words):
            if re.fullmatch("-[a-z]*c", option.text) and text.type in ("string", "raw_string"):
                yield from commands(parse(text.text[1:-1].encode(), text.line))
