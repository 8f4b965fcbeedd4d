"""What ``jobgen host add`` writes: the file of a host, and the file of its site if no site fits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.hosts.ssh import SshHost
from jobgen.rendering.script_file import write_script
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.detection import of_machine, of_qsub
from jobgen.schedulers.table import SCHEDULERS
from jobgen.site_making.creation import LoginNode, site_file, taking_jobs, without_reservations
from jobgen.site_making.host_facts import available_modules, facts_of, modules_in
from jobgen.site_making.remote_machine import Login, RemoteMachine
from jobgen.sites import host_file, host_match
from jobgen.sites.display import toml
from jobgen.sites.host_file import HostFile
from jobgen.sites.loader import load, read_site
from jobgen.sites.search import folders
from jobgen.sites.site_file import Site

# The tables of a job file that have the defaults which can be given.
_TABLES = {"job": ("account",), "environment": ("venv", "conda", "module")}
_HEAD = "# Written by jobgen host add: the defaults of jobs at {}.\n"
_PATIENCE = 20  # s; of the scheduler
Defaults = Mapping[str, str | tuple[str, ...]]


class KnownSite(NamedTuple):
    """A site, the value of --site for it, and the reason why it is that of a host."""

    site: Site
    name: str
    reason: str


class HostSite(NamedTuple):
    """The site of a host and the reason; ``text`` is that of its file, which is to be written to ``path``;
    empty for a site that is there. ``unread`` are sentences on what cannot be read."""

    name: str
    reason: str
    path: str = ""
    text: str = ""
    unread: tuple[str, ...] = ()


def scheduler_at(host: SshHost, name: str | None) -> tuple[Scheduler, str]:
    """Return the scheduler of a host, and the name of its cluster as it prints it; ``name`` is the row of the
    scheduler that the user says it is.

    Raises:
        JobgenError: there is none, or another one.
        SchedulerError: it does not answer.
    """
    found = of_machine(host)
    if found.scheduler.behaviour.one_host:
        path = host.variable("PATH")
        raise JobgenError(f"neither sbatch nor qsub is on the PATH of a login shell there: {path}")
    row = SCHEDULERS[name] if name else found.scheduler
    if name and row is not found.scheduler and (why := _contradiction(host, row)):
        raise JobgenError(f"--scheduler {name}: {why}; the host has {found.scheduler.title}{found.reason}")
    return row, row.cluster().server(_PATIENCE, host)


def _contradiction(host: SshHost, row: Scheduler) -> str:
    """Return why a host cannot have a scheduler, though it may have another one, too; empty if it can."""
    if not host.which(row.command):
        return f"{row.command} is not on the PATH of a login shell there"
    if "dialect" in row.lacks:  # its command has only one
        return ""
    other, reason = of_qsub(host)
    return (
        ""
        if other == row.name or reason.startswith(", but")
        else f"its qsub is that of {SCHEDULERS[other].title}"
    )


def known_site(
    user: Login, machine: RemoteMachine, row: Scheduler, cluster: str, name: str | None
) -> KnownSite | None:
    """Return the site with this name, else the one that knows the machine; None if there is none.

    Raises:
        JobgenError: the site has another scheduler.
    """
    signs = host_match.Machine(machine.name, user.signs, cluster, lambda: cluster, row.command_name)
    found = (name, "as --site says") if name else host_match.detect(signs)
    if found is None:
        return None
    site = load(found[0], "--site", beside="")
    if site.file.scheduler != row.command_name:
        raise JobgenError(
            f"{site.title} has {site.scheduler.title}, and the host has {row.title}: leave out --site {name}"
        )
    return KnownSite(site, *found)


def new_site(
    host: SshHost, user: Login, machine: RemoteMachine, row: Scheduler, defaults: Defaults
) -> HostSite:
    """Return a new site from what the scheduler of a host lists.

    Raises:
        JobgenError: the scheduler does not answer, or lists no queue; there is a site file of this name.
    """
    path = _own_path(host)
    if os.path.exists(path):
        raise JobgenError(f"{path} exists, and is not the site of this host: --site chooses one")
    facts = taking_jobs(without_reservations(row, facts_of(row, "the site", host)))
    node = LoginNode(
        machine.name,
        facts.name,
        modules_in(available_modules(host)),
        machine.interfaces,
        machine.groups,
        user.user,
    )
    text = site_file(
        row, facts, node, defaults={key: _lines(keys, defaults) for key, keys in _TABLES.items()}
    )
    return HostSite(_name(path), f"new, by {facts.commands}", path, text, facts.unread)


def with_defaults(host: SshHost, known: KnownSite, defaults: Defaults) -> HostSite:
    """Return a site that is there, or one that extends it and has the defaults.

    Raises:
        JobgenError: the user has another site file of the name of the host.
    """
    base = known.name
    if not defaults:
        return HostSite(base, known.reason)
    path, head = _own_path(host), _HEAD.format(host.name)
    if os.path.exists(path):
        before = Path(path).read_text(encoding="utf-8", errors="replace")
        if not before.startswith(head):
            raise JobgenError(f"{path} is a site file of yours: write the defaults into it")
        extended = re.search(r'(?m)^extends = "(.*)"$', before)
        base = extended[1] if extended and base == _name(path) else base
    tables = ((name, _lines(keys, defaults)) for name, keys in _TABLES.items())
    text = f"{head}extends = {toml(base)}\n" + "".join(
        f"\n[{name}]\n{lines}" for name, lines in tables if lines
    )
    return HostSite(_name(path), known.reason, path, text)


def _lines(keys: tuple[str, ...], defaults: Defaults) -> str:
    return "".join(f"{key} = {toml(defaults[key])}\n" for key in keys if key in defaults)


def _own_path(host: SshHost) -> str:
    """Return the path of the user's own site file of a host."""
    return os.path.join(folders()[0], f"{host.name.replace('@', '-')}.toml")


def _name(path: str) -> str:
    return os.path.basename(path).removesuffix(".toml")


def add(host: SshHost, file: HostFile, site: HostSite) -> str:
    """Write the file of a host and that of its site, and return the path of the first.

    Raises:
        JobgenError: they cannot be written, or the site is not valid; neither is left.
    """
    try:
        if site.text:
            os.makedirs(os.path.dirname(site.path), exist_ok=True)
            write_script(site.path, site.text, force=True, executable=False)
            try:
                read_site(site.path)
            except JobgenError:
                os.unlink(site.path)
                raise
        return host_file.write(host.name, file)
    except OSError as error:
        raise JobgenError(f"{shown(str(error.filename))} cannot be written: {error.strerror}") from None
