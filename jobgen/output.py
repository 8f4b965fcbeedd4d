"""Writes a script to a file: whole or not at all."""

from __future__ import annotations

import os
import tempfile

from jobgen.errors import JobgenError, shown


def write_script(path: str, text: str, *, force: bool = False, executable: bool = True) -> None:
    """Write ``text`` to ``path`` with the run bit, atomically; an existing file only with ``force``.

    Raises:
        JobgenError: the file is there already, or cannot be written.
    """
    folder = os.path.dirname(path) or "."
    try:
        handle, temporary = tempfile.mkstemp(prefix=".jobgen-", dir=folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, (0o777 if executable else 0o666) & ~_umask())
            if force:
                os.replace(temporary, path)
            else:
                os.link(temporary, path)  # fails, in one step, where the file is there
        finally:
            if os.path.lexists(temporary):
                os.unlink(temporary)
    except FileExistsError:
        raise JobgenError(
            f"-o {shown(path)} (command line): the file is there already; --force overwrites it"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise JobgenError(f"-o {shown(path)} (command line): cannot be written: {reason}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
