"""Detection of the site of this machine, by the configuration of its scheduler, its host name and its
environment."""

from __future__ import annotations

import os
import socket
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from jobgen.errors import JobgenError
from jobgen.schedulers.detection import detect as scheduler_here
from jobgen.schedulers.table import SCHEDULERS

if TYPE_CHECKING:
    from jobgen.schedulers.cluster import ClusterCommands
    from jobgen.sites.site_file import Detect, Site


_PATIENCE = 2  # s; of the scheduler


def detect() -> tuple[str, str] | None:
    """Return the name of the site and the reason. The user's sites come first; invalid ones are skipped.

    If several sites match, the scheduler is asked for the name of its cluster.
    """
    from jobgen.sites.loader import load
    from jobgen.sites.search import folders, names

    own, commands = folders()[0], _commands()
    cluster = commands.configured() if commands else ""
    found: dict[str, tuple[bool, str, str]] = {}
    detects: dict[str, Detect] = {}
    for name in names():
        try:
            site = load(name, machine=False)
        except JobgenError:
            continue
        if why := reason(site.file.detect, socket.gethostname(), os.environ, cluster):
            found[name], detects[name] = (os.path.dirname(site.path) != own, name, why), site.file.detect
    if len(found) > 1 and commands and (server := _server(commands)):
        confirmed = [name for name, one in detects.items() if server in one.clusters]
        found = {name: (*found[name][:2], f"its scheduler says {server}") for name in confirmed} or found
    return min(found.values())[1:] if found else None


def is_here(site: Site) -> bool:
    """Return whether this machine belongs to a site, and has its scheduler."""
    if SCHEDULERS[scheduler_here()[0]] is not site.scheduler:
        return False
    cluster = site.scheduler.cluster().configured()
    return reason(site.file.detect, socket.gethostname(), os.environ, cluster) is not None


def reason(
    detect: Detect, host: str, env: os._Environ[str] | dict[str, str], cluster: str = ""
) -> str | None:
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
