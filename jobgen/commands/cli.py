"""The command line: thin click commands. The only place that turns a JobgenError into an exit status."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from jobgen.commands.job_input import JobInput, job_file
from jobgen.commands.job_options import JobCommand, file_options, job_options, template_option
from jobgen.commands.job_plan import plan_of, print_notes, print_warnings, template_dirs
from jobgen.commands.output import check_force, put
from jobgen.commands.parameter_types import FILE, OptionType
from jobgen.errors import BAD_INPUT, INTERRUPTED, JobgenError, nearest, one_of, shown, visible
from jobgen.jobfile.tables import JOB_FILE
from jobgen.schedulers.table import COMMANDS, SCHEDULERS, named, queued
from jobgen.secrets import masked
from jobgen.values.parsers import SUBMIT_TIMEOUT, choice, patience, size
from jobgen.values.version import __version__

if TYPE_CHECKING:
    from jobgen.plan.plan import Plan
    from jobgen.runs.code.selection import Upload
    from jobgen.runs.submission import Order, Submission

_COMPILED = "msgspec"  # the one requirement that jobgen.pyz cannot hold
_OF_UNIX = ("fcntl", "pwd")  # modules of Python that Windows lacks
_FEW = 5  # options that a beginning can stand for
_LONGEST = 2000  # characters of a message; some repeat what was typed


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; an error is one sentence on standard error."""
    if shell := os.environ.get("_JOBGEN_COMPLETE"):
        from jobgen.commands.completion.answer import answer

        return answer(cli, shell, arguments)
    ours, program = _split(arguments)
    if ours in (["version"], ["-V"]):
        ours = ["--version"]
    try:
        status = cli.main(ours, prog_name="jobgen", standalone_mode=False, obj=program)
    except JobgenError as error:
        return _fail(str(error), error.status)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_INPUT
    except click.NoSuchOption as error:
        return _fail(_of_option(error, ours, program))
    except click.BadOptionUsage as error:
        text = error.format_message().rstrip(".").removeprefix(f"Option {error.option_name!r} ")
        return _fail(f"{error.option_name} (command line): {text}")
    except click.UsageError as error:
        return _fail(_of_usage(error))
    except click.ClickException as error:
        return _fail(error.format_message().rstrip("."))
    except click.Abort:
        return _fail("interrupted", INTERRUPTED)
    except OSError as error:
        return _fail(_of_system(error))
    except ModuleNotFoundError as error:
        if error.name in _OF_UNIX:
            return _fail("this command needs Linux or macOS; on Windows it runs in WSL")
        if error.name != _COMPILED:
            raise
        return _fail(
            f"job files, sites and runs need the Python package {_COMPILED}: pip install {_COMPILED}"
        )
    return status if isinstance(status, int) else 0


def _of_option(error: click.NoSuchOption, ours: Sequence[str], program: Sequence[str]) -> str:
    """Return the sentence for an option that does not exist, with the nearest one."""
    name, context = error.option_name, error.ctx
    if isinstance(context and context.command, _Group):
        from jobgen.commands.advice import command_missing

        return command_missing(name, ours, program)
    known = [one for each in context.command.get_params(context) for one in each.opts] if context else []
    begun = [one for one in known if one.startswith(name)]
    hint = nearest(name, begun or known, cutoff=0.75 * (len(begun) != 1))
    if not hint and 1 < len(begun) <= _FEW:
        hint = f"; did you mean {one_of(begun)}?"
    if not hint and context and not isinstance(context.command, JobCommand):
        hint = f"; {context.command_path} --help lists its options"
    hint = hint or ("" if program else "; the program's own options go after --")
    return f"there is no option {shown(name)}{hint}"


def _of_usage(error: click.UsageError) -> str:
    """Return the sentence for a word too many or too few, with the command that it is about."""
    text = error.format_message().rstrip(".")
    if error.ctx is None:
        return text
    path = error.ctx.command_path
    return f"{path.removeprefix('jobgen ')}: {text[:1].lower()}{text[1:]}; {path} --help shows what it takes"


def _split(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the arguments of jobgen, and those of the program: all words after the first ``--``."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return list(arguments[:at]), tuple(arguments[at + 1 :])


def _of_system(error: OSError) -> str:
    """Return the sentence about an error of the operating system that no command has one for."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "the current directory is gone: change to one that exists"
    except OSError as deeper:
        return f"the current directory cannot be used: {deeper.strerror}"
    place = f"{shown(os.fsdecode(error.filename))}: " if error.filename else ""
    return f"{place}{error.strerror or error}"


def _fail(sentence: str, status: int = BAD_INPUT) -> int:
    text = masked(sentence[: 10 * _LONGEST])
    end = "..." if len(text) > _LONGEST else ""
    click.echo(f"jobgen: {visible(text[:_LONGEST])}{end}", err=True)
    return status


_EXAMPLES = """
Examples:
  jobgen slurm --nodes 2 --gpus-per-node 4 --walltime 2h -- train.py > job.sh
  jobgen submit pbs --nodes 2 --launcher mpirun -- python3 train.py --lr 0.1

jobgen help COMMAND explains a command, jobgen help QUESTION answers a question
(jobgen help out of memory). The manual: jobgen help, man jobgen.
"""


class _Group(click.Group):
    """The group of commands. It loads a command at its first use and suggests the nearest name for a typo."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in _GROUPS.values() for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in groups, each with a sentence that is never cut."""
        width = max(map(len, self.list_commands(ctx)))
        for title, names in _GROUPS.items():
            with formatter.section(title):
                for name in names:
                    formatter.write(f"  {name:<{width}}  {self._sentence(ctx, name)}\n")

    def _sentence(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return (command.short_help or command.help or "") if command else ""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(_EXAMPLES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "submit":
            return _submit_command()
        if cmd_name in COMMANDS:
            return _job_command(cmd_name)
        if cmd_name not in self.list_commands(ctx):
            return None
        module, _, name = _ELSEWHERE.get(cmd_name, f"{cmd_name}:{cmd_name}").partition(":")
        command: click.Command = getattr(import_module(f"jobgen.commands.{module}"), name)
        command.format_epilog = partial(_format_epilog, command)  # type: ignore[method-assign]
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if name == "run":
            from jobgen.commands.advice import run_advice

            raise JobgenError(run_advice(args[1:], ctx.obj))
        if name not in (known := self.list_commands(ctx)):
            if name in SCHEDULERS:
                command = f"jobgen {SCHEDULERS[name].command_name} --dialect {name}"
                raise JobgenError(f"there is no command {name}: use {command}")
            from jobgen.commands.advice import program_advice

            if advice := program_advice(args, ctx.obj):
                raise JobgenError(advice)
            raise JobgenError(f"there is no command {shown(name)}: use {one_of(known)}{nearest(name, known)}")
        return super().resolve_command(ctx, args)


def _format_epilog(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the example on one line, however long, so that it can be copied."""
    formatter.write(f"\n{command.epilog}\n" if command.epilog else "")


def _output_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["-o", "--output"], metavar="FILE", type=FILE, help="Write the script to FILE, ready to run."
        ),
        click.Option(["--force"], is_flag=True, help="Overwrite FILE."),
        *_explain_options(),
        template_option(),
    ]


def _explain_options() -> list[click.Option]:
    return [
        click.Option(
            ["--explain"],
            is_flag=False,
            flag_value="set",
            type=OptionType(choice("set", "all")),
            metavar="[=all]",
            help="Print what is derived or set, with source and meaning; =all: the defaults, too.",
        ),
        click.Option(["--json"], is_flag=True, help="With --explain: as JSON."),
    ]


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Print a batch script that trains a network on several nodes.

    What follows -- is the program: train.py ARG..., -m MODULE ARG..., any other command, or only
    options for the training module that comes with jobgen.
    """


def _generate(scheduler: str) -> Callable[..., None]:
    def command(
        program: tuple[str, ...],
        output: str | None,
        force: bool,
        explain: str | None,
        json: bool,
        template_dir: tuple[str, ...],
        job: str | None,
        no_job: bool,
        settings: tuple[str, ...],
        site: str | None,
        **given: Any,
    ) -> None:
        _check_json(json, explain)
        check_force(output, force)
        output = None if output == "-" else output
        layer = job_file(job, no_job, settings, program)
        plan = plan_of(JobInput(scheduler, given, program, layer, site, job))
        if output and not explain and re.search(_OF_LOG, output):
            from jobgen.commands.advice import log_advice

            raise JobgenError(log_advice(plan.scheduler, output))
        text = _explanation(plan, json, explain == "all") if explain else _script(plan, template_dir, output)
        put(text, output, force, executable=not explain)
        if output and plan.spec.runtime == "beside" and not explain:
            from jobgen.rendering.runtime import runtime
            from jobgen.rendering.script_file import write_script

            beside = runtime(plan)
            path = os.path.join(os.path.dirname(output), beside.file)
            write_script(path, beside.text, force=True, executable=False)

    return command


# A pattern of Slurm, a variable of PBS, the name of an output, or a folder.
_OF_LOG = r"%\d*[A-Za-z]|[$^]|\.(out|log|err)$|/$"


def _check_json(json: bool, explain: str | None) -> None:
    if json and not explain:
        raise JobgenError("--json is only for --explain; a script is never JSON")


def _explanation(plan: Plan, json: bool, every: bool, host: str | None = None) -> str:
    from jobgen.commands.terminal import columns
    from jobgen.rendering.explanation import as_json, as_table

    return as_json(plan, host) if json else as_table(plan, columns(), every, host)


def _script(plan: Plan, template_dir: Sequence[str], output: str | None) -> str:
    from jobgen.rendering.render import cache_dir, render

    if plan.spec.runtime == "beside" and output is None:
        raise plan.spec.refuse("runtime", "writes a second file: give -o FILE")
    text = render(plan, template_dirs(template_dir), cache_dir())
    print_notes(plan)
    return text


def _submit(
    program: tuple[str, ...],
    scheduler: str | None,
    again: str | None,
    dry_run: bool,
    explain: str | None,
    json: bool,
    new: bool,
    submit_timeout: int,
    wait: bool,
    host: str | None,
    upload: tuple[str, ...],
    no_upload: bool,
    upload_limit: int | None,
    template_dir: tuple[str, ...],
    job: str | None,
    no_job: bool,
    settings: tuple[str, ...],
    site: str | None,
    **given: Any,
) -> int | None:
    from jobgen.commands.terminal import progress
    from jobgen.runs import submission

    _check_json(json, explain)
    if again is not None:
        words = (scheduler, *program, job, *settings, site, host, *upload, upload_limit, *given.values())
        if no_job or no_upload or any(one not in (None, ()) for one in words):
            raise JobgenError("--again RUN uses the options in plan.json of that run; leave out all others")
        order = submission.again(again, tuple(template_dir))
        print_warnings(order.plan)
    else:
        layer = job_file(job, no_job, settings, program)
        if host is not None:
            scheduler, site, given = _of_host(host, scheduler, site, given)
        elif not (scheduler or site or (layer and (layer.scheduler or layer.site))):
            scheduler, given = _of_machine(given)
        scheduler = submission.scheduler_of(scheduler, layer, site, os.path.dirname(job or ""))
        plan = plan_of(JobInput(scheduler, given, program, layer, site, job))
        code = _upload(host, upload, no_upload, upload_limit)
        files = (job or JOB_FILE,) if layer and (job or os.path.exists(JOB_FILE)) and not no_job else ()
        order = submission.Order(
            plan, template_dirs(template_dir), files, os.getcwd(), host=host, upload=code
        )
    order = order._replace(progress=progress)
    if explain:
        _echo(submission.explanation(order))
        click.echo(_explanation(order.plan, json, explain == "all", order.host), nl=False)
        return None
    return _submit_order(order, dry_run, submit_timeout, new, wait)


def _submit_order(order: Order, dry_run: bool, patience: int, new: bool, wait: bool) -> int | None:
    """Submit a job, or print its script; return its exit status if the user waits for it."""
    from jobgen.plan.plan import resolve
    from jobgen.rendering.render import cache_dir, render
    from jobgen.runs import submission

    text = order.script or render(order.plan, order.templates, cache_dir())
    submission.warn(order, text)
    if dry_run:
        if order.repeats is None:
            print_notes(order.plan)
        _echo(submission.explanation(order))
        click.echo(text, nl=False)
        return None
    if (spec := submission.without_met_dependencies(order)) is not order.plan.spec:
        order = order._replace(plan=resolve(spec))
        text = render(order.plan, order.templates, cache_dir())
    submitted = submission.submit(order, text, patience, new)
    if order.repeats is None:
        print_notes(order.plan)
    return _report(submitted, wait)


def _echo(remarks: Sequence[str]) -> None:
    for text in remarks:
        click.echo(visible(f"jobgen: {text}"), err=True)


def _upload(host: str | None, paths: tuple[str, ...], no_upload: bool, limit: int | None) -> Upload | None:
    """Return what the options say on the code of a job, None if none is sent; refuse contradictions."""
    from jobgen.runs.code.selection import LIMIT, Upload

    given = {"--upload": paths, "--no-upload": no_upload, "--upload-limit": limit}
    used = [name for name, value in given.items() if value]
    if host is None and used:
        raise JobgenError(f"{used[0]} is only for --host: here the program starts where it is")
    if no_upload and len(used) > 1:
        raise JobgenError(f"--no-upload sends no code: leave out {one_of({*used} - {'--no-upload'})}")
    if host is None or no_upload:
        return None
    return Upload(paths, LIMIT if limit is None else limit << 20)


def _of_host(
    name: str, scheduler: str | None, site: str | None, given: dict[str, Any]
) -> tuple[str, str | None, dict[str, Any]]:
    """Return the scheduler and site of a host, and the options with its dialect; refuse another scheduler."""
    from jobgen.sites.host_file import scheduler_of

    scheduler, dialect, of_host = scheduler_of(name, scheduler)
    return scheduler, site or of_host, {**given, "dialect": given["dialect"] or dialect}


def _of_machine(given: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return the scheduler of this machine, and the options with its dialect; None without one."""
    from jobgen.schedulers.detection import of_machine

    here = of_machine()
    if here.scheduler.behaviour.one_host:
        return None, given
    click.echo(f"jobgen: note: the scheduler is {here.scheduler.title}{here.reason}", err=True)
    return here.scheduler.command_name, {**given, "dialect": given["dialect"] or here.dialect}


def _report(job: Submission, wait: bool) -> int | None:
    """Print the id and the directory of a job; return its exit status if the user waits for it."""
    from jobgen.runs import submission

    click.echo(job.id)
    submission.finish(job)
    if job.remark:
        click.echo(f"jobgen: {job.remark}", err=True)
    name = job.directory.name
    click.echo(f"jobgen: submitted; jobgen status, logs -f and cancel know it as {name}", err=True)
    click.echo(f"jobgen: its files are in {job.directory}", err=True)
    if not wait:
        return None
    from jobgen.commands.watch import until_end

    return until_end(job.directory)


# The places below jobgen.commands of commands that are not in a module of their name.
_ELSEWHERE = {
    **{name: f"runs:{name}" for name in ("cancel", "diff", "logs", "status")},
    "completion": "completion.shells:completion",
    "help": "help:help_command",
    "list": "runs:list_runs",
    "web": "web.command:web",
}
# The commands in the order of the help, by what people do.
_GROUPS = {
    "Make a script": (*COMMANDS, "init", "site"),
    "Run it": ("submit", "status", "logs", "list", "cancel", "fetch", "report", "diff", "host"),
    "Look at scripts": ("check", "convert", "doctor"),
    "More": ("help", "web", "image", "schema", "completion", "man"),
}


@cache
def _submit_command() -> click.Command:
    options = _submission_options()
    command = JobCommand(
        "submit",
        callback=click.pass_obj(_submit),
        short_help="Submit a job, and keep all about it in a directory.",
        help="Submit a job and print its id. Its script and files are kept in a run directory.",
        params=[
            click.Argument(["scheduler"], metavar="|".join(queued()), required=False),
            *job_options(),
            *file_options(),
            *options,
            template_option(),
        ],
    )
    command.own = tuple(str(option.name) for option in options)
    command.example = (
        "jobgen submit slurm --nodes 2 --gpus-per-node 4 --launcher torchrun -- train.py --lr 0.1"
    )
    return command


def _submission_options() -> list[click.Option]:
    """Return the options that only ``submit`` has."""
    return [
        click.Option(["--again"], metavar="RUN", help="Submit RUN again, from its plan.json."),
        click.Option(["-n", "--dry-run"], is_flag=True, help="Print the script; submit and write nothing."),
        click.Option(
            ["--new"], is_flag=True, help="Submit, even if an interrupted submission may have made this job."
        ),
        click.Option(
            ["--submit-timeout"],
            type=OptionType(patience),
            default=SUBMIT_TIMEOUT,
            metavar="TIME",
            help=f"Submit again for so long while the scheduler is busy ({SUBMIT_TIMEOUT}); 0: submit once.",
        ),
        click.Option(["--wait"], is_flag=True, help="Wait for the end of the job; exit with its status."),
        click.Option(
            ["--host"], metavar="NAME", help="Submit at a machine that ssh reaches; see jobgen host add."
        ),
        click.Option(
            ["--upload"],
            multiple=True,
            metavar="PATH",
            type=FILE,
            help="With --host: send PATH with the code, whatever it is. Repeatable.",
        ),
        click.Option(
            ["--no-upload"], is_flag=True, help="With --host: send no code; --workdir has the program there."
        ),
        click.Option(
            ["--upload-limit"],
            type=OptionType(size),
            metavar="SIZE",
            help="With --host: the most code that is sent.  [default: 200M]",
        ),
        *_explain_options(),
    ]


@cache
def _job_command(name: str) -> click.Command:
    scheduler = named(name, None)
    command = JobCommand(
        name,
        callback=click.pass_obj(_generate(name)),
        help=scheduler.help.summary,
        params=[*job_options(), *file_options(), *_output_options()],
    )
    command.example = scheduler.help.example
    return command
