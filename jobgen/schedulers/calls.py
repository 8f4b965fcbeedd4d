"""Calls to the commands of schedulers and git."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.errors import NO, JobgenError

PATIENCE = 120  # s; the commands of schedulers have their own, shorter limits


class SchedulerError(JobgenError):
    """Error of a scheduler: it is not installed here, does not answer, or refuses a request."""

    status = NO


class Done(NamedTuple):
    """The result of a command; undecodable bytes are kept as surrogates."""

    status: int
    out: str
    err: str


def call(
    words: Sequence[str],
    directory: str | os.PathLike[str] | None = None,
    patience: float | None = PATIENCE,
    more: Mapping[str, str] | None = None,
) -> Done:
    """Run a command without input, in ``directory``, with ``more`` variables in its environment.

    Raises:
        SchedulerError: it is not on PATH, cannot be run, or takes longer than ``patience`` seconds.
    """
    if shutil.which(words[0]) is None:
        raise SchedulerError(f"cannot find {words[0]} on PATH: this works where jobs are submitted")
    env = {**os.environ, **(more or {})}
    if directory is not None:
        env["PWD"] = os.path.abspath(directory)  # PBS reads it
    try:
        done = subprocess.run(
            words,
            cwd=directory,
            env=env,
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
        done.returncode, *(said.decode("utf-8", "surrogateescape") for said in (done.stdout, done.stderr))
    )


def output(*words: str, patience: float = PATIENCE) -> str:
    """Return what a command prints; bytes that are not UTF-8 are replaced.

    Raises:
        SchedulerError: it cannot be run, takes too long, or fails.
    """
    done = call(words, patience=patience)
    if done.status != 0:
        raise SchedulerError(f"{' '.join(words)} failed: {complaint(done)}")
    return done.out.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def batched(words: Sequence[str], size: int = 200) -> Iterator[Sequence[str]]:
    """Yield the words in batches that fit on a command line."""
    return (words[at : at + size] for at in range(0, len(words), size))


def complaint(done: Done) -> str:
    """Return the error of a failed command on one line, without its name before every part."""
    lines = (line.strip() for line in (done.err.strip() or done.out).splitlines())
    parts = [line.split(": error: ", 1)[-1].rstrip(".") for line in lines if line]
    return "; ".join(dict.fromkeys(parts)) or f"it ended with status {done.status}"
