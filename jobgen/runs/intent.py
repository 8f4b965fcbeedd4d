"""The record of a submission in the run directory: written before the scheduler's command runs, removed when
its job has been reported.

The first line holds what is needed to find the job later; the output of the command follows, then its exit
status, and a line that there is no job if the scheduler was busy and jobgen waits to submit it again. The
command has the locked file as its output: the lock is held until the command ends, also if jobgen is killed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from jobgen.runs import regular_file, run_directory

NAME = "submission"
UNUSED = "never-submitted"  # the name of the record when it is certain that there is no job
_TRIES = 40
_PAUSE = "jobgen: the scheduler was busy, and there is no job\n"
_END = re.compile(rf"\njobgen: status (-?\d+)\n({_PAUSE})?\Z")


class Intent(NamedTuple):
    """A submission. ``paths`` are the names of the run directory at that time; ``last_sign`` is
    the time of the last sign of the command, ``answer`` its output. ``has_failed``: its failure is known;
    ``in_pause``: there is no job, because the scheduler was busy."""

    directory: Path
    scheduler: str
    script_sha256: str
    began: float
    last_sign: float
    host: str
    lockable: bool
    mine: bool
    paths: tuple[str, ...]
    answer: str
    has_failed: bool
    in_pause: bool


def begin(directory: Path, scheduler: str, script_sha256: str, paths: Sequence[str] = ()) -> int:
    """Write the record to the disk, and return its locked file. ``paths`` are the names of the directory that
    the scheduler may record, if it is on another host.

    Raises:
        OSError: it cannot be written.
    """
    handle = os.open(directory / NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    try:
        answer = {
            "scheduler": scheduler,
            "script_sha256": script_sha256,
            "began": time.time(),
            "host": os.uname().nodename,
            "lockable": _lock(handle),
            "paths": paths or _paths(directory),
        }
        line = json.dumps(answer).encode("ascii") + b"\n"
        if os.write(handle, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
        for folder in (directory, directory.parent):
            _sync(folder)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _paths(directory: Path) -> list[str]:
    """Return the names that a scheduler may have recorded: PBS takes PWD, Slurm the physical path."""
    return list(dict.fromkeys((os.path.abspath(directory), os.path.realpath(directory))))


def _lock(handle: int) -> bool:
    """Lock a file; return False if the file system has no locks."""
    for _ in range(_TRIES):  # a reader may hold it for a moment
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:
            return False
    return False


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system can
            os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Keep other submissions out of a directory of runs, if its file system has locks."""
    handle = os.open(root, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read(directory: Path) -> Intent:
    """Return the record of a run; without one, that of a run whose submission never began."""
    head, _, answer = regular_file.text(directory / NAME).partition("\n")
    end = _END.search(answer)
    facts = run_directory.as_object(head)
    status = _stat(directory)
    paths = facts.get("paths")
    return Intent(
        directory,
        str(facts.get("scheduler", "")),
        str(facts.get("script_sha256", "")),
        run_directory.number(facts.get("began")) or status.st_mtime,
        status.st_mtime,
        str(facts.get("host", os.uname().nodename)),
        bool(facts.get("lockable", True)),
        status.st_uid == os.getuid(),
        tuple(map(str, paths)) if isinstance(paths, list) and paths else tuple(_paths(directory)),
        answer[: end.start()] if end else answer,
        bool(end and end[1] != "0"),
        bool(end and end[2]),
    )


def ended(text: str) -> tuple[str, int | None]:
    """Return the output of a command without the line of its status, and the status; None without one."""
    end = _END.search(text)
    return (text[: end.start()], int(end[1])) if end else (text, None)


def with_answer(intent: Intent, text: str, host: str) -> Intent:
    """Return a submission with what its command left on a host: it may still run there unless ``text`` has
    its status."""
    answer, status = ended(text)
    here = os.uname().nodename if status is not None else host
    return intent._replace(answer=answer, has_failed=bool(status), host=here, lockable=status is not None)


def _stat(directory: Path) -> os.stat_result:
    """Return the status of the record, or without one that of the run directory."""
    for path in (directory / NAME, directory):
        with suppress(OSError):
            return os.stat(path)
    return os.stat_result((0,) * 10)


def others(directory: Path, script_sha256: str) -> list[Path]:
    """Return the runs next to this one that have a record of the same script, by this user."""
    found = (Path(entry.path) for entry in os.scandir(directory.parent) if entry.name != directory.name)
    recorded = (path for path in found if os.path.exists(path / NAME))
    mine = (one for one in map(read, recorded) if one.mine and one.script_sha256 == script_sha256)
    return sorted(one.directory for one in mine)


def under_way(directory: Path) -> bool:
    """Return whether the submission of a run has not ended, by the lock of its record."""
    try:
        handle = os.open(directory / NAME, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def record_end(handle: int, status: int | None) -> None:
    """Record that the command has ended now, with a status if it is known."""
    with suppress(OSError):
        os.utime(handle)
        if status is not None:
            os.write(handle, f"\njobgen: status {status}\n".encode("ascii"))


def record_pause(handle: int) -> None:
    """Record that there is no job, because the scheduler is busy, and that the command will run again."""
    with suppress(OSError):
        os.write(handle, _PAUSE.encode("ascii"))


def begin_again(handle: int) -> None:
    """Remove the output of the command from the record, before the command runs again.

    Raises:
        OSError: it cannot be removed.
    """
    head, end, _ = os.pread(handle, os.fstat(handle).st_size, 0).partition(b"\n")
    os.ftruncate(handle, len(head + end))
    os.fsync(handle)


def record(directory: Path, job_id: str) -> None:
    """Write the id of the job, atomically, unless the job has begun and written it."""
    known = regular_file.text(directory / "job-id").strip()
    if known and not job_id.startswith(f"{known};"):  # the job itself does not know its cluster
        return
    temporary = directory / f".job-id-{os.getpid()}"
    with suppress(OSError):  # the job writes the same when it begins; until then it is found by its directory
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), directory.stat().st_mode & 0o640)
                file.write(f"{job_id}\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, directory / "job-id")
        finally:
            with suppress(OSError):
                os.unlink(temporary)


def finish(directory: Path) -> None:
    """Remove the record of a submission whose job has been reported, if the id is on the disk."""
    if os.path.exists(directory / "job-id"):
        with suppress(OSError), alone(directory.parent):  # another submission may look for it
            os.unlink(directory / NAME)


def give_up(directory: Path) -> None:
    """Record that a run has no job."""
    with suppress(OSError):
        if os.path.exists(directory / NAME):
            os.replace(directory / NAME, directory / UNUSED)
        else:
            (directory / UNUSED).touch()
