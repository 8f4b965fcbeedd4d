"""The command ``jobgen convert``."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from jobgen.commands.output import check_force, put
from jobgen.commands.parameter_types import FILE, OptionType
from jobgen.errors import PROGRAM_CHANGED, JobgenError, one_of, shown
from jobgen.schedulers.table import SCHEDULERS
from jobgen.script.dialects.table import DIALECTS
from jobgen.secrets import masked
from jobgen.values.parsers import choice
from jobgen.values.text_files import is_job_file_name

if TYPE_CHECKING:
    from jobgen.convert.result import Remark

_SOURCES = tuple(one.name for one in DIALECTS.values() if one.scheduler.prefix)
_TARGETS = (*_SOURCES, "toml")


_target_word = choice(*_TARGETS)


def _target(text: str) -> str:
    """Return the target of a word; for a command with several dialects it is that of this machine."""
    dialects = {name: row.title for name, row in SCHEDULERS.items() if row.command_name == text != name}
    if len(dialects) < 2:
        return _target_word(text)
    from jobgen.schedulers.detection import of_machine

    here = of_machine()
    if here.scheduler.name in dialects and here.certain:
        return here.scheduler.name
    raise ValueError(f"has several dialects: use {one_of(f'{key} ({dialects[key]})' for key in dialects)}")


@click.command(
    "convert",
    short_help="Convert a script for another scheduler, or to a job file.",
    help="Convert a script for another scheduler, or to a job file, and print it. A FILE of - is standard "
    "input. What cannot be translated is reported on standard error and stays as a comment; the "
    "status is then 1.",
    epilog="Example: jobgen convert job.pbs --to slurm -o job.sh",
)
@click.argument("file", metavar="FILE", required=False)
@click.option(
    "--to",
    "target",
    type=OptionType(_target),
    metavar="|".join(_TARGETS),
    help="Dialect of the new script, or toml for a job file.",
)
@click.option(
    "--scheduler",
    type=OptionType(choice(*_SOURCES)),
    metavar="|".join(_SOURCES),
    help="Dialect of the script.  [default: by its directives]",
)
@click.option("-o", "--output", metavar="FILE", type=FILE, help="Write the result to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def convert(
    file: str | None, target: str | None, scheduler: str | None, output: str | None, force: bool
) -> int:
    from jobgen.check.files import read_source
    from jobgen.convert.misreadings import refusal
    from jobgen.convert.to_job_file import translation
    from jobgen.convert.to_scheduler import component_steps, conversion
    from jobgen.rendering.runtime import MADE_BY, MARK
    from jobgen.script.directives import recognized
    from jobgen.script.script import Script

    if file is None:
        raise JobgenError("convert: name a script, or - for standard input")
    if target is None:
        raise JobgenError(f"--to is missing: say {one_of(_TARGETS)}")
    source = read_source(file)
    lines = source.decode("utf-8", "replace").replace("\r", "").split("\n")
    guessed = recognized(lines)
    whose = scheduler or guessed.scheduler
    ours = any(re.match(MADE_BY, line) for line in lines[:5])
    _check_source(file, whose, guessed.why_shell, target, ours)
    if guessed.reason and scheduler is None and not ours:
        click.echo(f"{file}: {guessed.reason}", err=True)
    source = source.partition(MARK.encode())[0] if ours else source
    folder, name = (None, "") if file == "-" else os.path.split(os.path.abspath(file))
    script = Script(source, whose, folder, name=name)
    reason = None if ours else refusal(script) or component_steps.refusal(script, DIALECTS.get(target))
    if reason is not None:
        raise JobgenError(f"{shown(file)}, line {reason[0]}: {reason[1]}")
    done = translation.convert(script) if target == "toml" else conversion.convert(script, target)
    check_force(output, force)
    put(done.text, output, force, executable=target != "toml")
    if ours:
        click.echo(
            f"{file}: was made by jobgen: the job file has its directives and its launcher; for the rest see "
            "the command that made it, or plan.json in its run directory",
            err=True,
        )
        return _report(file, [one for one in done.remarks if one.lost]) or 1
    return _report(file, done.remarks)


def _check_source(file: str, whose: str, why: str, target: str, ours: bool) -> None:
    if is_job_file_name(file):
        from jobgen.commands.advice import job_file_advice

        raise JobgenError(job_file_advice(file))
    if whose == "shell":
        what = why or "it has no directives"
        raise JobgenError(f"{shown(file)} (command line): {what}: say whose it is with --scheduler")
    if ours and target != "toml":
        raise JobgenError(
            f"{shown(file)} (command line): was made by jobgen, which makes it for {target}, too, from the "
            "same options; --to toml writes them into a job file"
        )


def _report(file: str, remarks: Sequence[Remark]) -> int:
    """Print the remarks on a conversion; return 1 if something is lost, 4 if it is a part of the program."""
    for remark in remarks:
        what = "cannot be translated" if remark.lost else "translated, but look"
        click.echo(f"{file}:{remark.line}: {what}: {masked(remark.what)}: {remark.why}", err=True)
    if any(remark.of_program for remark in remarks):
        return PROGRAM_CHANGED
    return int(any(remark.lost for remark in remarks))
