"""The plan of a job from the command line, its job file and its site; notes and warnings on it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from jobgen.errors import JobgenError, visible
from jobgen.jobfile.tables import JOB_FILE

if TYPE_CHECKING:
    from jobgen.plan.plan import Plan
    from jobgen.spec import Layer

_YES_NO = {True: "yes", False: "no"}  # the text of a switch


class JobInput(NamedTuple):
    """What a plan is made from: the command of the scheduler, the texts of the options, the program, the job
    file, and the name of the site and the path of the job file as options.

    The file of the site is also searched in the folder of the job file.
    """

    scheduler: str
    texts: Mapping[str, Any]
    program: tuple[str, ...]
    below: Layer | None
    site: str | None
    path: str | None


def plan_of(job: JobInput) -> Plan:
    """Return the plan of a job, and print notes and warnings on it. A job file that no option names is named
    in a note.

    Raises:
        JobgenError: a value is wrong; the message has the words of jobgen for a value of another program.
    """
    from jobgen.config import left_out
    from jobgen.plan import expansion
    from jobgen.plan.launch_method import filter_note
    from jobgen.plan.survival import note

    try:
        plan = resolved(job)
    except JobgenError as error:
        from jobgen.commands.foreign_values import instead_of

        raise instead_of(error, job).added_to(error) from None
    below = job.below
    notes = (expansion.note(plan.spec), note(plan.spec, plan.program), *plan.site.notes)
    notes += (filter_note(plan.spec, plan.scheduler),)
    for text in filter(None, (left_out(below, plan.spec) if below else "", *notes)):
        click.echo(visible(f"jobgen: note: {text}"), err=True)
    if below is not None and below.is_default:
        click.echo(f"jobgen: note: {JOB_FILE} is read; --no-job ignores it", err=True)
    print_warnings(plan)
    return plan


def resolved(job: JobInput) -> Plan:
    """Return the plan as `plan_of` does, and print nothing.

    Raises:
        JobgenError: a value is wrong.
    """
    from jobgen.config import read_spec
    from jobgen.plan.plan import resolve
    from jobgen.spec import COMMAND_LINE, SiteName

    texts = {key: _YES_NO[value] if isinstance(value, bool) else value for key, value in job.texts.items()}
    site = None if job.site is None else SiteName(job.site, COMMAND_LINE, os.path.dirname(job.path or ""))
    return resolve(read_spec(job.scheduler, texts, job.program, job.below, site=site))


def print_warnings(plan: Plan) -> None:
    """Print the warnings on a job."""
    from jobgen.script.job_warnings import warnings

    for text in warnings(plan):
        click.echo(visible(f"jobgen: warning: {text}"), err=True)


def job_file(
    path: str | None, ignored: bool, settings: tuple[str, ...], program: tuple[str, ...]
) -> Layer | None:
    """Return the given job file, or the default one if it exists, with the changes of ``--set``.

    Raises:
        JobgenError: it cannot be read, or something in it is wrong.
    """
    if ignored and path is not None:
        raise JobgenError("--job and --no-job contradict each other; leave one of them out")
    found = path is None and not ignored and os.path.exists(JOB_FILE)
    if path is None and not found and not settings:
        return None
    from jobgen.jobfile.reader import read_job

    return read_job(JOB_FILE if found else path, settings, program)._replace(is_default=found)


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
