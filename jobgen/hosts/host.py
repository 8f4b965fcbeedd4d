"""The machine that commands run on and files lie on."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from jobgen.hosts import calls
from jobgen.hosts.calls import PATIENCE, Done, SchedulerError


class ScriptOutput(NamedTuple):
    """What a shell script of ours printed on a host, and its exit status."""

    status: int
    out: bytes
    err: str


class Host:
    """This machine."""

    name = ""

    def call(
        self,
        words: Sequence[str],
        directory: str | os.PathLike[str] | None = None,
        patience: float = PATIENCE,
        more: Mapping[str, str] | None = None,
    ) -> Done:
        """Run a command without input, in ``directory``, with ``more`` variables in its environment.

        Raises:
            SchedulerError: it is not on PATH, cannot be run, or takes longer than ``patience`` seconds.
        """
        return calls.call(words, directory, patience, more)

    def output(self, *words: str, patience: float = PATIENCE) -> str:
        """Return what a command prints; bytes that are not UTF-8 are replaced.

        Raises:
            SchedulerError: it cannot be run, takes too long, or fails.
        """
        done = self.call(words, patience=patience)
        if done.status != 0:
            raise SchedulerError(f"{' '.join(words)} failed: {calls.complaint(done)}")
        return done.out.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def which(self, command: str) -> str:
        """Return the path of a command on the PATH; an empty text if it is not there."""
        return shutil.which(command) or ""

    def run(
        self,
        script: str,
        stdin: bytes | BinaryIO = b"",
        patience: float = PATIENCE,
    ) -> ScriptOutput:
        """Run a script of POSIX sh, with this input.

        Raises:
            SchedulerError: it takes longer than ``patience`` seconds, or the host does not answer.
        """
        raise NotImplementedError("scripts are for other hosts: this machine has Python")

    def read(self, path: str, limit: int) -> bytes:
        """Return the first ``limit`` bytes of a file; nothing if it cannot be read."""
        try:
            with Path(path).open("rb") as file:
                return file.read(limit)
        except OSError:
            return b""

    @property
    def uid(self) -> str:
        """The number of this user there."""
        return str(os.getuid())

    @property
    def user(self) -> str:
        """The name of this user there.

        Raises:
            SchedulerError: the user has no name.
        """
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            raise SchedulerError(f"the user {os.getuid()} has no name here") from None

    def variable(self, name: str) -> str:
        """Return a variable of the environment; an empty text if it is not set."""
        return os.environ.get(name, "")


HERE = Host()
