"""The command ``jobgen host``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from jobgen.commands.group import Group
from jobgen.errors import JobgenError, shown, visible
from jobgen.schedulers.table import SCHEDULERS

if TYPE_CHECKING:
    from jobgen.site_making.host_making import HostSite, KnownSite
    from jobgen.site_making.remote_machine import Login, RemoteMachine
    from jobgen.sites.host_file import HostFile


@click.group(
    "host",
    cls=Group,
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
    epilog="Example: jobgen host add narval --account def-me --venv /home/me/venv",
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
    from jobgen.hosts.ssh import SshHost
    from jobgen.site_making import host_making, remote_machine
    from jobgen.sites import host_file, host_match

    host_file.path_of(name)  # which refuses a name that cannot be one
    command = f"host add {name}"
    row_name = _scheduler(scheduler)
    given = {"account": account, "venv": venv, "conda": conda, "module": module}
    defaults = {key: value for key, value in given.items() if value}
    plain = SshHost(name, target or name)
    with _step(command, "connection"):
        plain.connect()
    with _step(command, "login shell"):
        user = remote_machine.login(plain, host_match.variables())
        there = SshHost(name, target or name, user.user, user.uid, user.variables)
        machine = remote_machine.machine(there, user)
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
            ssh=target or name,
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


def _scheduler(name: str | None) -> str | None:
    """Return the name of a scheduler as typed.

    Raises:
        JobgenError: there is no such scheduler.
    """
    from jobgen.errors import nearest, one_of

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
    """Return the absolute path of the folder of the runs; typed paths are relative to the home there.

    Raises:
        JobgenError: it cannot be a path, or the user has no home there.
    """
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
    from jobgen.code.selection import amount

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
