"""The command ``jobgen doctor``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.options import OPTIONS

_SCHEDULERS = ("pbs", "slurm", "local")


def _parameters() -> list[click.Parameter]:
    job: list[click.Parameter] = []
    for option in OPTIONS:
        flag = f"{option.flag}/--no-{option.flag[2:]}" if option.switch else option.flag
        names = [flag, *([option.alias] if option.alias else []), option.key]
        kind = None if option.switch else click.UNPROCESSED
        job.append(
            click.Option(
                names,
                metavar=option.metavar or None,
                help=option.help,
                multiple=option.multiple,
                type=kind,
                default=None,
                hidden=option.group not in ("Environment", "Launch") and option.key != "accelerator",
            )
        )
    return [
        click.Argument(["scheduler"], required=False, metavar="[pbs|slurm|local]"),
        click.Option(["--job"], metavar="FILE", help="Look through the environment of this job file."),
        click.Option(["--no-job"], is_flag=True, help="Read no job file, not even jobgen.toml."),
        click.Option(["--set", "settings"], metavar="TABLE.KEY=VALUE", multiple=True, help="As of a job."),
        click.Option(["--site"], metavar="NAME", help="The site that the job runs at."),
        click.Option(["--json"], is_flag=True, help="Print JSON."),
        click.Option(
            ["--recipe"], is_flag=True, help="Print a recipe instead that builds DeepSpeed's ops for here."
        ),
        click.Option(
            ["--limit"], type=float, default=60.0, metavar="S", help="Seconds for each probe.  [default: 60]"
        ),
        click.Option(
            ["--template-dir"], metavar="DIR", multiple=True, help="Your own templates, as of a job."
        ),
        *job,
    ]


@click.pass_obj
def _doctor(
    program: tuple[str, ...],
    /,
    scheduler: str | None,
    job: str | None,
    no_job: bool,
    settings: tuple[str, ...],
    json: bool,
    recipe: bool,
    limit: float,
    template_dir: tuple[str, ...],
    site: str | None,
    **given: Any,
) -> int:
    from jobgen.doctor import output

    if json and recipe:
        raise JobgenError("--json and --recipe contradict each other; leave one of them out")
    if not 0 < limit <= 3600:
        raise JobgenError(f"--limit {limit:g} (command line): must be a number of seconds from 1 to 3600")
    case = _case(scheduler, job, no_job, settings, program, given, template_dir, limit, site)
    if recipe:
        from jobgen.doctor.recipe import recipe as lines

        click.echo(lines(case), nl=False)
        return 0
    found = findings(case)
    click.echo(output.as_json(case, found) if json else output.as_table(case, found), nl=False)
    return 1 if output.worst(found) == "problem" else 0


def _case(
    scheduler: str | None,
    job: str | None,
    no_job: bool,
    settings: tuple[str, ...],
    program: tuple[str, ...],
    given: Mapping[str, Any],
    template_dirs: tuple[str, ...],
    limit: float,
    site: str | None,
) -> Any:
    from jobgen.config import COMMAND_LINE, SiteName, read_spec
    from jobgen.doctor.finding import Case
    from jobgen.doctor.probes import answers
    from jobgen.doctor.surroundings import surroundings
    from jobgen.plan import resolve
    from jobgen.rendering import cache_dir, render
    from jobgen.schedulers import scheduler_of

    if scheduler not in (None, *_SCHEDULERS):
        hint = nearest(scheduler, _SCHEDULERS)
        raise JobgenError(f"{shown(scheduler)} (command line): must be {one_of(_SCHEDULERS)}{hint}")
    layer = _layer(job, no_job, settings, program)
    given = {key: {True: "yes", False: "no"}.get(value, value) for key, value in given.items()}
    scheduler = scheduler or (layer.scheduler if layer else None)
    if scheduler is None:
        scheduler, dialect = _here()
        given["dialect"] = given.get("dialect") or dialect
    place = None if site is None else SiteName(site, COMMAND_LINE, os.path.dirname(job or ""))
    plan = resolve(read_spec(scheduler, given, program, layer, site=place))
    path = [folder for folder in os.environ.get("JOBGEN_TEMPLATE_PATH", "").split(os.pathsep) if folder]
    script = render(plan, (*template_dirs, *path), cache_dir(), template="doctor.sh.j2")
    here = surroundings(script, limit)
    in_job = "SLURM_JOB_ID" in os.environ or "PBS_JOBID" in os.environ
    return Case(plan, scheduler_of(plan.spec), here, answers(plan, here, limit), in_job)


def _layer(job: str | None, no_job: bool, settings: tuple[str, ...], program: tuple[str, ...]) -> Any:
    if no_job and job is not None:
        raise JobgenError("--job and --no-job contradict each other; leave one of them out")
    if job is None and not no_job and os.path.exists("jobgen.toml"):
        job = "jobgen.toml"
    if job is None and not settings:
        return None
    from jobgen.jobfile import read_job

    return read_job(job, settings, program)


def _here() -> tuple[str, str | None]:
    """The scheduler of this machine, and which PBS."""
    from jobgen.init import detect

    kind, _ = detect()
    return ("pbs", kind) if kind in ("pbspro", "torque") else (kind, None)


def findings(case: Any) -> list[Any]:
    """What all judgements say, in the order of the script."""
    from jobgen.doctor import devices, machine, ops, software

    judgements: tuple[Callable[[Any], Iterator[Any]], ...] = (
        software.environment,
        software.scheduler,
        software.python,
        software.mpi,
        software.srun_mpi,
        devices.torch,
        devices.cann,
        ops.ops,
        machine.reach,
        machine.limits,
        machine.directories,
    )
    return [finding for judge in judgements for finding in judge(case)]


doctor = click.Command(
    "doctor",
    callback=_doctor,
    params=_parameters(),
    help="Look at the environment as a job's script will find it, with a remedy for what is wrong. All "
    "options of a job are taken. Status 0: nothing that stops the job; 1: a problem; 2: bad input.",
    epilog="Example: jobgen doctor slurm --venv .venv --launcher mpirun",
)
