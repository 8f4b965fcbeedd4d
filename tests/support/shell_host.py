"""A host that is this machine: its scripts run with a shell of choice, and their input may break."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from jobgen.hosts.calls import PATIENCE
from jobgen.hosts.host import Host, ScriptOutput
from jobgen.hosts.ssh import UnreachableError


class ShellHost(Host):
    """A host whose shell is ``shell``, with ``path`` as its PATH.

    ``cut`` are the bytes of its input after which the connection breaks; ``inputs`` has the sizes of all.
    """

    name = "lab"

    def __init__(self, shell: Sequence[str] = ("sh",), path: str = os.environ["PATH"]) -> None:
        self._shell, self._path = shell, path
        self.cut: int | None = None
        self.inputs: list[int] = []

    def run(
        self,
        script: str,
        stdin: bytes | BinaryIO = b"",
        patience: float = PATIENCE,
    ) -> ScriptOutput:
        data = stdin if isinstance(stdin, bytes) else stdin.read()
        self.inputs.append(len(data))
        cut, self.cut = self.cut, None
        done = subprocess.run(
            [*self._shell, "-c", os.fsencode(script)],
            input=data[:cut],
            env={"PATH": self._path, "HOME": "/nowhere"},
            capture_output=True,
            timeout=patience,
            check=False,
        )
        if cut is not None:
            raise UnreachableError("the connection has ended")
        return ScriptOutput(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


def busybox(folder: Path) -> ShellHost:
    """Return a host whose commands are all those of busybox."""
    program = shutil.which("busybox")
    assert program is not None
    folder.mkdir()
    subprocess.run([program, "--install", "-s", str(folder)], check=True)
    return ShellHost((str(folder / "sh"),), str(folder))
