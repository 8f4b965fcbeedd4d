"""The common parts of the commands of a job: their options, and the plan made from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import click

from jobgen.commands.accepted import is_bare
from jobgen.errors import JobgenError, shown
from jobgen.jobfile.tables import JOB_FILE
from jobgen.launch.launchers import LAUNCHERS
from jobgen.options import OPTIONS
from jobgen.schedulers.table import COMMANDS
from jobgen.spec import COMMAND_LINE
from jobgen.values.text_files import is_job_file_name, is_script_name

# The options of most jobs, in the order of the short help.
_FIRST = (
    *("nodes", "gpus_per_node", "ranks_per_node", "launcher", "walltime", "queue", "account"),
    *("module", "conda", "venv", "env", "site", "output"),
)
_ALL = "jobgen.all_options"  # the key of click's context for the long help


def _print_all(ctx: click.Context, _: click.Parameter, chosen: bool) -> None:
    """Print the help with all options, and end."""
    if chosen:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class JobCommand(click.Command):
    """A command whose help shows the options of most jobs, or all in groups, and ends with an example."""

    example = ""
    own: tuple[str, ...] = ()
    """The options of this command alone that the short help shows, too."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        help_all = click.Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_print_all,
            help="Show all options and exit.",
        )  # fmt: skip
        return [*super().get_params(ctx), help_all]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = self.option_groups(ctx)
        for title, records in (every if _ALL in ctx.meta else self._short_groups(ctx)).items():
            with formatter.section(title):
                formatter.write_dl(records)
        if _ALL not in ctx.meta:
            formatter.write(f"\nAll {sum(map(len, every.values()))} options: {ctx.command_path} --help-all\n")
        with formatter.section("Example"):
            formatter.write(f"  {self.example}\n")

    def _short_groups(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the options of most jobs, and those of this command alone."""
        records = {one.name: one.get_help_record(ctx) for one in self.get_params(ctx)}
        titles = {"Options of most jobs": _FIRST, f"Options of {self.name}": self.own}
        groups = {title: [records.get(name) for name in names] for title, names in titles.items()}
        return {title: [one for one in each if one] for title, each in groups.items() if any(each)}

    def option_groups(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the options and their help by the titles of their groups."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                groups.setdefault(getattr(parameter, "group", "Output"), []).append(record)
        return groups

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        arguments = [f"[{one.metavar}]" for one in self.params if isinstance(one, click.Argument)]
        return [*arguments, "[OPTIONS]", "[-- PROGRAM [ARG]...]"]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        words = list(args)
        if pasted := next((word for word in words if word.strip()[:1] == "-" and not word.isprintable()), ""):
            self._refuse_blanks(pasted)
        takes = {
            name
            for one in self.params
            if isinstance(one, click.Option) and not one.is_flag
            for name in one.opts
        }
        bare = any(is_bare(takes, *pair) for pair in pairwise([*words, ""]))
        if bare or any(re.match(r"-h\w", word) for word in words):  # such as -hostfile, which is not -h
            self._explain(words, ctx.obj or ())
        try:
            strays = super().parse_args(ctx, args)
        except (click.NoSuchOption, click.BadOptionUsage) as error:
            # --exclusive=user is a switch in jobgen.
            parts = [part for word in words for part in word.split("=", 1)]
            values = [value for option, value in pairwise(parts) if option == error.option_name]
            self._refuse_job_file(values, "", ())  # such as --config X.toml
            self._explain(words, ctx.obj or ())
            raise
        scheduler = ctx.params.get("scheduler") or ""
        if scripts := [word for word in (*strays, scheduler) if is_script_name(word)]:
            from jobgen.commands.advice import script_advice

            raise JobgenError(script_advice(scripts[0], scheduler or self.name))
        self._refuse_job_file((*strays, scheduler), scheduler, (ctx.obj or ())[:1])
        if scheduler and scheduler not in COMMANDS:
            from jobgen.commands.advice import is_program

            if is_program(scheduler):
                strays, scheduler = [scheduler, *strays], ""
        if strays:
            self._explain(words, ctx.obj or ())
            from jobgen.commands.advice import stray_advice

            command = [word for word in (self.name, scheduler) if word]
            hint = stray_advice(strays, command, ctx.obj or ())
            raise JobgenError(f"{shown(strays[0])} (command line): is no option; {hint}")
        return strays

    def _refuse_job_file(self, words: Sequence[str], scheduler: str, program: Sequence[str]) -> None:
        """Raise the error about a job file among the arguments, or as the program."""
        for word in filter(is_job_file_name, (*words, *program)):
            from jobgen.commands.advice import job_file_advice

            chosen = [one for one in (scheduler,) if one and not is_job_file_name(one)]
            origin = COMMAND_LINE if word in words else "after --"
            raise JobgenError(job_file_advice(word, [self.name or "", *chosen], origin))

    def _refuse_blanks(self, word: str) -> None:
        """Raise the error about an option with a blank in its name that is no space, as web pages have it."""
        name = re.split(r"[\s=]", word)[0]
        if not name.isprintable() or (name != word.partition("=")[0] and name.isascii()):
            plain = " ".join(re.sub(r"[^\x20-\x7e]+", " ", word).split())
            raise JobgenError(
                f"{shown(word)} (command line): contains a blank that is no space: write {plain}"
            )

    def _explain(self, words: Sequence[str], program: Sequence[str]) -> None:
        """Raise the error about options with one hyphen, or of other programs, if there are any."""
        known = {name for parameter in self.params for name in parameter.opts}
        known -= {f"-{name}" for row in LAUNCHERS.values() for name in row.line.from_script}
        for flag in (word.partition("=")[0] for word in words):
            if f"-{flag}" in known:
                raise JobgenError(f"there is no option {flag}; did you mean -{flag}?")
        from jobgen.commands.foreign_options import hint

        if sentence := hint(self, words, program):
            raise JobgenError(sentence)


class _Option(click.Option):
    """An option of a job: click only collects its text; config.py parses it."""

    group: str


def job_options() -> list[click.Parameter]:
    """Return all options of the table."""
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


def file_options() -> list[click.Parameter]:
    """Return the options for the job file, for changes in it, and for the site."""
    parameters: list[click.Parameter] = [
        _Option(["--job"], metavar="FILE", help=f"The job file.  [default: {JOB_FILE}, if it is there]"),
        _Option(["--no-job"], is_flag=True, help=f"Read no job file, not even {JOB_FILE}."),
        _Option(
            ["--set", "settings"],
            metavar="TABLE.KEY=VALUE",
            multiple=True,
            help="Change one value of the job file, such as train.lr=0.01. Repeatable.",
        ),
        _Option(
            ["--site"],
            metavar="NAME",
            help="The site whose rules, limits and defaults apply (jobgen site list); none: no site.",
        ),
    ]
    for parameter in parameters:
        parameter.group = "Job file"  # type: ignore[attr-defined]
    return parameters


def template_option() -> click.Parameter:
    """Return the option ``--template-dir``."""
    return click.Option(
        ["--template-dir"],
        metavar="DIR",
        multiple=True,
        help="Templates that come before the packaged ones; also JOBGEN_TEMPLATE_PATH. Repeatable.",
    )
