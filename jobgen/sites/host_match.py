"""Detection of the site of this machine, by its host name and its environment."""

from __future__ import annotations

import os
import socket
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from jobgen.errors import JobgenError

if TYPE_CHECKING:
    from jobgen.sites.site_file import Detect


def detect() -> tuple[str, str] | None:
    """Return the name of the site and the reason. The user's sites come first; invalid ones are skipped."""
    from jobgen.sites.loader import load
    from jobgen.sites.search import folders, names

    own = folders()[0]
    found = []
    for name in names():
        try:
            site = load(name, machine=False)
        except JobgenError:
            continue
        if why := reason(site.file.detect, socket.gethostname(), os.environ):
            found.append((os.path.dirname(site.path) != own, name, why))
    return min(found)[1:] if found else None


def reason(detect: Detect, host: str, env: os._Environ[str] | dict[str, str]) -> str | None:
    """Return why a machine with this name and environment belongs to the site; None if it does not."""
    for name, value in detect.env.items():
        if fnmatchcase(env.get(name, ""), value):
            return f"{name} is {env[name]}"
    for pattern in detect.hosts:
        if fnmatchcase(host, pattern):
            return f"the host name {host} matches {pattern}"
    return None
