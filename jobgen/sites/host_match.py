"""Detection of the site of a machine, by the configuration of its scheduler, its host name and its
environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import JobgenError
from jobgen.schedulers.detection import detect as scheduler_here
from jobgen.schedulers.table import SCHEDULERS

if TYPE_CHECKING:
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.sites.site_file import Detect, Site


_PATIENCE = 2  # s; of the scheduler


class Machine(NamedTuple):
    """The signs of a machine: its host name, its environment, and the cluster in its configuration.
    ``server`` returns the name of the cluster as the scheduler prints it; empty if it does not answer.

    ``scheduler``: only sites with this one, by its command; empty: any site.
    """

    name: str
    env: Mapping[str, str]
    cluster: str
    server: Callable[[], str]
    scheduler: str = ""


def this_machine() -> Machine:
    """Return the signs of this machine."""
    commands = _commands()
    cluster = commands.configured() if commands else ""
    return Machine(socket.gethostname(), os.environ, cluster, lambda: _server(commands) if commands else "")


def detect(machine: Machine | None = None) -> tuple[str, str] | None:
    """Return the name of the site of a machine, by default of this one, and the reason. The user's sites come
    first.

    If several sites match, the scheduler is asked for the name of its cluster.
    """
    from jobgen.sites.search import folders

    own, machine = folders()[0], machine or this_machine()
    found: dict[str, tuple[bool, str, str]] = {}
    detects: dict[str, Detect] = {}
    for site in _sites():
        if machine.scheduler not in ("", site.file.scheduler):
            continue
        if why := reason(site.file.detect, machine.name, machine.env, machine.cluster):
            found[site.name] = (os.path.dirname(site.path) != own, site.name, why)
            detects[site.name] = site.file.detect
    if len(found) > 1 and (server := machine.server()):
        confirmed = [name for name, one in detects.items() if server in one.clusters]
        found = {name: (*found[name][:2], f"its scheduler says {server}") for name in confirmed} or found
    return min(found.values())[1:] if found else None


def variables() -> list[str]:
    """Return the names of the variables that are signs of a site."""
    return sorted({name for site in _sites() for name in site.file.detect.env})


def _sites() -> Iterator[Site]:
    """Yield the sites that are valid."""
    from jobgen.sites.loader import load
    from jobgen.sites.search import names

    for name in names():
        with suppress(JobgenError):
            yield load(name, machine=False)


def is_here(site: Site) -> bool:
    """Return whether this machine belongs to a site, and has its scheduler."""
    if SCHEDULERS[scheduler_here()[0]] is not site.scheduler:
        return False
    here = this_machine()
    return reason(site.file.detect, here.name, here.env, here.cluster) is not None


def reason(detect: Detect, host: str, env: Mapping[str, str], cluster: str = "") -> str | None:
    """Return why a machine with this name and environment, and this cluster in its configuration, belongs to
    the site; None if it does not."""
    if cluster and cluster in detect.clusters:
        return f"the cluster in its configuration is {cluster}"
    for name, value in detect.env.items():
        if fnmatchcase(env.get(name, ""), value):
            return f"{name} is {env[name]}"
    for pattern in detect.hosts:
        if fnmatchcase(host, pattern):
            return f"the host name {host} matches {pattern}"
    return None


def _server(commands: ClusterCommands) -> str:
    """Return the name of the cluster as its scheduler prints it; empty if it does not answer."""
    try:
        return commands.server(_PATIENCE)
    except JobgenError:
        return ""


def _commands() -> ClusterCommands | None:
    row = SCHEDULERS[scheduler_here()[0]]
    return None if row.behaviour.one_host else row.cluster()
