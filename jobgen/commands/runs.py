"""The commands ``jobgen status``, ``list``, ``logs``, ``cancel`` and ``diff``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from jobgen.commands.parameter_types import Typed
from jobgen.values import whole

_RUNS = "RUN is a run directory, its name or the beginning of it, or a job's id."


def _runs_dir(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --runs-dir, and its earlier name, which the help does not show."""
    command = click.option("--run-dir", "runs_dir", hidden=True)(command)
    about = "Directory of the runs.  [default: the job file's, or runs]"
    return click.option("--runs-dir", metavar="DIR", help=about)(command)


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command(
    "status",
    help=f"Show the state and the progress of runs, by default of the newest one. {_RUNS}",
    epilog="Example: jobgen status",
)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@_runs_dir
@_json
@click.pass_obj
def status(more: tuple[str, ...], names: tuple[str, ...], runs_dir: str | None, as_json: bool) -> None:
    from jobgen.commands import run_tables
    from jobgen.runs import lookup, states

    found, answer = states.states(lookup.some_runs(names + more, lookup.root_of(runs_dir)))
    _say(run_tables.as_json(found) if as_json else run_tables.blocks(found), answer.silent)


@click.command("list", help="List all runs, the newest first.", epilog="Example: jobgen list --runs-dir runs")
@_runs_dir
@_json
def list_runs(runs_dir: str | None, as_json: bool) -> None:
    from jobgen.commands import run_tables
    from jobgen.runs import lookup, states

    root = lookup.root_of(runs_dir)
    found, answer = states.states(lookup.all_runs(root))
    if not found and not as_json:
        click.echo(f"jobgen: there is no run in {root}", err=True)
        return
    _say(run_tables.as_json(found) if as_json else run_tables.table(found), answer.silent)


def _say(text: str, silent: dict[str, str]) -> None:
    click.echo(text, nl=False)
    for why in silent.values():
        click.echo(f"jobgen: {why}", err=True)


@click.command(
    "logs",
    help=f"Print the output of a job, by default that of the newest run. {_RUNS}",
    epilog="Example: jobgen logs -f",
)
@click.argument("name", metavar="[RUN]", required=False)
@click.option(
    "-f", "--follow", is_flag=True, help="Follow the output until the job has ended, through all attempts."
)
@click.option("--rank", metavar="R", type=Typed(whole(0)), help="Print the log of this rank instead.")
@click.option(
    "--attempt", metavar="N", type=Typed(whole(1)), help="Number of the attempt.  [default: the last]"
)
@_runs_dir
def logs(
    name: str | None, follow: bool, rank: int | None, attempt: int | None, runs_dir: str | None
) -> int | None:
    from jobgen.runs import logs as life_logs
    from jobgen.runs import lookup

    [run] = lookup.some_runs((name,) if name else (), lookup.root_of(runs_dir))
    which = life_logs.Which(rank, attempt)
    try:
        life_logs.check_task(run)
        (life_logs.follow if follow else life_logs.show)(run, which)
    except KeyboardInterrupt:
        return 130
    return None


@click.command(
    "cancel",
    help="Cancel jobs, by default that of the newest run. A running job saves first; a second cancel ends it "
    f"at once. A cancelled job does not submit itself again. {_RUNS}",
    epilog="Example: jobgen cancel exp-20261121-1",
)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--now", is_flag=True, help="End it at once, without saving.")
@_runs_dir
@click.pass_obj
def cancel(more: tuple[str, ...], names: tuple[str, ...], now: bool, runs_dir: str | None) -> None:
    from jobgen.runs import cancellation, lookup

    for run in lookup.some_runs(names + more, lookup.root_of(runs_dir)):
        click.echo(f"jobgen: {cancellation.cancel(run, now)}", err=True)


@click.command(
    "diff",
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
    from jobgen.errors import JobgenError
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
