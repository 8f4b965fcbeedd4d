"""The host of a run, and the directory of the run there: host.json in the run directory here."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import JobgenError
from jobgen.hosts.host import HERE, Host
from jobgen.runs import regular_file, run_directory

if TYPE_CHECKING:
    from jobgen.hosts.ssh import SshHost
    from jobgen.runs.code.selection import Upload

NAME = "host.json"
_OUTSIDE = "host-files"  # in the mirror: files of the host that are not in the directory of the run
_hosts: dict[str, SshHost] = {}


class Place(NamedTuple):
    """A run on a host: the mirror here, the name of the host, and the absolute directory there."""

    mirror: Path
    host_name: str
    directory: str

    @property
    def host(self) -> SshHost:
        """The host; its connection is the same for all runs.

        Raises:
            JobgenError: the host has been removed here.
        """
        return host_named(self.host_name)

    def there(self, path: Path) -> str:
        """Return the path there of a file of the mirror."""
        parts = path.absolute().relative_to(self.mirror.absolute()).parts
        if parts[:1] == (_OUTSIDE,):
            return "/" + "/".join(parts[1:])
        return "/".join((self.directory, *parts))

    def here(self, path: str) -> Path:
        """Return the path in the mirror of a file of the host."""
        pure = PurePosixPath(os.path.normpath(path))  # the job may have written any path
        if pure.is_relative_to(self.directory):
            return self.mirror / pure.relative_to(self.directory)
        return self.mirror.joinpath(_OUTSIDE, *(part for part in pure.parts if part not in ("/", "..")))


def write(run: Path, host: str, directory: str, upload: Upload | None) -> Place:
    """Record the host of a new run, and the options on its code.

    Raises:
        OSError: the file cannot be written.
    """
    facts = {"host": host, "directory": directory, "upload": upload and upload._asdict()}
    (run / NAME).write_text(json.dumps(facts) + "\n", encoding="utf-8")
    return Place(run, host, directory)


def upload_of(run: Path) -> Upload | None:
    """Return the options on the code of a run; None if no code travels."""
    from jobgen.runs.code.selection import Upload  # late: few commands submit

    facts = run_directory.as_dict(run_directory.as_object(regular_file.text(run / NAME)).get("upload"))
    try:
        return Upload(tuple(map(str, facts["paths"])), int(facts["limit"]))
    except (KeyError, TypeError, ValueError):
        return None


def of(run: Path) -> Place | None:
    """Return the host of a run, or of the array that it is a task of; None for a run of this machine."""
    for mirror in (run, run.parent) if run.name.startswith("task-") else (run,):
        facts = run_directory.as_object(regular_file.text(mirror / NAME))
        name, directory = facts.get("host"), facts.get("directory")
        if isinstance(name, str) and isinstance(directory, str) and directory.startswith("/"):
            return Place(mirror, name, directory)
    return None


def of_all(runs: Iterable[Path]) -> dict[Path, Place]:
    """Return the runs that are on hosts."""
    return {run: place for run in runs if (place := of(run))}


def name_of(run: Path) -> str:
    """Return the name of the host of a run; that of this machine is empty."""
    place = of(run)
    return place.host_name if place else ""


def host_named(name: str) -> SshHost:
    """Return a host by its name; see sites/host_file.py."""
    if name not in _hosts:
        from jobgen.sites.host_file import host

        _hosts[name] = host(name)
    return _hosts[name]


def check_kept(run: Path, place: Place | None) -> None:
    """Check that a run is still here, while a command waits for it.

    Raises:
        JobgenError: its directory was removed.
    """
    if not run.is_dir():
        job = f"; its job goes on at {place.host_name}, in {place.directory}" if place else ""
        raise JobgenError(f"{run} was removed meanwhile{job}")


def host_of(run: Path) -> Host:
    """Return the machine of a run."""
    place = of(run)
    return place.host if place else HERE


def touch(path: Path) -> None:
    """Make an empty file of a run, where the run is.

    Raises:
        JobgenError: it cannot be written.
        UnreachableError: the host does not answer.
    """
    if place := of_file(path):
        _run(place, f": >> {shlex.quote(place.there(path))}", path)
    try:
        path.touch()
    except OSError as error:
        raise JobgenError(f"{path} cannot be written: {error.strerror}") from None


def append(path: Path, text: str) -> None:
    """Append text to a file of a run that others read, where the run is.

    Raises:
        JobgenError: it cannot be written.
        UnreachableError: the host does not answer.
    """
    if place := of_file(path):
        _run(place, f"printf %s {shlex.quote(text)} >> {shlex.quote(place.there(path))}", path)
        return
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise JobgenError(f"{path} cannot be written: {error.strerror}") from None


def of_file(path: Path) -> Place | None:
    """Return the host of the run that a file belongs to."""
    return next((place for folder in path.parents if (place := of(folder))), None)


def _run(place: Place, script: str, path: Path) -> None:
    gone = "echo the directory of the run is gone >&2; exit 1"
    answer = place.host.run(f"[ -d {shlex.quote(place.directory)} ] || {{ {gone}; }}\n{script}")
    if answer.status:
        raise JobgenError(f"{place.there(path)} at {place.host_name} cannot be written: {answer.err.strip()}")
