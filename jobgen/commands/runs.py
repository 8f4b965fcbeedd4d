"""The commands ``jobgen status``, ``list``, ``logs``, ``cancel`` and ``diff``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jobgen.commands.parameter_types import OptionType
from jobgen.errors import INTERRUPTED, NO, JobgenError, shown
from jobgen.values.parsers import whole

if TYPE_CHECKING:
    from jobgen.runs.job_query import HostScheduler

_RUNS = "RUN is a run directory, its name or the beginning of it, or a job's id."


_runs_dir = click.option(
    "--runs-dir", metavar="DIR", help="Directory of the runs.  [default: the job file's, or runs]"
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command(
    "status",
    short_help="Show the state and the progress of runs.",
    help=f"Show the state and the progress of runs, by default of the newest one. {_RUNS}",
    epilog="Example: jobgen status",
)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@_runs_dir
@_json
@click.option(
    "--watch",
    metavar="[SECONDS]",
    is_flag=False,
    flag_value="5",
    help="Show a table every 5 seconds until the runs have ended; without RUN, of all that have not ended.",
)
@click.pass_obj
def status(
    more: tuple[str, ...], names: tuple[str, ...], runs_dir: str | None, as_json: bool, watch: str | None
) -> int | None:
    from jobgen.commands import run_tables
    from jobgen.commands.terminal import painter
    from jobgen.runs import lookup, states

    names, root = names + more, lookup.root_of(runs_dir)
    if watch is not None:
        if as_json:
            raise JobgenError("--json and --watch contradict each other; leave one of them out")
        return _watch(watch, names, root)
    found, answer = states.states(lookup.some_runs(names, root))
    found = [states.with_cause(one) for one in found]
    _say(
        run_tables.as_json(found) if as_json else run_tables.blocks(found, painter(sys.stdout)), answer.silent
    )
    return None


def _watch(interval: str, names: tuple[str, ...], root: Path) -> int:
    """Watch runs. A word after --watch that is no number is a run."""
    from jobgen.commands import watch
    from jobgen.runs import lookup

    if not re.fullmatch(r"[\d.]+", interval, re.ASCII):
        interval, names = "5", (interval, *names)
    try:
        seconds = whole(2, 3600)(interval)
    except ValueError as error:
        hint = "; RUN comes before --watch"
        raise JobgenError(f"--watch {shown(interval)} (command line): {error}{hint}") from None
    runs = lookup.some_runs(names, root) if names else lookup.all_runs(root) or lookup.some_runs((), root)
    try:
        watch.watch(runs, seconds, bool(names))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


@click.command("list", help="List all runs, the newest first.", epilog="Example: jobgen list --runs-dir runs")
@_runs_dir
@_json
def list_runs(runs_dir: str | None, as_json: bool) -> None:
    from jobgen.commands import run_tables
    from jobgen.commands.terminal import painter, progress
    from jobgen.runs import lookup, states

    root = lookup.root_of(runs_dir)
    with progress("reading runs") as work:
        found, answer = states.states(work.of(lookup.all_runs(root)))
    if not found and not as_json:
        click.echo(f"jobgen: there is no run in {root}", err=True)
        return
    lines = [] if as_json else run_tables.table(found, paint=painter(sys.stdout))
    _say(
        run_tables.as_json(found) if as_json else "".join(f"{line}\n" for line in lines),
        states.reasons(found, answer.silent),
    )


def _say(text: str, silent: Mapping[HostScheduler, str]) -> None:
    click.echo(text, nl=False)
    for why in silent.values():
        click.echo(f"jobgen: {why}", err=True)


@click.command(
    "logs",
    short_help="Print the output of a job; -f follows it.",
    help=f"Print the output of a job, by default that of the newest run. {_RUNS}",
    epilog="Example: jobgen logs -f",
)
@click.argument("name", metavar="[RUN]", required=False)
@click.option(
    "-f", "--follow", is_flag=True, help="Follow the output until the job has ended, through all attempts."
)
@click.option("--rank", metavar="R", type=OptionType(whole(0)), help="Print the log of this rank instead.")
@click.option("--step", metavar="S", help="Print the log of this step of the job, by its name or number.")
@click.option(
    "--attempt", metavar="N", type=OptionType(whole(1)), help="Number of the attempt.  [default: the last]"
)
@click.option(
    "--tail",
    metavar="N",
    type=OptionType(whole(0)),
    help="Print only the last N lines; with -f, go on from there.",
)
@_runs_dir
def logs(
    name: str | None,
    follow: bool,
    rank: int | None,
    step: str | None,
    attempt: int | None,
    tail: int | None,
    runs_dir: str | None,
) -> int | None:
    from jobgen.runs import logs as life_logs
    from jobgen.runs import lookup

    [run] = lookup.some_runs(() if name is None else (name,), lookup.root_of(runs_dir))
    which = life_logs.Which(rank, attempt, tail, step)
    try:
        (life_logs.follow if follow else life_logs.show)(run, which)
    except KeyboardInterrupt:
        return INTERRUPTED
    return None


@click.command(
    "cancel",
    short_help="Cancel jobs; a running one saves first.",
    help="Cancel jobs; without RUN, the job of the newest run, after a question. A running job saves first; "
    f"a second cancel ends it at once. A cancelled job does not submit itself again. {_RUNS}",
    epilog="Example: jobgen cancel exp-20261121-1",
)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--now", is_flag=True, help="End it at once, without saving.")
@click.option("-y", "--yes", is_flag=True, help="Cancel the newest run without a question.")
@_runs_dir
@click.pass_obj
def cancel(
    more: tuple[str, ...], names: tuple[str, ...], now: bool, yes: bool, runs_dir: str | None
) -> int | None:
    from jobgen.runs import cancellation, lookup

    runs = lookup.some_runs(names + more, lookup.root_of(runs_dir))
    if not (names + more or yes or _confirmed(runs[0])):
        click.echo("jobgen: nothing is cancelled", err=True)
        return NO
    for run in runs:
        click.echo(f"jobgen: {cancellation.cancel(run, now)}", err=True)
    return None


def _confirmed(run: Path) -> bool:
    """Ask whether to cancel the newest run; refuse one that has ended, or if nobody can be asked."""
    from jobgen.runs import cancellation

    state = cancellation.cancellable(run)[0]
    job = f"job {state.id}, " if state.id else ""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise JobgenError(
            f"cancel: the newest run is {state.name} ({job}{state.state}): name it, or give --yes; without a "
            "terminal nobody can be asked"
        )
    try:
        return click.confirm(f"jobgen: cancel {state.name} ({job}{state.state})?", err=True)
    except click.Abort:  # at the end of the input; Ctrl-C
        click.echo(err=True)
        raise


@click.command(
    "diff",
    short_help="Show the differences between two runs.",
    help="Show the differences between two runs: options, program, code, versions, results. The status is 1 "
    f"if there are any. {_RUNS}",
    epilog="Example: jobgen diff exp-1 exp-2",
)
@click.argument("names", metavar="RUN RUN", nargs=-1)
@_runs_dir
@_json
@click.pass_obj
def diff(more: tuple[str, ...], names: tuple[str, ...], runs_dir: str | None, as_json: bool) -> int:
    from jobgen.commands import run_tables
    from jobgen.runs import differences, lookup

    if len(names + more) != 2:
        raise JobgenError("diff: name two runs")
    left, right = (lookup.one_run(name, lookup.root_of(runs_dir)) for name in names + more)
    differences.check(left, right)
    found = differences.compare(left, right)
    click.echo(run_tables.comparison_as_json(found) if as_json else run_tables.comparison(found), nl=False)
    if found.notes and not as_json:
        click.echo(f"jobgen: {', '.join(found.notes)}", err=True)
    return int(not found.same)
