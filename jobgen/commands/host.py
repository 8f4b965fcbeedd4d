"""The command ``jobgen host``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from jobgen.commands.group import CommandGroup
from jobgen.commands.parameter_types import OptionType
from jobgen.errors import NO, JobgenError, counted, nearest, one_of, shown, visible
from jobgen.schedulers.table import SCHEDULERS
from jobgen.sites.search import folders
from jobgen.values.parsers import walltime

if TYPE_CHECKING:
    from jobgen.hosts.ssh import SshHost
    from jobgen.site_making.host_making import HostSite, KnownSite
    from jobgen.site_making.remote_machine import Login, RemoteMachine
    from jobgen.sites.host_file import HostFile


@click.group(
    "host",
    cls=CommandGroup,
    short_help="Add, check and remove machines that ssh reaches.",
    help="Hosts: machines with a scheduler that ssh reaches, for jobgen submit --host.",
    epilog="Example: jobgen host add narval",
)
def host() -> None:
    pass


@contextmanager
def _step(command: str, step: str) -> Iterator[None]:
    """Name the step at which a command fails; the exit status is that of the error."""
    try:
        yield
    except JobgenError as error:
        fault = JobgenError(f"{command}: {step}: {error}")
        fault.status = error.status
        raise fault from None


@host.command(
    "add",
    short_help="Ask a machine that ssh reaches for what jobgen needs, and write it down.",
    help="Connect to NAME, ask it for its scheduler, its site and the variables of a login shell, make the "
    "folder of the runs there, and write a file on the host here. Nothing is installed there. If no site "
    "fits, write a site file, as jobgen site new does there.",
    epilog="Example: jobgen host add narval",
)
@click.argument("name")
@click.option("--ssh", "target", metavar="TARGET", help="What the command ssh takes.  [default: NAME]")
@click.option(
    "--runs",
    metavar="PATH",
    help="Folder of the runs there.  [default: jobgen in your scratch folder, else in your home]",
)
@click.option("--site", metavar="NAME", help="Site of the host.  [default: the one that fits, or a new one]")
@click.option(
    "--scheduler",
    metavar="|".join(name for name, row in SCHEDULERS.items() if not row.behaviour.one_host),
    help="Scheduler of the host, if its commands do not say which.",
)
@click.option("--account", metavar="NAME", help="Account of the jobs, if they name none.")
@click.option("--venv", metavar="PATH", help="Virtual environment there, if jobs name none.")
@click.option("--conda", metavar="NAME", help="Conda environment there, if jobs name none.")
@click.option("--module", metavar="NAME", multiple=True, help="Module of the jobs, if they name none.")
def add(
    name: str,
    target: str | None,
    runs: str | None,
    site: str | None,
    scheduler: str | None,
    account: str | None,
    venv: str | None,
    conda: str | None,
    module: tuple[str, ...],
) -> None:
    from jobgen.site_making import host_making, remote_machine
    from jobgen.sites import host_file

    host_file.path_of(name)  # which refuses a name that cannot be one
    command, target, row_name = f"host add {name}", target or name, _scheduler(scheduler)
    given = {"account": account, "venv": venv, "conda": conda, "module": module}
    defaults = {key: value for key, value in given.items() if value}
    there, user, machine = _reached(command, name, target)
    with _step(command, "scheduler"):
        row, cluster = host_making.scheduler_at(there, row_name)
    with _step(command, "site"):
        known = host_making.known_site(user, machine, row, cluster, site)
        if "account" not in defaults and (own := _account(known)):
            defaults["account"] = own
        if known is None:
            chosen = host_making.new_site(there, user, machine, row, defaults)
        else:
            chosen = host_making.with_defaults(there, known, defaults)
    with _step(command, "folder of the runs"):
        folder = remote_machine.try_folder(there, _folder(runs, machine))
    with _step(command, "files here"):
        file = host_file.HostFile(
            ssh=target,
            scheduler=str((known and known.site.values.get("dialect")) or row.name),
            runs=folder.path,
            user=user.user,
            uid=user.uid,
            site=chosen.name,
            rsync=machine.rsync,
            variables=dict(user.variables),
        )
        path = host_making.add(there, file, chosen)
    _report(user, machine, file, folder.free, chosen)
    click.echo(f"{path}: the host", err=True)
    click.echo("Next:", err=True)
    click.echo(f"jobgen host check {name}")


def _reached(command: str, name: str, target: str) -> tuple[SshHost, Login, RemoteMachine]:
    """Return a host that has the variables of a login shell, the user there, and the machine."""
    from jobgen.hosts.ssh import SshHost
    from jobgen.site_making import remote_machine
    from jobgen.sites import host_match

    plain = SshHost(name, target)
    with _step(command, "connection"):
        plain.connect()
    with _step(command, "login shell"):
        user = remote_machine.login(plain, host_match.variables())
        there = SshHost(name, target, user.user, user.uid, user.variables)
        return there, user, remote_machine.machine(there, user)


def _scheduler(name: str | None) -> str | None:
    """Return the name of a scheduler as typed; refuse one that does not exist."""
    known = [one for one, row in SCHEDULERS.items() if not row.behaviour.one_host]
    if name is None or name in known:
        return name
    raise JobgenError(
        f"--scheduler {shown(name)} (command line): must be {one_of(known)}{nearest(name, known)}"
    )


def _account(known: KnownSite | None) -> str:
    """Ask for the account of jobs if the site demands one; without a terminal the answer is none."""
    if known is None or "account" not in known.site.file.mandatory:
        return ""
    if known.site.values.get("account"):
        return ""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        click.echo(
            f"jobgen: note: {known.site.title} demands an account of each job: --account is its default",
            err=True,
        )
        return ""
    answer: str = click.prompt(f"Account of your jobs at {known.site.title}", default="", err=True)
    return answer.strip()


def _folder(typed: str | None, machine: RemoteMachine) -> str:
    """Return the absolute path of the folder of the runs; typed paths are relative to the home there."""
    if typed is not None and (not typed.isprintable() or not typed):
        raise JobgenError(f"--runs {shown(typed)} (command line): must be a path at the host")
    if typed is not None and typed.startswith("/"):
        return typed
    if not machine.home.startswith("/"):
        raise JobgenError("you have no home directory there: --runs PATH names a folder")
    if typed is not None:
        return f"{machine.home}/{typed.removeprefix('~/')}"
    return f"{machine.scratch or machine.home}/jobgen"


def _report(user: Login, machine: RemoteMachine, file: HostFile, free: int | None, site: HostSite) -> None:
    """Print what is known of a host."""
    from jobgen.runs.code.selection import amount

    has = ["rsync" if machine.rsync else "no rsync"]
    has.append(f"Python {machine.python}" if machine.python else "no Python on the PATH")
    lines = [
        f"{file.ssh}: {machine.name}, {', '.join(has)}",
        f"  you: {user.user}, whose login shell is {user.shell}",
        f"  scheduler: {SCHEDULERS[file.scheduler].title}",
        f"  site: {site.name}, {site.reason}",
        f"  runs: {file.runs}" + (f", {amount(free << 10)} free" if free is not None else ""),
        *(f"  {line}" for line in site.unread[:10]),
    ]
    if site.text:
        lines.append(f"{site.path}: the site")
    for line in lines:
        click.echo(visible(line), err=True)


_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@host.command("list", help="List the hosts.")
@_JSON
def list_hosts(as_json: bool) -> None:
    from jobgen.commands.terminal import aligned
    from jobgen.sites import host_file

    rows = [_fields(name, host_file.read(name)) for name in host_file.names()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    heads = ("NAME", "SCHEDULER", "SITE", "RUNS")
    for line in aligned([heads, *(tuple(str(row[key.lower()] or "-") for key in heads) for row in rows)]):
        click.echo(visible(line))


@host.command("show", help="Print what is known of a host, and where it is written. It is not connected to.")
@click.argument("host", metavar="NAME")
@_JSON
def show(host: str, as_json: bool) -> None:
    from jobgen.sites import host_file
    from jobgen.sites.display import key, toml

    fields = _fields(host, host_file.read(host))
    if as_json:
        click.echo(json.dumps(fields, indent=2))
        return
    for name, value in fields.items():
        if name != "name":
            click.echo(visible(f"{key(name)} = {toml(value)}" if value is not None else f"# no {name}"))


def _fields(name: str, file: HostFile) -> dict[str, Any]:
    import msgspec

    from jobgen.sites.host_file import path_of

    return {"name": name, "file": path_of(name), **msgspec.structs.asdict(file)}


@host.command(
    "check",
    short_help="Check what a submission needs of a host.",
    help="Connect to a host; write and remove a file in the folder of its runs; have its scheduler judge a "
    "job of one minute that is not submitted. Each step is a line. The status is 1 if one fails, and 5 if "
    "the host does not answer.",
    epilog="Example: jobgen host check narval",
)
@click.argument("host", metavar="NAME")
@click.option("--submit-test", is_flag=True, help="On PBS, submit a job of one minute, and delete it.")
def check(host: str, submit_test: bool) -> int:
    from jobgen.runs.code.selection import amount
    from jobgen.site_making import host_check
    from jobgen.sites import host_file

    file = host_file.read(host)
    good = True
    for step in host_check.check(host_file.host(host), file, amount, submit_test):
        good = step.good
        click.echo(visible(f"{step.name}: {'' if good else 'failed: '}{step.text}"))
    return 0 if good else NO


@host.command(
    "clean",
    short_help="Remove old code from a host.",
    help="Remove the store of code at a host, from which runs get copies, but for what is less than a day "
    "old. Runs stay as they are; the next submission sends again what it needs. Runs, with their "
    "checkpoints, are removed only with --older-than.",
    epilog="Example: jobgen host clean narval",
)
@click.argument("host", metavar="NAME")
@click.option(
    "--older-than",
    metavar="TIME",
    type=OptionType(walltime),
    help="Also remove there the runs that have ended, and in which no file has changed for this time.",
)
@click.option("-y", "--yes", is_flag=True, help="Remove the runs without a question.")
def clean(host: str, older_than: int | None, yes: bool) -> int | None:
    from jobgen.runs.code.selection import amount
    from jobgen.site_making import host_cleaning
    from jobgen.sites import host_file

    file, there = host_file.read(host), host_file.host(host)
    removed = host_cleaning.clean_store(there, file)
    click.echo(f"{host}: {counted(removed.files, 'file')} of code removed, {amount(removed.size << 10)}")
    names = host_cleaning.old_runs(there, file, older_than) if older_than is not None else []
    if older_than is not None and not names:
        click.echo(f"{host}: no run is that old")
    if not names:
        return None
    for name in names:
        click.echo(visible(f"{file.runs}/{name}"), err=True)
    if not (yes or _confirmed(f"Remove {counted(len(names), 'run')} at {host}, with their checkpoints?")):
        return NO
    size = host_cleaning.remove_runs(there, file, names)
    click.echo(f"{host}: {counted(len(names), 'run')} removed, {amount(size << 10)}")
    return None


def _confirmed(question: str) -> bool:
    """Ask a question; refuse to go on without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise JobgenError("host clean: there is no terminal to ask on: --yes removes the runs")
    return click.confirm(question, err=True)


@host.command(
    "remove",
    short_help="Forget a host.",
    help="Remove the file on a host here. It is not connected to: what is there stays.",
)
@click.argument("host", metavar="NAME")
def remove(host: str) -> None:
    from jobgen.sites import host_file

    path = host_file.path_of(host)
    if not os.path.exists(path):
        host_file.read(host)  # which names the nearest host
    try:
        file = host_file.read(host)
    except JobgenError:  # it is to be removed, even if it is not valid
        file = None
    os.unlink(path)
    click.echo(f"{path}: removed", err=True)
    if file is None:
        return
    click.echo(visible(f"  {file.runs} stays at {file.ssh}, with the runs and their code"), err=True)
    own = os.path.join(folders()[0], f"{file.site}.toml")
    if file.site and os.path.exists(own):
        click.echo(visible(f"  {own} stays here, the site"), err=True)
