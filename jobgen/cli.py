"""The command line: thin click commands. The only place that turns a JobgenError into an exit status."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from jobgen import __version__
from jobgen.errors import JobgenError, nearest, one_of, shown
from jobgen.options import OPTIONS

if TYPE_CHECKING:
    from jobgen.config import Layer
    from jobgen.plan import Plan

USAGE = 2
_JOB_FILE = "jobgen.toml"  # what is read where nothing is said

# What schedulers and launchers call what we call otherwise.
_FOREIGN = {
    "--gres": "--gpus-per-node",
    "--gpus": "--gpus-per-node",
    "--num-gpus": "--gpus-per-node",
    "--num-nodes": "--nodes",
    "--nnodes": "--nodes",
    "--ppn": "--ranks-per-node",
    "--ntasks-per-node": "--ranks-per-node",
    "--nproc-per-node": "--ranks-per-node",
    "--cpus-per-task": "--cpus-per-rank",
    "--memory": "--mem",
    "--time": "--walltime",
    "--job-name": "--name",
    "--project": "--account",
    "--dependency": "--after",
    "--output-file": "--log",
    "--error": "--log",
    "--nice": "--priority",
    "--features": "--constraint",
    "--mail-type": "--mail-on",
    "--mail-user": "--mail",
    "--license": "--licenses",
    "--start": "--begin",
    "--depend": "--after",
}


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; an error is one sentence on standard error."""
    if shell := os.environ.get("_JOBGEN_COMPLETE"):
        from jobgen.completion import answer

        return answer(cli, shell, arguments)
    ours, program = _split(arguments)
    try:
        status = cli.main(ours, prog_name="jobgen", standalone_mode=False, obj=program)
    except JobgenError as error:
        return _fail(str(error), error.status)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.NoSuchOption as error:
        known = (
            [name for parameter in error.ctx.command.get_params(error.ctx) for name in parameter.opts]
            if error.ctx
            else []
        )
        hint = nearest(_FOREIGN.get(error.option_name, error.option_name), known, cutoff=0.75)
        hint = hint or ("" if program else "; the program's own options go after --")
        return _fail(f"there is no option {shown(error.option_name)}{hint}")
    except click.ClickException as error:
        return _fail(error.format_message().rstrip("."))
    except click.Abort:
        return _fail("interrupted")
    return status if isinstance(status, int) else 0


def _split(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Our arguments, and the program's: all that follows the first ``--``, however it looks."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:at]), tuple(arguments[at + 1 :])


def _fail(sentence: str, status: int = USAGE) -> int:
    click.echo(f"jobgen: {sentence}", err=True)
    return status


class _Group(click.Group):
    """The commands, made when they are asked for, and a misspelt one's nearest match."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS, "submit", *_ELSEWHERE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _ELSEWHERE:
            module, _, name = _ELSEWHERE[cmd_name].partition(":")
            command: click.Command = getattr(import_module(module), name or cmd_name)
            return command
        if cmd_name == "submit":
            return _submit_command()
        return _job_command(cmd_name) if cmd_name in _COMMANDS else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if name not in (known := self.list_commands(ctx)):
            raise JobgenError(f"there is no command {shown(name)}: use {one_of(known)}{nearest(name, known)}")
        return super().resolve_command(ctx, args)


class _Command(click.Command):
    """A command whose help shows its options in groups and ends with an example."""

    example = ""
    target = ""  # what comes before the options

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                groups.setdefault(getattr(parameter, "group", "Output"), []).append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)
        with formatter.section("Example"):
            formatter.write(f"  {self.example}\n")

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*self.target.split(), "[OPTIONS]", "[-- PROGRAM [ARG]...]"]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        if strays := super().parse_args(ctx, args):
            raise JobgenError(f"{shown(strays[0])} (command line): is no option; the program goes after --")
        return strays


class _Option(click.Option):
    """An option of a job: click only collects its text, config.py reads it."""

    group: str


def _job_options() -> list[click.Parameter]:
    parameters: list[click.Parameter] = []
    for option in OPTIONS:
        names = [option.flag, *([option.alias] if option.alias else []), option.key]
        help_text = option.help
        if option.default and "[default" not in help_text:
            help_text += f"  [default: {option.default}]"
        if option.switch:
            names[0] += f"/--no-{option.flag[2:]}"
        parameter = _Option(
            names,
            metavar=option.metavar or None,
            help=help_text,
            multiple=option.multiple,
            type=None if option.switch else click.UNPROCESSED,
            default=None,
        )
        parameter.group = option.group
        parameters.append(parameter)
    return parameters


def _file_options() -> list[click.Parameter]:
    parameters: list[click.Parameter] = [
        _Option(["--job"], metavar="FILE", help=f"Read FILE.  [default: {_JOB_FILE}, if it is there]"),
        _Option(["--no-job"], is_flag=True, help=f"Read no job file, not even {_JOB_FILE}."),
        _Option(
            ["--set", "settings"],
            metavar="TABLE.KEY=VALUE",
            multiple=True,
            help="Change one value of the job file, such as train.lr=0.01. Repeatable.",
        ),
        _Option(
            ["--site"],
            metavar="NAME",
            help="The site whose rules, limits and defaults apply: jobgen site list; none for none.",
        ),
    ]
    for parameter in parameters:
        parameter.group = "Job file"  # type: ignore[attr-defined]
    return parameters


def _output_options() -> list[click.Parameter]:
    return [
        click.Option(["-o", "--output"], metavar="FILE", help="Write the script to FILE, ready to run."),
        click.Option(["--force"], is_flag=True, help="Overwrite FILE."),
        click.Option(["--explain"], is_flag=True, help="Print what each value is, whence and what it means."),
        click.Option(["--json"], is_flag=True, help="With --explain: as JSON."),
        click.Option(
            ["--template-dir"],
            metavar="DIR",
            multiple=True,
            help="Templates that come before the packaged ones; also JOBGEN_TEMPLATE_PATH. Repeatable.",
        ),
    ]


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Print a batch script that trains a network on several nodes.

    What follows -- is the program: train.py ARG..., -m MODULE ARG..., any other command, or only
    options for the training module that comes with jobgen.
    """


_YES_NO = {True: "yes", False: "no"}  # of a switch, as a file would have it


def _generate(scheduler: str) -> Callable[..., None]:
    def command(
        program: tuple[str, ...],
        output: str | None,
        force: bool,
        explain: bool,
        json: bool,
        template_dir: tuple[str, ...],
        job: str | None,
        no_job: bool,
        settings: tuple[str, ...],
        site: str | None,
        **given: Any,
    ) -> None:
        if json and not explain:
            raise JobgenError("--json goes with --explain only; a script is never JSON")
        if force and output is None:
            raise JobgenError("--force goes with -o FILE only; nothing is overwritten without it")
        plan = _plan(scheduler, given, program, _job_file(job, no_job, settings, program), site, job)
        if explain:
            from jobgen.explain import as_json, as_table

            text = as_json(plan) if json else as_table(plan)
        else:
            from jobgen.rendering import cache_dir, render

            text = render(plan, _template_dirs(template_dir), cache_dir())
        if output is not None:
            from jobgen.output import write_script

            write_script(output, text, force=force, executable=not explain)
        else:
            click.echo(text, nl=False)

    return command


def _plan(
    scheduler: str,
    given: Mapping[str, Any],
    program: tuple[str, ...],
    below: Layer | None,
    site: str | None,
    job: str | None,
) -> Plan:
    from jobgen.config import COMMAND_LINE, SiteName, read_spec
    from jobgen.plan import resolve

    texts = {key: _YES_NO.get(value, value) for key, value in given.items()}
    place = None if site is None else SiteName(site, COMMAND_LINE, os.path.dirname(job or ""))
    return resolve(read_spec(scheduler, texts, program, below, site=place))


def _submit(
    program: tuple[str, ...],
    scheduler: str | None,
    again: str | None,
    dry_run: bool,
    template_dir: tuple[str, ...],
    job: str | None,
    no_job: bool,
    settings: tuple[str, ...],
    site: str | None,
    **given: Any,
) -> None:
    from jobgen.life import submitting
    from jobgen.rendering import cache_dir, render

    if again is not None:
        said = (scheduler, *program, *template_dir, job, *settings, site, *given.values())
        if no_job or any(one not in (None, ()) for one in said):
            raise JobgenError("--again RUN takes all from that run's plan.json; leave the rest out")
        order = submitting.again(again)
    else:
        layer = _job_file(job, no_job, settings, program)
        scheduler = submitting.scheduler_of(scheduler, layer, site, os.path.dirname(job or ""))
        plan = _plan(scheduler, given, program, layer, site, job)
        path = job or _JOB_FILE
        files = (path,) if layer and (job or os.path.exists(path)) and not no_job else ()
        order = submitting.Order(plan, _template_dirs(template_dir), files, os.getcwd())
    text = render(order.plan, order.templates, cache_dir())
    submitting.warn(order, text)
    if dry_run:
        click.echo(text, nl=False)
        return
    job_id, directory = submitting.submit(order, text)
    click.echo(job_id)
    click.echo(f"jobgen: submitted; jobgen status, logs -f and cancel know it as {directory.name}", err=True)
    click.echo(f"jobgen: its files are in {directory}", err=True)


def _job_file(
    path: str | None, ignored: bool, settings: tuple[str, ...], program: tuple[str, ...]
) -> Layer | None:
    if ignored and path is not None:
        raise JobgenError("--job and --no-job contradict each other; leave one of them out")
    if path is None and not ignored and os.path.exists(_JOB_FILE):
        path = _JOB_FILE
    if path is None and not settings:
        return None
    from jobgen.jobfile import read_job

    return read_job(path, settings, program)


def _template_dirs(given: Sequence[str]) -> tuple[str, ...]:
    path = os.environ.get("JOBGEN_TEMPLATE_PATH", "")
    return (*given, *(folder for folder in path.split(os.pathsep) if folder))


_COMMANDS = {
    "pbs": (
        "Print a script for OpenPBS, PBS Pro or Torque.",
        "jobgen pbs --nodes 2 --launcher mpirun > job.pbs && qsub job.pbs",
    ),
    "slurm": (
        "Print a script for Slurm.",
        "jobgen slurm --nodes 2 --gpus-per-node 4 --launcher torchrun -o job.sh -- train.py --lr 0.1",
    ),
    "local": (
        "Print the same script for this machine alone.",
        "jobgen local --ranks-per-node 2 --launcher mpirun -- --task digits | bash",
    ),
}


# Commands of packages of their own: the module of each, and the function's name where it is another one.
_ELSEWHERE = {
    "check": "jobgen.check.command",
    "completion": "jobgen.completion.command",
    "convert": "jobgen.convert.command",
    "cancel": "jobgen.life.command",
    "diff": "jobgen.life.command",
    "doctor": "jobgen.doctor.command",
    "init": "jobgen.init",
    "list": "jobgen.life.command:list_runs",
    "logs": "jobgen.life.command",
    "report": "jobgen.report.command",
    "schema": "jobgen.schema",
    "site": "jobgen.sites.command",
    "status": "jobgen.life.command",
}


def _submit_command() -> click.Command:
    options = [
        click.Option(["--again"], metavar="RUN", help="Submit once more what RUN was, from its plan.json."),
        click.Option(["-n", "--dry-run"], is_flag=True, help="Print the script; submit and write nothing."),
    ]
    command = _Command(
        "submit",
        callback=click.pass_obj(_submit),
        help="Make a run directory, submit the job from there and print its id.",
        params=[
            click.Argument(["scheduler"], required=False),
            *_job_options(),
            *_file_options(),
            *options,
            *(one for one in _output_options() if one.name == "template_dir"),
        ],
    )
    command.target = "[slurm|pbs]"
    command.example = (
        "jobgen submit slurm --nodes 2 --gpus-per-node 4 --launcher torchrun -- train.py --lr 0.1"
    )
    return command


def _job_command(name: str) -> click.Command:
    summary, example = _COMMANDS[name]
    command = _Command(
        name,
        callback=click.pass_obj(_generate(name)),
        help=summary,
        params=[*_job_options(), *_file_options(), *_output_options()],
    )
    command.example = example
    return command
