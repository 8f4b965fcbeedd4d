"""Host files: what jobgen knows of a machine that ``ssh`` reaches, as ``jobgen host add`` writes it.

One file for each host, ``hosts/NAME.toml`` in the user's own folder of settings.
"""

from __future__ import annotations

import os
import re

import msgspec

from jobgen.errors import JobgenError, nearest, shown
from jobgen.hosts.ssh import SshHost
from jobgen.jobfile.reader import decode, read_text
from jobgen.schedulers.table import SCHEDULERS
from jobgen.sites.display import toml
from jobgen.sites.search import user_folder

NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}"  # what can be a file name, and is no option of ssh


class HostFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a host file.

    ``ssh`` is what the command ssh takes; ``scheduler`` has the dialect: pbspro. ``runs`` is the absolute
    path of the folder of runs and code there. ``user`` and ``uid`` are those of the user there;
    ``variables``, such as PATH, are set for each command. ``rsync``: the host has it.
    """

    ssh: str
    scheduler: str
    runs: str
    user: str
    uid: str
    site: str | None = None
    rsync: bool = False
    variables: dict[str, str] = {}


def folder() -> str:
    """Return the folder of the host files."""
    return os.path.join(user_folder(), "hosts")


def path_of(name: str) -> str:
    """Return the path of a host file.

    Raises:
        JobgenError: the name cannot be one.
    """
    if not re.fullmatch(NAME, name, re.ASCII):
        raise JobgenError(
            f"the host {shown(name)}: a name begins with a letter or digit, and has only these and . _ @ -"
        )
    return os.path.join(folder(), f"{name}.toml")


def names() -> list[str]:
    """Return the sorted names of the hosts."""
    try:
        found = os.listdir(folder())
    except OSError:
        return []
    return sorted(name[:-5] for name in found if name.endswith(".toml") and re.fullmatch(NAME, name))


def read(name: str) -> HostFile:
    """Return what is known of a host.

    Raises:
        JobgenError: there is no such host, or something in its file is wrong.
    """
    path = path_of(name)
    if not os.path.exists(path):
        known = nearest(name, names())
        raise JobgenError(f"there is no host {shown(name)}{known}; jobgen host add {name} asks it once")
    data = decode(read_text(path, f"the host file {shown(path)}"), path)
    try:
        file = msgspec.convert(data, HostFile)
    except msgspec.ValidationError as error:
        raise JobgenError(f"{path}: {error}; jobgen host add {name} writes it anew") from None
    if file.scheduler not in SCHEDULERS or not file.runs.startswith("/"):
        what = "scheduler" if file.scheduler not in SCHEDULERS else "runs"
        raise JobgenError(
            f"{path}: {what} is {shown(getattr(file, what))}; jobgen host add {name} writes it anew"
        )
    return file


def write(name: str, file: HostFile) -> str:
    """Write the file of a host, and return its path.

    Raises:
        OSError: it cannot be written.
    """
    path = path_of(name)
    os.makedirs(folder(), exist_ok=True)
    fields = {key: value for key, value in msgspec.structs.asdict(file).items() if value is not None}
    variables = fields.pop("variables")
    lines = [f"# Written by jobgen host add {name}, which writes it anew."]
    lines += [f"{key} = {toml(value)}" for key, value in fields.items()]
    lines += ["", "[variables]", *(f"{key} = {toml(value)}" for key, value in variables.items())]
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as target:
        target.write("\n".join(lines) + "\n")
    os.replace(temporary, path)
    return path


def scheduler_of(name: str, scheduler: str | None) -> tuple[str, str | None, str | None]:
    """Return the scheduler of a host (a command of jobgen), its dialect (None if it has one only), and the
    site.

    Raises:
        JobgenError: there is no such host, or the user names another ``scheduler``.
    """
    file = read(name)
    row = SCHEDULERS[file.scheduler]
    if scheduler not in (None, row.command_name):
        raise JobgenError(f"the host {name} has {row.title}, and not {scheduler}: name {row.command_name}")
    return row.command_name, None if "dialect" in row.lacks else row.name, file.site


def host(name: str) -> SshHost:
    """Return the machine of a host file; see `read`."""
    file = read(name)
    return SshHost(name, file.ssh, file.user, file.uid, file.variables)
