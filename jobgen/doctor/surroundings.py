"""The environment that a script makes, and commands that are run in it, each with a time limit."""

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


class Answer(NamedTuple):
    """What a command said. ``status`` is None where it could not be run, or did not end in time."""

    status: int | None
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last words that it said, which name the error of a failed one."""
        lines = [line for line in (self.err.strip() or self.out).splitlines() if re.search(r"\w", line)]
        return lines[-1].strip() if lines else f"status {self.status}"


class Surroundings(NamedTuple):
    """A script's environment and directory when its program begins, what would have ended it before, and the
    words before a command that is meant for its container."""

    env: Mapping[str, str]
    cwd: str
    deaths: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()

    def which(self, name: str) -> str | None:
        """The path of a command there."""
        return shutil.which(name, path=self.env.get("PATH", os.defpath))

    def ask(self, words: Sequence[str], limit: float) -> Answer:
        """Run a command there, for ``limit`` seconds at most."""
        path = self.which(words[0])
        if path is None:
            return Answer(None, "", f"{words[0]} is not on PATH")
        return run(words, self.env, self.cwd, limit, path)


def run(
    words: Sequence[str], env: Mapping[str, str], cwd: str, limit: float, path: str | None = None
) -> Answer:
    """Run a command, and end it with all that it started when the time is over.

    The first word stays as it is also where ``path`` is what runs: Open MPI's mpirun, called by an absolute
    path, puts its own directory first on the ranks' PATH.
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
        return Answer(None, "", f"{words[0]} cannot be run: {error.strerror}")
    try:
        out, err = process.communicate(timeout=limit)
        return Answer(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        return Answer(None, "", f"{words[0]} did not end within {limit:g} s")
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close() if process.stdout else None
        process.stderr.close() if process.stderr else None
        process.wait()


@contextmanager
def surroundings(script: str, limit: float = 60) -> Iterator[Surroundings]:
    """What a script of doctor.sh.j2 makes of this process's environment, within ``limit`` s; its way
    into the container is there as long as this lasts."""
    with tempfile.TemporaryDirectory(prefix="jobgen-doctor-") as folder:
        place = Path(folder)
        (place / "doctor.sh").write_text(script, encoding="utf-8")
        env = os.environ | {"JOBGEN_DOCTOR": folder}
        answer = run(["bash", str(place / "doctor.sh")], env, os.getcwd(), limit)
        deaths = [text for text in _read(place / "deaths").split("\0") if text]
        if not (variables := _read(place / "environment")):
            said = answer.last if answer.status != 0 else "a sourced script has called exit"
            deaths.append(f"the environment ends the script: {said}")
        env = dict(pair.split("=", 1) for pair in variables.split("\0") if "=" in pair) or dict(os.environ)
        env.pop("JOBGEN_DOCTOR", None)
        inside = ("bash", str(place / "container.sh")) if (place / "container.sh").exists() else ()
        yield Surroundings(env, _read(place / "directory")[:-1] or os.getcwd(), tuple(deaths), inside)


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    return ""
