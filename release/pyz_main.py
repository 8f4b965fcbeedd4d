"""The start of jobgen.pyz: unpack the packages once into the user's cache, and run jobgen from there."""

import os
import sys

if sys.version_info < (3, 10):  # noqa: UP036  # an older one also reads this
    sys.exit("jobgen: needs Python 3.10 or newer, but this is Python %d.%d" % sys.version_info[:2])  # noqa: UP031

import atexit
import shutil
import tempfile
import zipfile


def packages(archive):
    """Return the directory with the packages of the archive, which it is unpacked into at the first start.

    The name has the digest of the content: another version has another directory. If the cache cannot be
    written, the directory is temporary.
    """
    with zipfile.ZipFile(archive) as file:
        digest = file.read("DIGEST").decode()
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        folder = os.path.join(home, "jobgen", f"pyz-{digest}")
        if os.path.isdir(folder):
            return folder
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


def unpack(file, folder):
    """Unpack the packages of the archive into a directory."""
    file.extractall(folder, [name for name in file.namelist() if "/" in name])


if __name__ == "__main__":
    sys.path[0] = packages(sys.argv[0])
    from jobgen.__main__ import main

    main()
