"""The plan of a job, with the notes and warnings on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jobgen.commands.job_input import JobInput, resolved
from jobgen.errors import JobgenError, visible
from jobgen.jobfile.tables import JOB_FILE

if TYPE_CHECKING:
    from jobgen.plan.plan import Plan


def plan_of(job: JobInput) -> Plan:
    """Return the plan of a job, and print notes and warnings on it. A job file that no option names is named
    in a note.

    Raises:
        JobgenError: a value is wrong; the message has the words of jobgen for a value of another program.
    """
    from jobgen.config import left_out
    from jobgen.plan import expansion
    from jobgen.plan.launch_method import filter_note
    from jobgen.plan.survival import notes as survival_notes

    try:
        plan = resolved(job)
    except JobgenError as error:
        from jobgen.commands.foreign_values import instead_of

        raise instead_of(error, job).added_to(error) from None
    below = job.below
    notes = (expansion.note(plan.spec), *survival_notes(plan.spec, plan.program), *plan.site.notes)
    notes += (filter_note(plan.spec, plan.scheduler),)
    for text in filter(None, (left_out(below, plan.spec) if below else "", *notes)):
        click.echo(visible(f"jobgen: note: {text}"), err=True)
    if below is not None and below.is_default:
        click.echo(f"jobgen: note: {JOB_FILE} is read; --no-job ignores it", err=True)
    print_warnings(plan)
    return plan


def print_warnings(plan: Plan) -> None:
    """Print the warnings on a job."""
    from jobgen.script.job_warnings import warnings

    for text in warnings(plan):
        click.echo(visible(f"jobgen: warning: {text}"), err=True)


def print_notes(plan: Plan) -> None:
    """Print a note on the launcher of a script if no option names it, and on a program that is not here."""
    from jobgen.plan.launch_method import note
    from jobgen.script.program_file import missing_file

    missing = missing_file(plan, "and must be where the job runs")
    for text in filter(None, (note(plan.spec), missing)):
        click.echo(f"jobgen: note: {visible(text)}", err=True)


def template_dirs(given: Sequence[str]) -> tuple[str, ...]:
    """Return the folders that were typed, then those of JOBGEN_TEMPLATE_PATH."""
    path = os.environ.get("JOBGEN_TEMPLATE_PATH", "")
    return (*given, *(folder for folder in path.split(os.pathsep) if folder))
