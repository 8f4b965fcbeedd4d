"""Make the manual pages from the commands and install them; setup.cfg has all else."""

from __future__ import annotations

import os
import sys

import setuptools  # first: it brings the distutils that newer versions of Python lack

from distutils.command.install_data import install_data  # isort: skip

MANUALS = "share/man/man1"


class InstallManuals(install_data):
    def run(self) -> None:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        from jobgen.commands import man
        from jobgen.commands.cli import cli

        folder = os.path.join(self.get_finalized_command("build").build_temp, "man")
        self.data_files = [(MANUALS, man.write(dict(man.pages(cli)), folder))]
        super().run()


setuptools.setup(cmdclass={"install_data": InstallManuals}, data_files=[(MANUALS, [])])
