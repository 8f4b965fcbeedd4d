"""Directories of files that one process of a host writes, and what killed processes have left of them.

A process that writes or reads such a directory holds a lock on it, which ends with the process. A directory
that no process has locked is left from a killed one. Where the file system has no locks, it stays.
"""

import fcntl
import os
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TRIES = 9


class Use:
    """A directory that this process uses: `remove_unused` of other processes leaves it."""

    def __init__(self, folder: Path) -> None:
        """Raise FileNotFoundError if there is no such directory."""
        self.folder = folder
        self._descriptor = os.open(folder, os.O_RDONLY)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        if not _has_name(self._descriptor, folder):  # it was removed before it was locked
            self.end()
            raise FileNotFoundError(f"{folder} was removed")

    def end(self) -> None:
        os.close(self._descriptor)

    def remove(self) -> None:
        """Remove the directory, which other processes have opened or do not need."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.end()


def of_user() -> Path:
    """Return a directory in /tmp for all processes of this user.

    In /tmp anybody can take a name, so that it is the first of TRIES that no other user has taken, or else
    one for this process alone.
    """
    for end in ("", *(f"-{number}" for number in range(1, TRIES))):
        folder = Path(tempfile.gettempdir(), f"jobgen-{os.getuid()}{end}")
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            return folder
        facts = folder.lstat()
        if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
            return folder
    return Path(tempfile.mkdtemp(prefix="jobgen-"))


def temporary(name: str) -> Use:
    """Return a new directory, whose name begins with `name`. Those that no process uses are removed."""
    host = of_user()
    remove_unused(host, f"{name}*")
    while True:
        with suppress(FileNotFoundError):  # another process has removed it before it was locked
            return Use(Path(tempfile.mkdtemp(prefix=name, dir=host)))


@contextmanager
def draft(folder: Path) -> Iterator[Path]:
    """Yield a new directory beside `folder`, to be renamed to it. It is gone at the end of the context.

    Its permissions are those of the user's umask, so that a group can share it. The drafts of killed
    processes of this host are removed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_unused(folder.parent, f".{_draft('*', '*')}")
    use = None
    while use is None:
        place = folder.with_name(f".{_draft(folder.name, secrets.token_hex(4))}")
        place.mkdir()
        with suppress(FileNotFoundError):  # another process has removed it before it was locked
            use = Use(place)
    try:
        yield use.folder
    finally:
        use.remove()


def _draft(name: str, token: str) -> str:
    return f"{name}.{socket.gethostname()}.{token}.writing"


def remove_unused(parent: Path, pattern: str) -> None:
    """Remove the directories, and the locks of `alone`, that fit the pattern and that no process uses."""
    for each in parent.glob(pattern):
        with suppress(OSError):  # in use, of another user, or already removed
            if each.suffix == ".lock":
                with alone(each, wait=False):
                    continue
            descriptor = os.open(each, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(each, ignore_errors=True)
            finally:
                os.close(descriptor)


@contextmanager
def alone(file: Path, wait: bool = True) -> Iterator[None]:
    """Let one process of the host after the other into the context.

    file: the lock, which is removed at the end; wait: otherwise raise BlockingIOError if a process is in it
    """
    while True:
        with open(file, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if not _has_name(lock.fileno(), file):
                continue  # the process before has removed it
            try:
                yield
            finally:
                file.unlink(missing_ok=True)
            return


def _has_name(descriptor: int, path: Path) -> bool:
    """Return whether an open file has this name; other processes may remove and make it at any time."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
