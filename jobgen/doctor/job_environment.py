"""The environment that a script sets up, and commands that run in it, each with a time limit."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple


class CommandResult(NamedTuple):
    """The result of a command. ``status`` is None if it could not run or did not end in time."""

    status: int | None
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last line of output, which names the error of a failed command."""
        lines = [line for line in (self.err.strip() or self.out).splitlines() if re.search(r"\w", line)]
        return lines[-1].strip() if lines else f"status {self.status}"


class JobEnvironment(NamedTuple):
    """The environment and directory of a script when its program starts, the errors that end the script
    before (``errors``), and the words that run a command in its container (``inside``)."""

    env: Mapping[str, str]
    cwd: str
    errors: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()

    def which(self, name: str) -> str | None:
        """Return the path of a command in this environment."""
        return shutil.which(name, path=self.env.get("PATH", os.defpath))

    def ask(self, words: Sequence[str], limit: float) -> CommandResult:
        """Run a command in this environment, for ``limit`` seconds at most."""
        path = self.which(words[0])
        if path is None:
            return CommandResult(None, "", f"{words[0]} is not on PATH")
        return run(words, self.env, self.cwd, limit, path)


def run(
    words: Sequence[str], env: Mapping[str, str], cwd: str, limit: float, path: str | None = None
) -> CommandResult:
    """Run a command for ``limit`` seconds at most, then kill it and all processes that it started.

    The first word is unchanged even if ``path`` is executed: Open MPI's mpirun, called by an absolute path,
    puts its own directory first on the ranks' PATH.
    """
    try:
        process = subprocess.Popen(
            words,
            executable=path,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return CommandResult(None, "", f"{words[0]} cannot be run: {error.strerror}")
    try:
        out, err = process.communicate(timeout=limit)
        return CommandResult(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        return CommandResult(None, "", f"{words[0]} did not end within {limit:g} s")
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close() if process.stdout else None
        process.stderr.close() if process.stderr else None
        process.wait()


@contextmanager
def job_environment(script: str, limit: float = 60) -> Iterator[JobEnvironment]:
    """Run a script of doctor.sh.j2 for ``limit`` s at most and yield the environment that it sets up. The
    access to its container lasts as long as this context."""
    with tempfile.TemporaryDirectory(prefix="jobgen-doctor-") as folder:
        place = Path(folder)
        (place / "doctor.sh").write_text(script, encoding="utf-8")
        env = os.environ | {"JOBGEN_DOCTOR": folder}
        answer = run(["bash", str(place / "doctor.sh")], env, os.getcwd(), limit)
        deaths = [text for text in _read(place / "deaths").split("\0") if text]
        if not (variables := _read(place / "environment")):
            reason = answer.last if answer.status != 0 else "a sourced script has called exit"
            deaths.append(f"the environment ends the script: {reason}")
        env = dict(pair.split("=", 1) for pair in variables.split("\0") if "=" in pair) or dict(os.environ)
        env.pop("JOBGEN_DOCTOR", None)
        inside = ("bash", str(place / "container.sh")) if (place / "container.sh").exists() else ()
        yield JobEnvironment(env, _read(place / "directory")[:-1] or os.getcwd(), tuple(deaths), inside)


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    return ""
