"""The files of the code on this machine, before anything is known of their contents."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.runs.code import git, kinds

IGNORE = ".jobgenignore"
_ELSEWHERE = "elsewhere"  # a folder that is a link, or does not exist: what git knows in it was deleted
_SPECIAL = "sockets, pipes and devices"


class Entry(NamedTuple):
    """A file, a link or an empty folder: its path in the code, that of its content, and its status."""

    path: str
    source: str
    status: os.stat_result


class Listing(NamedTuple):
    """The entries by path. ``named`` are the paths that the user names; see `selection.Selection`."""

    root: str
    start: str
    entries: tuple[Entry, ...]
    named: frozenset[str]
    stays: dict[str, tuple[str, ...]]
    checkout: bool


def listing(start: str, paths: Sequence[str], runs: str) -> Listing:
    """Return what travels for a job of the folder ``start``, and in any case ``paths``.

    Raises:
        JobgenError: git fails, a folder cannot be read, or a path cannot travel.
    """
    start = os.path.realpath(start)
    top = git.top_of(start)
    root = top or start
    named = [_named(root, start, path) for path in paths]
    walk = _Walk(root, os.path.relpath(os.path.realpath(os.path.join(start, runs)), root))
    try:
        found = {entry.path: entry for entry in (walk.checkout("") if top else walk.plain(""))}
        found |= {entry.path: entry for path in named for entry in walk.below(path)}
    except OSError as error:
        place = shown(os.fsdecode(error.filename or root))
        raise JobgenError(f"the code in {place} cannot be read: {error.strerror}") from None
    entries = tuple(found[path] for path in sorted(found, key=os.fsencode))
    at = os.path.relpath(start, root)
    if at != "." and not any(path == at or path.startswith(f"{at}/") for path in found):
        raise JobgenError(f"nothing in {shown(start)} travels: git ignores it all; --upload . sends it")
    stays = {kind: tuple(sorted(some)) for kind, some in walk.stays.items()}
    return Listing(root, start, entries, frozenset(named), stays, top is not None)


def _named(root: str, start: str, path: str) -> str:
    """Return a path of ``--upload`` as one in the code; refuse one outside of it, or an environment."""
    folder, name = os.path.split(os.path.normpath(os.path.join(start, path)))
    full = os.path.join(os.path.realpath(folder), name)
    place = os.path.relpath(full, root)
    if not os.path.exists(full):
        raise JobgenError(f"--upload {shown(path)}: there is no such file or directory")
    if place == ".." or place.startswith("../"):
        raise JobgenError(f"--upload {shown(path)}: it lies outside of the code, which is {shown(root)}")
    if os.path.isdir(full) and kinds.of_folder(full) == "environments":
        raise JobgenError(f"--upload {shown(path)}: an environment works only where it was made")
    return place


class _Walk:
    """The search in a folder; ``stays`` has what never travels, by its kind."""

    def __init__(self, root: str, runs: str) -> None:
        self._root, self._runs = root, runs
        self._kinds = {"": ""}
        self.stays: dict[str, list[str]] = {}

    def checkout(self, folder: str) -> Iterator[Entry]:
        """Yield what git knows or does not ignore in a checkout and in those that lie in it, without what the
        files .jobgenignore exclude."""
        yield from self._without_excluded(folder, list(self._known(folder)))

    def _known(self, folder: str) -> Iterator[Entry]:
        for path in git.files(os.path.join(self._root, folder)):
            inner = os.path.join(folder, path.rstrip("/"))
            entry = self._entry(inner)
            if entry is None:
                continue
            if not stat.S_ISDIR(entry.status.st_mode):
                yield entry
            elif not self._kind(inner):
                own = git.top_of(entry.source) == entry.source
                yield from self.checkout(inner) if own else self.plain(inner)

    def plain(self, folder: str) -> Iterator[Entry]:
        """Yield all in a folder but what the files .jobgenignore exclude."""
        yield from self._without_excluded(folder, list(self._all(folder)))

    def _without_excluded(self, folder: str, entries: Sequence[Entry]) -> Iterator[Entry]:
        if not any(os.path.basename(entry.path) == IGNORE for entry in entries):
            yield from entries
            return
        top = os.path.join(self._root, folder)
        excluded = {os.path.join(folder, path) for path in git.ignored(top, IGNORE)}
        for entry in entries:
            parents = _parents(entry.path)
            inside = not excluded.isdisjoint(f"{parent}/" for parent in parents)
            if not inside and not excluded & {entry.path, f"{entry.path}/"}:
                yield entry

    def _all(self, folder: str) -> Iterator[Entry]:
        empty = True
        for name in sorted(os.listdir(os.path.join(self._root, folder))):
            empty = False
            entry = self._entry(os.path.join(folder, name))
            if entry is not None and not stat.S_ISDIR(entry.status.st_mode):
                yield entry
            elif entry is not None and not self._kind(entry.path):
                yield from self._all(entry.path)
        if empty and folder:
            yield self._folder(folder)

    def below(self, path: str) -> Iterator[Entry]:
        """Yield all in a path that the user names. A link is what it points to."""
        source = os.path.join(self._root, path)
        status = os.stat(source)
        if not stat.S_ISDIR(status.st_mode):
            if not stat.S_ISREG(status.st_mode):
                raise JobgenError(f"--upload {shown(path)}: it is no file or directory")
            yield Entry(path, os.path.realpath(source), status)
            return
        if path != ".":
            yield Entry(path, source, status)
        for inner in sorted(os.listdir(source)):
            if inner in kinds.UNSAID:
                continue
            one = os.path.normpath(os.path.join(path, inner))
            about = os.lstat(os.path.join(source, inner))
            if stat.S_ISDIR(about.st_mode):
                kind = kinds.of_folder(os.path.join(source, inner))
                if kind != "environments":
                    yield from self.below(one)
            elif stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode):
                yield Entry(one, os.path.join(source, inner), about)

    def _folder(self, path: str) -> Entry:
        source = os.path.join(self._root, path)
        return Entry(path, source, os.lstat(source))

    def _entry(self, path: str) -> Entry | None:
        """Return what lies at a path; None if it does not exist, or never travels."""
        if self._kind(os.path.dirname(path)) or os.path.basename(path) in kinds.UNSAID:
            return None
        source = os.path.join(self._root, path)
        try:
            status = os.lstat(source)
        except FileNotFoundError:
            return None
        kind = ""
        if stat.S_ISREG(status.st_mode):
            kind = "checkpoints" if kinds.is_checkpoint(os.path.basename(path)) else ""
        elif not stat.S_ISDIR(status.st_mode) and not stat.S_ISLNK(status.st_mode):
            kind = _SPECIAL
        if kind:
            self.stays.setdefault(kind, []).append(path)
            return None
        return Entry(path, source, status)

    def _kind(self, folder: str) -> str:
        """Return what a folder, or one around it, is that never travels; empty if it is code."""
        known = self._kinds.get(folder)
        if known is None:
            known = self._kind(os.path.dirname(folder)) or self._own_kind(folder)
            self._kinds[folder] = known
        return known

    def _own_kind(self, folder: str) -> str:
        path, name = os.path.join(self._root, folder), os.path.basename(folder)
        if os.path.islink(path) or not os.path.isdir(path):
            return _ELSEWHERE
        if name in kinds.UNSAID:
            return name
        kind = "runs" if folder == self._runs else kinds.of_folder(path)
        if kind:
            self.stays.setdefault(kind, []).append(f"{folder}/")
        return kind


def _parents(path: str) -> Iterator[str]:
    while path := os.path.dirname(path):
        yield path
