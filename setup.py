"""Make the manual pages from the commands, and source distributions reproducible; setup.cfg has all else."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tarfile
from contextlib import suppress

import setuptools  # first: it brings the distutils that newer versions of Python lack
from setuptools.command.sdist import sdist

from distutils.command.install_data import install_data  # isort: skip

MANUALS = "share/man/man1"
GIT = ("git", "-c", "log.showSignature=false", "log")
HERE = os.path.dirname(os.path.abspath(__file__))


def date() -> str:
    """Return the date of the commit, in seconds since 1970. All files of a source distribution have it."""
    if os.path.exists(os.path.join(HERE, ".git")):
        with suppress(OSError, subprocess.CalledProcessError):
            return subprocess.check_output([*GIT, "-1", "--format=%ct"], cwd=HERE, text=True).strip()
    return str(int(os.path.getmtime(__file__)))


class InstallManuals(install_data):
    def run(self) -> None:
        sys.path.insert(0, HERE)
        from jobgen.commands import man
        from jobgen.commands.cli import cli

        folder = os.path.join(self.get_finalized_command("build").build_temp, "man")
        self.data_files = [(MANUALS, man.write(dict(man.pages(cli)), folder))]
        super().run()


class Sdist(sdist):
    """The same files give the same bytes: https://reproducible-builds.org/docs/archives/"""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **owner):  # type: ignore[no-untyped-def]
        epoch = int(os.environ["SOURCE_DATE_EPOCH"])
        if format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, **owner)

        def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime, info.mode = epoch, 0o755 if info.isdir() or info.mode & 0o100 else 0o644
            return info

        name = f"{base_name}.tar.gz"
        with (
            open(name, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=epoch) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=plain)  # sorted by name
        return name


os.umask(0o022)  # the modes of the files that a build makes
os.environ["SOURCE_DATE_EPOCH"] = os.environ.get("SOURCE_DATE_EPOCH") or date()
setuptools.setup(cmdclass={"install_data": InstallManuals, "sdist": Sdist}, data_files=[(MANUALS, [])])
