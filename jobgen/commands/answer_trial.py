"""A trial of an answer about foreign options: whether jobgen accepts it, and the devices of the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from jobgen.commands.foreign_values import instead_of
from jobgen.commands.job_input import JobInput, job_file, resolved
from jobgen.errors import JobgenError, counted
from jobgen.launch.program_launcher import launchers_in


class Trial(NamedTuple):
    """Why jobgen refuses a command line and the words to use instead, or the devices of a node that no option
    requests."""

    error: JobgenError | None = None
    use: str = ""
    devices: str = ""

    @property
    def fault(self) -> str:
        return str(self.error or "")


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
        job = JobInput(scheduler, texts, run, layer, texts.get("site"), texts.get("job"))
    except JobgenError as error:
        return Trial(error)
    try:
        plan = resolved(job)
    except JobgenError as error:
        instead = instead_of(error, job)
        return Trial(instead.added_to(error), instead.use)
    if not plan.resources.gpus_per_node or "gpus_per_node" in plan.spec.origins:
        return Trial()
    return Trial(devices=f"{counted(plan.resources.gpus_per_node, 'GPU')} a node")
