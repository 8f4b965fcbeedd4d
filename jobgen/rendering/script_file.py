"""Atomic writing of a script to a file."""

import os
import stat
import sys
import tempfile

from jobgen.errors import JobgenError, shown


def write_script(path: str, text: str, *, force: bool = False, executable: bool = True) -> None:
    """Write ``text`` to ``path`` atomically, as an executable file; overwrite a file only with ``force``.

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
            if not force:
                raise JobgenError(f"{option}: the file already exists; --force overwrites it")
        _replace(target, text, (0o777 if executable else 0o666) & ~umask(), force)
    except FileExistsError:
        raise JobgenError(f"{option}: the file already exists; --force overwrites it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise JobgenError(f"{option}: cannot be written: {reason}") from None


def _replace(target: str, text: str, mode: int, force: bool) -> None:
    """Write a temporary file, then rename it; without ``force``, first create the name exclusively."""
    handle, temporary = tempfile.mkstemp(prefix=".jobgen-", dir=os.path.dirname(target))
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
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
