"""Atomic writing of scripts to files."""

import os
import stat
import sys
import tempfile

from jobgen.errors import JobgenError, shown


def write_script(path: str, text: str, *, force: bool = False, executable: bool = True) -> None:
    """Write ``text`` to ``path`` atomically; overwrite a file of another text only with ``force``.

    An executable file is a script, which may contain secrets: only the user can read it, whatever the umask.
    The path ``-`` is standard output.

    Raises:
        JobgenError: the file exists already, is not a regular file, or cannot be written.
    """
    if path == "-":
        sys.stdout.write(text)
        return
    option = f"-o {shown(path)} (command line)"
    target = os.path.realpath(path)  # a link is kept, and its file is written
    try:
        if os.path.exists(target):
            if not stat.S_ISREG(os.stat(target).st_mode):
                raise JobgenError(f"{option}: is not a regular file")
            if not force and _content(target) != text.encode():
                raise JobgenError(f"{option}: the file already exists; --force overwrites it")
            force = True  # also for the same text
        _replace(target, text.encode(), 0o700 if executable else 0o666 & ~umask(), force)
    except FileExistsError:
        raise JobgenError(f"{option}: the file already exists; --force overwrites it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise JobgenError(f"{option}: cannot be written: {reason}") from None


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def rewrite(path: str, content: bytes) -> None:
    """Replace the content of a file atomically; its mode stays.

    Raises:
        JobgenError: the file cannot be written.
    """
    target = os.path.realpath(path)
    try:
        _replace(target, content, stat.S_IMODE(os.stat(target).st_mode), force=True)
    except OSError as error:
        raise JobgenError(f"{shown(path)} (command line): cannot be written: {error.strerror}") from None


def _replace(target: str, content: bytes, mode: int, force: bool) -> None:
    """Write a temporary file, then rename it; without ``force``, first create the name exclusively."""
    handle, temporary = tempfile.mkstemp(prefix=".jobgen-", dir=os.path.dirname(target))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        if not force:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def umask() -> int:
    """Return the mask of file modes of this process."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
