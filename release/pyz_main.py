"""The start of jobgen.pyz: unpack the packages once into the user's cache, and run jobgen from there."""

import os
import sys

if sys.version_info < (3, 10):  # noqa: UP036  # an older one also reads this
    sys.exit("jobgen: needs Python 3.10 or newer, but this is Python %d.%d" % sys.version_info[:2])  # noqa: UP031

import atexit
import shutil
import tempfile
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES

TAG = EXTENSION_SUFFIXES[0][1:-3]  # cpython-310-x86_64-linux-gnu


def packages(archive):
    """Return the directory with the packages of the archive, which it is unpacked into at the first start.

    The name has the digest of the content and the kind of Python: others have other directories. If the cache
    cannot be written, the directory is temporary.
    """
    with zipfile.ZipFile(archive) as file:
        digest = file.read("DIGEST").decode()
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        folder = os.path.join(home, "jobgen", "pyz-%s.%s" % (digest, TAG))  # noqa: UP031
        if whole(file, folder):
            return folder
        shutil.rmtree(folder, ignore_errors=True)  # somebody has deleted old files
        try:
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            fresh = tempfile.mkdtemp(prefix="pyz-", dir=os.path.dirname(folder))
            unpack(file, fresh)
        except OSError:
            folder = fresh = tempfile.mkdtemp(prefix="jobgen-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            unpack(file, fresh)
    if fresh != folder:
        try:
            os.rename(fresh, folder)
        except OSError:  # another process was faster
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


def members(file):
    """Return the files of the packages for this Python, with their names in the archive."""
    found = {}
    for name in file.namelist():
        if name.startswith("compiled/"):
            _, tag, inner = name.split("/", 2)
            if tag in (
                TAG,
                TAG.split("-", 2)[-1],
            ):  # of this version, or of all versions on this kind of machine
                found[inner] = name
        elif "/" in name:
            found[name] = name
    return found


def whole(file, folder):
    """Return whether a directory holds all packages of the archive."""
    return all(os.path.exists(os.path.join(folder, name)) for name in members(file))


def unpack(file, folder):
    """Unpack the packages of the archive into a directory."""
    for inner, name in members(file).items():
        path = os.path.join(folder, inner)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(file.read(name))


if __name__ == "__main__":
    sys.path[0] = packages(sys.argv[0])
    from jobgen.__main__ import main

    main()
