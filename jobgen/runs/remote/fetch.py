"""Files of a run that are fetched from its host when the user asks for them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import JobgenError, nearest, shown
from jobgen.hosts.calls import SchedulerError
from jobgen.runs.code.digests import sha256_of
from jobgen.runs.remote.mirror import GONE, LOGS, GoneError, is_growing, linked, may_have, pull_from
from jobgen.runs.remote.place import Place
from jobgen.runs.run_directory import METRICS

DEFAULT = (METRICS, "status.json", *LOGS, "report*.html", "*.ranks", "events", "statuses")
_NAMED_ONLY = ("code", "checkpoints")  # folders whose files are fetched only if a pattern begins with them
_AT_ONCE = 200  # files that one command checks


class RemoteFile(NamedTuple):
    """A file of a run at its host: the path in the directory of the run, and the size in bytes."""

    name: str
    size: int


def fetch(
    place: Place, patterns: Sequence[str], progress: Callable[[RemoteFile, int], object]
) -> list[RemoteFile]:
    """Fetch the files that match a pattern, or the small ones of each run, into the mirror of the run, and
    return them. What an earlier call has fetched of a file is not fetched again; ``progress`` gets each file
    and the bytes of it that are here.

    Raises:
        JobgenError: a pattern matches no file.
        UnreachableError: the host does not answer; the next call goes on there.
        SchedulerError: a file is not the one at the host.
    """
    known = listed(place)
    chosen = [file for file in known if any(_matches(file.name, one) for one in patterns or DEFAULT)]
    for pattern in patterns:
        if not any(_matches(file.name, pattern) for file in chosen):
            near = nearest(pattern, [file.name for file in known])
            raise JobgenError(f"{place.mirror.name} has no file {shown(pattern)} at {place.host_name}{near}")
    for at in range(0, len(chosen), _AT_ONCE):
        some = _lacking(place, chosen[at : at + _AT_ONCE])
        parts = {file: _part(place, file) for file in some}
        for file in some:
            _download(place, file, progress)
        for file in _different(place, parts):  # it was written anew, and not only at its end
            _part(place, file).unlink(missing_ok=True)
            _download(place, file, progress)
            if _different(place, {file: parts[file]}):
                raise SchedulerError(
                    f"{file.name} at {place.host_name} changes while it is fetched: try again"
                )
        for file in some:
            os.replace(parts[file], place.mirror / file.name)
    return chosen


def _lacking(place: Place, files: Sequence[RemoteFile]) -> list[RemoteFile]:
    """Return the files that are not here as they are at the host."""
    paths = {file: place.mirror / file.name for file in files}
    whole = {
        file: path for file, path in paths.items() if path.is_file() and path.stat().st_size == file.size
    }
    different = _different(place, whole)
    return [file for file in files if file not in whole or file in different]


def listed(place: Place) -> list[RemoteFile]:
    """Return the files of a run at its host, by name; those with a line break in their path are left out."""
    directory, tasks = shlex.quote(place.directory), "".join(f" ./{name}" for name in linked(place))
    find = f"find -H .{tasks} -type f ! -path '*\n*' -exec wc -c {{}} +"
    answer = place.host.run(f"cd {directory} || exit {GONE}; {find}")
    if answer.status == GONE:
        raise GoneError(f"{shown(place.directory)} is not at {place.host_name} any more")
    files = []
    for line in answer.out.decode("utf-8", "surrogateescape").split("\n"):
        size, _, name = line.lstrip().partition(" ")
        if name.startswith("./") and size.isdecimal() and may_have(name[2:]):
            files.append(RemoteFile(name[2:], int(size)))
    return sorted(files)


def _matches(name: str, pattern: str) -> bool:
    """Return whether a pattern names a file, by its path, by its name, or by a folder around it."""
    folder = name.split("/", 1)[0]
    if folder in _NAMED_ONLY and not pattern.startswith(folder):
        return False
    pattern = pattern.rstrip("/")
    return any(
        one == pattern or fnmatchcase(one, pattern)
        for one in (name, name.rsplit("/", 1)[-1], *_folders(name))
    )


def _folders(name: str) -> Iterator[str]:
    parts = name.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def _part(place: Place, file: RemoteFile) -> Path:
    """Return where a file is while it is not complete: growing ones are read from the beginning on."""
    path = place.mirror / file.name
    return path if is_growing(path.name) else path.with_name(f"{path.name}.part")


def _download(place: Place, file: RemoteFile, progress: Callable[[RemoteFile, int], object]) -> None:
    path = _part(place, file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    more = True
    while more:  # not to the end of a file that grows as fast as it is fetched
        progress(file, path.stat().st_size)
        more = pull_from(place, f"{place.directory}/{file.name}", path) and path.stat().st_size < file.size


def _different(place: Place, files: Mapping[RemoteFile, Path]) -> list[RemoteFile]:
    """Return the files whose content here, in these paths, is not that at the host, by SHA-256."""
    if not files:
        return []
    sizes = {file: path.stat().st_size for file, path in files.items()}
    lines = "".join(f"h {size} {shlex.quote(file.name)}\n" for file, size in sizes.items())
    script = f"""\
cd {shlex.quote(place.directory)} || exit
h() {{ head -c "$1" < "$2" | {{ sha256sum || shasum -a 256 || openssl dgst -sha256 -r; }} 2> /dev/null; }}
{lines}"""
    found = [line.split()[0] for line in place.host.run(script, patience=600).out.decode().splitlines()]
    if len(found) != len(files):
        raise SchedulerError(
            f"{place.host_name} has no sha256sum, shasum or openssl: nothing can be verified"
        )
    return [file for file, there in zip(files, found, strict=True) if _sha256(files[file]) != there]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return sha256_of(file)
