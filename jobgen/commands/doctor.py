"""The command ``jobgen doctor``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from jobgen.commands.job_input import JobInput, job_file
from jobgen.commands.job_options import JobCommand, file_options, job_options, template_option
from jobgen.commands.job_plan import plan_of, template_dirs
from jobgen.commands.parameter_types import OptionType
from jobgen.errors import JobgenError, shown
from jobgen.schedulers.table import COMMANDS
from jobgen.values.parsers import choice, whole

if TYPE_CHECKING:
    from jobgen.spec import Layer


@click.pass_obj
def _doctor(
    program: tuple[str, ...],
    /,
    scheduler: str | None,
    json: bool,
    recipe: bool,
    limit: float,
    template_dir: tuple[str, ...],
    job: str | None,
    no_job: bool,
    settings: tuple[str, ...],
    site: str | None,
    **given: Any,
) -> int:
    if json and recipe:
        raise JobgenError("--json and --recipe contradict each other; leave one of them out")
    layer = job_file(job, no_job, settings, program)
    kind, dialect = _scheduler(scheduler, layer, site, os.path.dirname(job or ""))
    if not program and layer is None and all(value in (None, ()) for value in given.values()):
        program, given = ("python3",), {**given, "launcher": "none"}
        click.echo(
            "jobgen: note: without a job this examines the machine; for a job add its options and program, "
            "as in: jobgen doctor --nodes 2 --venv DIR -- train.py",
            err=True,
        )
    texts = given | {"dialect": given["dialect"] or dialect}
    plan = plan_of(JobInput(kind, texts, program, layer, site, job))
    from jobgen.doctor import verdict_table
    from jobgen.doctor.examination import examine, verdicts

    case = examine(plan, template_dirs(template_dir), limit)
    if recipe:
        from jobgen.doctor.recipe import recipe as lines

        click.echo(lines(case), nl=False)
        return 0
    found = verdicts(case)
    click.echo(verdict_table.as_json(case, found) if json else verdict_table.as_table(case, found), nl=False)
    return 1 if verdict_table.worst(found) == "problem" else 0


def _scheduler(
    typed: str | None, layer: Layer | None, site: str | None, beside: str
) -> tuple[str, str | None]:
    """Return the scheduler as typed, or of the job file, the site or this machine, and its dialect."""
    if typed:
        try:
            return choice(*COMMANDS)(typed), None
        except ValueError as error:
            raise JobgenError(f"doctor: {shown(typed)} {error}") from None
    if layer and layer.scheduler:
        return layer.scheduler, None
    if place := site or (layer.site.name if layer and layer.site else None):
        from jobgen.sites.loader import load

        return load(place, None, beside).file.scheduler, None
    from jobgen.schedulers.detection import of_machine

    here = of_machine()
    return here.scheduler.command_name, here.dialect


doctor = JobCommand(
    "doctor",
    callback=_doctor,
    params=[
        click.Argument(["scheduler"], metavar="|".join(COMMANDS), required=False),
        *job_options(),
        *file_options(),
        click.Option(["--json"], is_flag=True, help="Print JSON."),
        click.Option(
            ["--recipe"], is_flag=True, help="Print how to build DeepSpeed's ops for this machine instead."
        ),
        click.Option(
            ["--limit"],
            type=OptionType(whole(1, 3600)),
            default="60",
            metavar="S",
            help="Seconds for each probe.  [default: 60]",
        ),
        template_option(),
    ],
    short_help="Check the environment that a job will have.",
    help="Check the environment that the script of a job will have, and print a remedy for each problem. All "
    "options of a job are accepted; without any, the machine is examined. Status 0: no problem stops the "
    "job; 1: a problem does; 2: bad input.",
)
doctor.own = ("json", "recipe", "limit")
doctor.example = "jobgen doctor slurm --venv .venv --launcher mpirun"
