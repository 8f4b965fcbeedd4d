"""Calls to the commands of schedulers and git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jobgen.errors import NO, JobgenError

PATIENCE = 120  # s; the commands of schedulers have their own, shorter limits


class SchedulerError(JobgenError):
    """Error of a scheduler: it is not installed here, does not answer, or refuses a request."""

    status = NO


class NotStartedError(SchedulerError):
    """A command cannot be run."""


class Done(NamedTuple):
    """The result of a command; undecodable bytes are kept as surrogates."""

    status: int
    out: str
    err: str


def call(
    words: Sequence[str],
    directory: str | os.PathLike[str] | None = None,
    patience: float = PATIENCE,
    more: Mapping[str, str] | None = None,
) -> Done:
    """Run a command without input, in ``directory``, with ``more`` variables in its environment.

    Raises:
        SchedulerError: it is not on PATH, cannot be run, or takes longer than ``patience`` seconds.
    """
    on_path(words[0])
    try:
        done = subprocess.run(
            words,
            cwd=directory,
            env={**os.environ, **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            check=False,
        )
    except OSError as error:
        raise SchedulerError(f"cannot run {words[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise SchedulerError(f"{words[0]} has not answered for {patience} s") from None
    return Done(
        done.returncode, *(stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr))
    )


def call_into(
    words: Sequence[str], directory: Path, handle: int, patience: float, late: Callable[[], str]
) -> int:
    """Run a command in ``directory`` whose output goes to a file, and return its exit status; print the text
    of ``late`` if it takes longer than ``patience`` seconds. The command goes on if this process ends.

    Raises:
        NotStartedError: it cannot be run, so that nothing has happened.
    """
    try:
        process = subprocess.Popen(
            words,
            cwd=directory,
            env={**os.environ, "PWD": os.path.abspath(directory)},  # PBS reads it
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
        )
    except OSError as error:
        raise NotStartedError(f"cannot run {words[0]}: {error.strerror}") from None
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired:
        print(late(), file=sys.stderr)
        return process.wait()


def on_path(command: str) -> None:
    """Check that a command can be found.

    Raises:
        SchedulerError: it is not on PATH.
    """
    if shutil.which(command) is None:
        raise SchedulerError(f"cannot find {command} on PATH: this works where jobs are submitted")


def batched(words: Sequence[str], size: int = 200) -> Iterator[Sequence[str]]:
    """Yield the words in batches that fit on a command line."""
    return (words[at : at + size] for at in range(0, len(words), size))


def complaint(done: Done) -> str:
    """Return the error of a failed command on one line, without its name before every part."""
    lines = (line.strip() for line in (done.err.strip() or done.out).splitlines())
    parts = [line.split(": error: ", 1)[-1].rstrip(".") for line in lines if line]
    return "; ".join(dict.fromkeys(parts)) or f"it ended with status {done.status}"
