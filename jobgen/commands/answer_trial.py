"""A trial of an answer about foreign options: whether jobgen accepts it, and the devices of the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from jobgen.commands.job_plan import job_file, resolved
from jobgen.errors import JobgenError, counted
from jobgen.launch.program_launcher import launchers_in


class Trial(NamedTuple):
    """Why jobgen refuses a command line, or the devices of a node that no option requests."""

    fault: str = ""
    devices: str = ""


def try_answer(command: click.Command, words: Sequence[str], scheduler: str, program: Sequence[str]) -> Trial:
    """Make the plan of a command line."""
    parser = command.make_parser(click.Context(command))
    try:
        texts, _, _ = parser.parse_args(list(words))
    except click.UsageError:
        return Trial()  # another error of the command line is in the way
    launched = launchers_in(tuple(program))  # of which another answer tells
    run = tuple(launched.program if launched else program)
    try:
        changes = tuple(texts.get("settings") or ())
        layer = job_file(texts.get("job"), bool(texts.get("no_job")), changes, run)
        plan = resolved(scheduler, texts, run, layer, texts.get("site"), texts.get("job"))
    except JobgenError as error:
        return Trial(str(error))
    if not plan.resources.gpus_per_node or "gpus_per_node" in plan.spec.origins:
        return Trial()
    return Trial(devices=f"{counted(plan.resources.gpus_per_node, 'GPU')} a node")
