"""The mirror of a run directory: what is new at the host is fetched before it is read here.

A look (`refresh`) costs one command of ssh for all runs of a host. It fetches the small files that hold the
state of a run, what was added to its metrics, and the names of its logs; their content is fetched when
somebody reads it (`pull`).
"""

from __future__ import annotations

import io
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.hosts.calls import SchedulerError
from jobgen.runs import intent, regular_file
from jobgen.runs.remote import place as places
from jobgen.runs.remote.place import Place
from jobgen.runs.run_directory import METRICS, PARTS, PLAN, SCRIPT, START

AS_OF = "as-of"  # its time is that of the last look
LAST_STATE = "last-state.json"  # what the last look found
_CLOSED = "closed"  # nothing changes any more
_OWN = (  # files of the mirror itself
    *(AS_OF, LAST_STATE, _CLOSED, intent.NAME, intent.UNUSED, PLAN, SCRIPT, START),
)
CHUNK = 4 << 20  # bytes of a file that one command fetches: what a broken connection loses
GONE = 3  # the exit status of a script whose file does not exist
_SMALL = 256  # blocks of 512 bytes
_STATE = (
    *("job-id", "cancelled", "status.json", "hosts", "hostfile", "bad-hosts", "sweep.json", "saved-step"),
    *("events", "control", "statuses", "*.ranks"),
)
LOGS = ("*.log", "log", "*.o[0-9]*", "*.devices")
_PRUNED = ("code", "checkpoints", ".submission")  # folders that hold none of these
_SAFE = re.compile(r"(?:[\w.%+=@:,-]+/)*[\w.%+=@:,-]+")
_FRAME = re.compile(rb"(grow|log) (\d+) (\d+) ([^\n]+)\n")


class GoneError(JobgenError):
    """A file is not at the host any more."""


class _Frame(NamedTuple):
    kind: bytes
    at: int
    size: int
    name: str


def refresh(at: Mapping[Path, Place]) -> dict[Path, JobgenError]:
    """Fetch what is new of the runs at these places, and return the errors of those that are not reached."""
    by_host: dict[str, list[Place]] = {}
    for place in dict.fromkeys(at.values()):
        if (place.mirror / _CLOSED).exists():
            continue
        by_host.setdefault(place.host_name, []).append(place)
    lost: dict[str, JobgenError] = {}
    for name, some in by_host.items():
        try:
            _look(some)
        except JobgenError as error:
            lost[name] = error
    return {run: lost[place.host_name] for run, place in at.items() if place.host_name in lost}


def complete(runs: Sequence[Path]) -> dict[Path, JobgenError]:
    """Fetch what is new of runs, with all of the metrics; see `refresh`."""
    at = places.of_all(runs)
    while True:
        before = _sizes(at)
        lost = refresh(at)
        if lost or _sizes(at) == before:
            return lost


def _sizes(runs: Iterable[Path]) -> list[int]:
    return [path.stat().st_size for run in runs for path in run.glob(f"**/{METRICS}")]


def _look(some: Sequence[Place]) -> None:
    """Fetch what is new of the runs of one host."""
    answer = some[0].host.run("".join(map(_metrics_script, some)) + _files_script(some))
    rest = memoryview(answer.out)
    while found := _FRAME.match(rest):
        frame = _Frame(found[1], int(found[2]), int(found[3]), os.fsdecode(found[4]))
        rest = rest[found.end() :]
        path = _path(frame.name, some)
        if frame.kind == b"grow":
            data, rest = rest[: frame.size], rest[frame.size + 1 :]
            if path:
                _grow(path, frame.at, data)
        elif path and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
    _unpack(bytes(rest), some)
    for place in some:
        (place.mirror / AS_OF).touch()


def _metrics_script(place: Place) -> str:
    """Return the commands that print what was added to the metrics of a run."""
    files = (path for part in PARTS for path in place.mirror.glob(f"{part}{METRICS}") if path.is_file())
    sizes = {place.there(path): path.stat().st_size for path in files}
    known = "".join(f"{shlex.quote(name)}) k={size} ;; " for name, size in sizes.items())
    directory = shlex.quote(place.directory)
    metrics = " ".join(f"{directory}/{part}{METRICS}" for part in PARTS)
    return f"""\
for f in {metrics}; do
  case $f in *'
'*) continue ;; esac
  [ -f "$f" ] || continue
  n=$(wc -c < "$f"); k=0
  case $f in {known}*) ;; esac
  [ "$n" -ge "$k" ] || k=0
  n=$((n - k)); [ "$n" -le {CHUNK} ] || n={CHUNK}
  printf 'grow %d %d %s\\n' "$k" "$n" "$f"; tail -c +$((k + 1)) < "$f" | head -c "$n"; echo
done
"""


def _files_script(some: Sequence[Place]) -> str:
    """Return the commands that print the names of the logs of runs, and their small files as an archive, if
    there is any. Each command is one for all runs: processes are the costs of a look."""
    logs, state = (" -o ".join(f"-name {shlex.quote(name)}" for name in names) for names in (LOGS, _STATE))
    paths = (f"{place.directory.lstrip('/')}/{name}" for place in some for name in ("", *linked(place)))
    folders = " ".join(shlex.quote(path.rstrip("/")) for path in paths)
    return f"""\
cd / || exit
find -H {folders} {_pruned()} -o -type f ! -path '*
*' \\( {logs} \\) -exec printf 'log 0 0 /%s\\n' {{}} + 2> /dev/null
find -H {folders} {_pruned()} -o -type f -size -{_SMALL} \\( {state} \\) -exec tar cf - {{}} + 2> /dev/null
:
"""


def linked(place: Place) -> list[str]:
    """Return the names of the tasks of a run that go on in the directories of an earlier run."""
    return sorted(path.name for path in place.mirror.glob("task-*") if path.is_symlink())


def _pruned() -> str:
    return "-type d \\( " + " -o ".join(f"-name {name}" for name in _PRUNED) + " \\) -prune"


def _path(name: str, some: Sequence[Place]) -> Path | None:
    """Return the path in the mirror of a file of one of the runs; None for a name that is not safe, or not
    one of the files that a look fetches."""
    base = name.rsplit("/", 1)[-1]
    if not any(fnmatchcase(base, pattern) for pattern in (METRICS, *_STATE, *LOGS)):
        return None
    for place in some:
        inside = name.removeprefix(f"{place.directory}/")
        if inside != name and _SAFE.fullmatch(inside) and may_have(inside):
            return place.mirror / inside
    return None


def may_have(name: str) -> bool:
    """Return whether a mirror may have a file of the host with this path in the directory of the run."""
    base = name.rsplit("/", 1)[-1]
    is_own = name in _OWN or base == places.NAME or fnmatchcase(base, _hole_file(Path("*")).name)
    return not is_own and ".." not in name.split("/")


def _grow(path: Path, at: int, data: memoryview | bytes) -> None:
    """Write what was added to a file; all of it if the file has become shorter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.truncate(at)
        file.seek(at)
        file.write(data)


def _unpack(data: bytes, some: Sequence[Place]) -> None:
    """Write the files of archives that follow each other."""
    if not data:
        return
    import tarfile  # late: only runs on hosts need it

    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:", ignore_zeros=True) as archive:
            for member in archive:
                path = _path(f"/{member.name}", some) if member.isreg() else None
                source = archive.extractfile(member) if path else None
                if path and source:
                    _replace(path, source.read(), member.mtime)
    except tarfile.TarError as error:
        raise JobgenError(f"the archive of {some[0].host_name} cannot be read: {error}") from None


def _replace(path: Path, data: bytes, mtime: float) -> None:
    """Write a file with its time, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.utime(temporary, (mtime, mtime))
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def pull(path: Path) -> bool:
    """Fetch what was added to a growing file of a mirror, at most CHUNK bytes; return whether there is more.

    Raises:
        GoneError: the file was removed at the host.
        UnreachableError: the host does not answer; what was fetched before stays.
    """
    place = places.of_file(path)
    return place is not None and pull_from(place, place.there(path), path)


def pull_from(place: Place, name: str, path: Path) -> bool:
    """Fetch what ``path`` lacks of a file at a host; see `pull`."""
    at = path.stat().st_size if path.is_file() else 0
    there = shlex.quote(name)
    script = f"""\
[ -f {there} ] || exit {GONE}
n=$(wc -c < {there}); k={at}
[ "$n" -ge "$k" ] || k=0
printf '%d %d\\n' "$k" "$n"; tail -c +$((k + 1)) < {there} | head -c {CHUNK}
"""
    answer = place.host.run(script, patience=600)
    if answer.status == GONE:
        raise GoneError(f"{shown(name)} is not at {place.host_name} any more")
    head, newline, data = answer.out.partition(b"\n")
    if not newline:
        return False
    start, size = map(int, head.split())
    _grow(path, start, data)
    return start + len(data) < size


def is_growing(name: str) -> bool:
    """Return whether a file is one that is only written at its end."""
    return name == METRICS or any(fnmatchcase(name, pattern) for pattern in LOGS)


def pull_all(path: Path) -> None:
    """Fetch a growing file of a mirror to its present end."""
    if hole(path):
        path.write_bytes(b"")
        _hole_file(path).unlink()
    while pull(path):
        pass


def pull_end(path: Path) -> None:
    """Fetch the end of a growing file of a mirror, which may be enough: of a long file of which nothing is
    here, the last CHUNK bytes, behind a hole."""
    place = places.of_file(path)
    if place is None:
        return
    if not path.is_file() or path.stat().st_size == 0:
        there = shlex.quote(place.there(path))
        size = int(place.host.run(f"[ ! -f {there} ] || wc -c < {there}").out or 0)
        if size > CHUNK:
            path.parent.mkdir(parents=True, exist_ok=True)
            _hole_file(path).write_text(str(size - CHUNK), encoding="ascii")
            _grow(path, size - CHUNK, b"")
    while pull(path):
        pass


def try_end(path: Path) -> None:
    """Fetch the end of a file as `pull_end`; nothing if the host does not answer, or has it no more."""
    with suppress(SchedulerError, GoneError):
        pull_end(path)


def hole(path: Path) -> int:
    """Return how many bytes at the beginning of a file of a mirror are not here."""
    return int(regular_file.text(_hole_file(path)) or 0)


def _hole_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.hole")


def close(place: Place, run: Path) -> None:
    """Record that nothing of a run changes any more: no look is needed."""
    if place.mirror == run:
        with suppress(OSError):
            (run / _CLOSED).touch()


def as_of(place: Place) -> float:
    """Return when a mirror was last looked at; 0 if it never was."""
    with suppress(OSError):
        return (place.mirror / AS_OF).stat().st_mtime
    return 0.0
