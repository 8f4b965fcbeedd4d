"""Which files travel: in a checkout those that git knows or does not ignore, else all but .jobgenignore's."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobgen.errors import JobgenError, counted, shown
from jobgen.runs.code import kinds
from jobgen.runs.code.digests import Count, Progress, digests
from jobgen.runs.code.listing import Entry, listing

LIMIT = 200 << 20  # bytes
_LARGEST = 5  # files that the message on the limit shows


class Upload(NamedTuple):
    """The options of a submission on its code: ``paths``, relative to the folder of submission, travel in any
    case; ``limit`` is in bytes."""

    paths: tuple[str, ...] = ()
    limit: int = LIMIT


class File(NamedTuple):
    """A file that travels: its path in the code, and that of its content here."""

    path: str
    source: str
    size: int
    executable: bool
    sha256: str


class Selection(NamedTuple):
    """What travels from ``root``; the program starts in its folder ``start``.

    ``links`` have their targets, ``folders`` are those without files. ``stays`` has the paths that stay here,
    by what they are, in the plural. ``checkout``: git has listed the files.
    """

    root: str
    start: str
    files: tuple[File, ...]
    links: tuple[tuple[str, str], ...]
    folders: tuple[str, ...]
    stays: dict[str, tuple[str, ...]]
    checkout: bool

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    def has(self, path: str) -> bool:
        """Return whether a path, relative to the folder of submission, exists in the code."""
        place = os.path.normpath(os.path.join(self.start, path))
        paths = (*(file.path for file in self.files), *(path for path, _ in self.links), *self.folders)
        return place == "." or any(one == place or one.startswith(f"{place}/") for one in paths)


def selection(
    start: str, settings: Upload, runs: str = "runs", progress: Progress | None = None
) -> Selection:
    """Return what travels for a job that is submitted from the folder ``start``, whose runs are in ``runs``.

    Raises:
        JobgenError: files look like secrets, links point elsewhere, there is too much, or git fails.
    """
    code = listing(start, settings.paths, runs)
    at = os.path.relpath(code.start, code.root)
    regular = [entry for entry in code.entries if stat.S_ISREG(entry.status.st_mode)]
    links = [entry for entry in code.entries if stat.S_ISLNK(entry.status.st_mode)]
    folders = tuple(entry.path for entry in code.entries if stat.S_ISDIR(entry.status.st_mode))
    targets = _targets(code.root, links)
    _check_limit(code.root, regular, settings.limit)
    unnamed = [entry for entry in regular if entry.path not in code.named]
    _check_secrets(at, (one.path for one in unnamed if kinds.is_secret(os.path.basename(one.path))))
    found = digests(code.root, regular, progress or Count())
    keys = {entry.path for entry, digest in zip(regular, found, strict=True) if digest.key}
    _check_secrets(at, (one.path for one in unnamed if one.path in keys))
    files = (
        File(one.path, one.source, one.status.st_size, bool(one.status.st_mode & stat.S_IXUSR), digest.sha256)
        for one, digest in zip(regular, found, strict=True)
    )
    return Selection(code.root, at, tuple(files), targets, folders, code.stays, code.checkout)


def remarks(some: Selection) -> list[str]:
    """Return the sentences on a selection that the user reads before it is sent."""
    size = f"{counted(len(some.files), 'file')}, {amount(some.size)}"
    how = "what git does not ignore" if some.checkout else "all that .jobgenignore does not exclude"
    lines = [f"the code in {shown(some.root)} is sent, {how}: {size}"]
    for kind, paths in sorted(some.stays.items()):
        more = f" and {len(paths) - _LARGEST} more" if len(paths) > _LARGEST else ""
        lines.append(f"{kind} are not sent: {_list(paths[:_LARGEST])}{more}")
    return lines


def amount(size: float) -> str:
    """Return a number of bytes with a unit of which 1024 make the next."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _targets(root: str, links: Sequence[Entry]) -> tuple[tuple[str, str], ...]:
    """Return the links with their targets in the code; one that holds only here becomes a relative one."""
    found, outside = [], []
    for path, source, _ in links:
        target, folder = os.readlink(source), os.path.dirname(path)
        real = os.path.relpath(os.path.realpath(source), root)
        if _is_outside(real):
            outside.append(f"{shown(path)} (to {shown(target)})")
        elif os.path.isabs(target) or _is_outside(os.path.normpath(os.path.join(folder, target))):
            target = os.path.relpath(real, os.path.relpath(os.path.realpath(os.path.dirname(source)), root))
        found.append((path, target))
    if outside:
        raise JobgenError(
            f"links point out of the code: {', '.join(outside)}; --upload LINK sends what a link points to, "
            "and an ignored link stays here"
        )
    return tuple(found)


def _is_outside(path: str) -> bool:
    return path == ".." or path.startswith("../")


def _check_limit(root: str, regular: Sequence[Entry], limit: int) -> None:
    """Refuse files that are too large together."""
    size = sum(entry.status.st_size for entry in regular)
    if size <= limit:
        return
    largest = sorted(regular, key=lambda entry: entry.status.st_size, reverse=True)[:_LARGEST]
    names = ", ".join(f"{shown(entry.path)} ({amount(entry.status.st_size)})" for entry in largest)
    raise JobgenError(
        f"the code in {shown(root)} has {amount(size)} in {counted(len(regular), 'file')}, more than "
        f"--upload-limit allows ({amount(limit)}); the largest files are {names}: put data where the host "
        "has it, let git or .jobgenignore ignore it, or raise --upload-limit"
    )


def _check_secrets(start: str, paths: Iterable[str]) -> None:
    """Refuse files that look like secrets; the message names all."""
    if names := [os.path.relpath(path, start) for path in paths]:
        raise JobgenError(
            f"{_list(names)} {'looks' if len(names) == 1 else 'look'} like a secret: --upload FILE sends "
            "such a file, and an ignored file stays here"
        )


def _list(paths: Iterable[str]) -> str:
    return ", ".join(map(shown, paths))
