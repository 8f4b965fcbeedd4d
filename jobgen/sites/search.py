"""Search for site files by name, without a parser."""

from __future__ import annotations

import errno
import os
import stat

from jobgen.errors import JobgenError, near_ones, one_of, shown


def folders(beside: str | None = None) -> tuple[str, ...]:
    """Return the folders of site files in order: next to the job file, the user's own, those of
    JOBGEN_SITE_PATH, the packaged ones."""
    import jobgen.templates

    own = (beside,) if beside is not None else ()
    shared = (folder for folder in os.environ.get("JOBGEN_SITE_PATH", "").split(os.pathsep) if folder)
    return (
        *own,
        os.path.join(user_folder(), "sites"),
        *shared,
        os.path.join(jobgen.templates.__path__[0], "sites"),
    )


def user_folder() -> str:
    """Return the user's own folder of settings."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(home, "jobgen")


def machine_file(name: str) -> str:
    """Return the path of the facts that jobgen site refresh keeps for a site."""
    return os.path.join(user_folder(), "machines", f"{name}.machine.toml")


def names() -> list[str]:
    """Return the sorted names of the user's own and the packaged sites, without those next to a job file."""
    found = (name for folder in folders() for name in _listed(folder))
    return sorted({name[:-5] for name in found if name.endswith(".toml") and not name.startswith(".")})


def _listed(folder: str) -> list[str]:
    """Return the names in a folder; none if there is no such folder."""
    try:
        return os.listdir(folder)
    except OSError as error:
        _absent(error, folder)
    return []


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except ValueError:  # a NUL
        pass
    except OSError as error:
        _absent(error, path)
    return False


def _absent(error: OSError, path: str) -> None:
    """Return if there is no such file; refuse others: a packaged site would replace them silently."""
    if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP):
        raise JobgenError(f"site files: {shown(path)} cannot be read: {error.strerror}") from None


def find(name: str, origin: str, beside: str | None = None, after: str | None = None) -> str:
    """Return the path of a site file; with ``after``, the file of the same name that ``after`` hides.

    Raises:
        JobgenError: there is no site of that name.
    """
    if os.sep in name or name.endswith(".toml"):
        path = os.path.join(beside or "", name)
        if not os.path.isfile(path):
            raise JobgenError(f"{origin}: there is no file {shown(path)}")
        return path
    paths = [os.path.join(folder, f"{name}.toml") for folder in folders(beside)]
    if after is not None:
        paths = [path for path in paths if os.path.realpath(path) != os.path.realpath(after)]
    for path in paths:
        if _is_file(path):
            return path
    known = names()
    word = name.lower()
    near = sorted((one for one in known if word in one), key=lambda one: not one.startswith(word))
    near = near or near_ones(word, known)
    hint = f"did you mean {one_of(near[:_NEAR])}? " if near else ""
    raise JobgenError(f"{origin}: there is no such site: {hint}jobgen site list has all {len(known)}")


_NEAR = 5  # sites that an error names
