"""``jobgen init``: writes a commented job file for the scheduler of this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import jobgen
from jobgen.commands.parameter_types import FILE, OptionType, scheduler_word
from jobgen.errors import shown
from jobgen.jobfile.tables import JOB_FILE
from jobgen.schedulers.table import SCHEDULERS

if TYPE_CHECKING:
    from jobgen.options import Option
    from jobgen.sites.site_file import Site

_PROGRAM = """
# What every rank runs: your own program, or else the training module of jobgen.
# [program]
# command = ["train.py", "--lr", "0.1"]

# The training module's own options: python -m jobgen.train --help
[train]
task = "digits"
epochs = 2
# lr = 0.01
"""
_SWEEP = """
# One array job, of which each task takes one value of every list.
# [sweep]
# lr = [0.1, 0.01]
# batch_size = [32, 64]
# mode = "zip"
"""


@click.command(
    "init",
    short_help="Write a job file to start from; --ask asks six questions.",
    help="Write a commented job file to start from, for the scheduler that is found on PATH.",
    epilog="Example: jobgen init --scheduler slurm",
)
@click.option(
    "--scheduler",
    type=OptionType(scheduler_word),
    metavar="|".join(SCHEDULERS),
    help="Scheduler of the job file.  [default: the one that is found]",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=FILE,
    default=JOB_FILE,
    help=f"Name of the file.  [default: {JOB_FILE}]",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option(
    "--ask", "asks", is_flag=True, help="Ask for the scheduler, nodes, time, queue, environment, program."
)
def init(scheduler: str | None, output: str, force: bool, asks: bool) -> None:
    kind, why = scheduler, ""
    site = None
    if kind is None:
        from jobgen.schedulers.detection import detect

        site, kind, why = _detected_site() or (None, *detect())
    from jobgen.rendering.script_file import write_script

    live: Mapping[str, Any] | None = None
    program: Sequence[str] = ()
    if asks:
        from jobgen.commands.questions import ask

        kind, site, live, program = ask(kind, site)
        why = ""
    write_script(output, starter(kind, site, live, program), force=force, executable=False)
    edit = "" if asks else "edit it, then "
    click.echo(f"{output}: a job for {kind}{why}; {edit}{_next(kind, output)}", err=True)
    made = live or {}
    if examples := [f"{key} = {value!r}" for key, value in _demands(site).items() if key not in made]:
        about = "examples of the site, for which you may have other values"
        click.echo(f"jobgen: note: {about}: {', '.join(examples)}", err=True)


def _next(kind: str, output: str) -> str:
    """Return the commands that show the job and start it."""
    scheduler = SCHEDULERS[kind]
    file = "" if output == JOB_FILE else f" --job {shown(output)}"
    command = f"jobgen {scheduler.command_name}{file}"
    start = f"{command} | bash" if scheduler.behaviour.one_host else f"jobgen submit{file}"
    return f"{command} --explain shows the job, and {start} starts it"


def _detected_site() -> tuple[Site, str, str] | None:
    """Return the site of this machine, its scheduler, and the reason; None if no site is detected."""
    from jobgen.sites.display import scheduler
    from jobgen.sites.host_match import detect
    from jobgen.sites.loader import load

    if (found := detect()) is None:
        return None
    site = load(found[0])
    return site, scheduler(site), f" at {site.title}, because {found[1]}"


def starter(
    kind: str,
    site: Site | None = None,
    values: Mapping[str, Any] | None = None,
    program: Sequence[str] = (),
) -> str:
    """Return the job file: every option of this scheduler with its help, most of them as comments. The others
    are ``values``, or those of a first job. Values that the site sets are left to the site."""
    from jobgen.jobfile.tables import TABLES, table_of
    from jobgen.options import OPTIONS

    schema = os.path.join(os.path.dirname(os.path.abspath(jobgen.__file__)), "jobgen.schema.json")
    scheduler = SCHEDULERS[kind]
    command = scheduler.command_name
    lines = [f"#:schema {schema}", f"# A job for: jobgen {command}. Options of the command line win over it."]
    lines += ["", f'scheduler = "{command}"']
    lines += ["# The site: jobgen site list", f'site = "{site.name}"' if site else '# site = "polaris"']
    live: Mapping[str, Any] = _site_live(site) if site else {} if values else scheduler.help.starter
    live = {**live, **(values or {})}
    for table in TABLES:
        held = [one for one in OPTIONS if table_of(one) == table and one.key not in scheduler.lacks]
        lines += ["", f"[{table}]", *(line for option in held for line in _lines(option, kind, live))]
    from jobgen.jobfile.writing import toml

    run = f"\n[program]\ncommand = {toml(list(program))}\n{_SWEEP}" if program else f"{_PROGRAM}{_SWEEP}"
    return "\n".join(lines) + "\n" + run


def _site_live(site: Site) -> dict[str, Any]:
    """Return the values that a job at a site must set: two nodes, and the mandatory options."""
    return {"nodes": 2, **_demands(site)}


def _demands(site: Site | None) -> dict[str, Any]:
    """Return the options that a job at a site must set, with the examples of the site."""
    demands: dict[str, Any] = {}
    if site is None:
        return demands
    for key, example in site.file.mandatory.items():
        if key.startswith("-"):
            demands.setdefault("directive", []).append(f"{key}={example}")
        elif key not in site.values:
            demands[key] = example
    return demands


def _lines(option: Option, kind: str, values: Mapping[str, Any]) -> list[str]:
    from jobgen.jobfile.tables import meaning
    from jobgen.jobfile.writing import toml

    live = values.get(option.key)
    value = example(option, kind) if live is None else live
    return [f"# {meaning(option)}", f"{'# ' if live is None else ''}{option.name} = {toml(value)}"]


def example(option: Option, kind: str) -> Any:
    """Return a value that the option accepts."""
    from jobgen.values.parsers import Choice

    if option.key == "directive":
        return [SCHEDULERS[kind].help.directive]
    if option.key == "constraint":
        return SCHEDULERS[kind].help.constraint
    if option.example is not None:
        return option.example
    return option.parse.allowed[0] if isinstance(option.parse, Choice) else option.default
