"""The commands and options as click knows them, and a run of one command in this process."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import click

from jobgen.commands.cli import cli, run
from jobgen.commands.streams import guarded

T = TypeVar("T")
STATUSES = (0, 1, 2, 5)  # 5: a host is not reached
# The arguments with which a command does something, in a directory that has these files and runs.
BASE = {
    "submit": ["slurm", "--dry-run"],
    "check": ["job.sh"],
    "init": ["--scheduler", "slurm"],
    "completion": ["bash"],
    "convert": ["job.sh", "--to", "slurm"],
    "diff": ["one", "two"],
    "site show": ["polaris"],
    "site check": ["polaris"],
}


class Target(NamedTuple):
    """A command with its parameters."""

    words: tuple[str, ...]
    command: click.Command

    @property
    def base(self) -> list[str]:
        return [*self.words, *BASE.get(" ".join(self.words), [])]

    def options(self) -> Iterator[click.Option]:
        """Yield the options that take a value."""
        return (one for one in self.command.params if isinstance(one, click.Option) and not one.is_flag)


def _targets(command: click.Command, words: tuple[str, ...]) -> Iterator[Target]:
    if not isinstance(command, click.Group):
        yield Target(words, command)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _targets(inner, (*words, name))


TARGETS = [*_targets(cli, ())]


def named(target: Target) -> str:
    """The id of a test."""
    return " ".join(target.words)


def part(values: Sequence[T], step: int, *about: str | None) -> Sequence[T]:
    """Return every so many of the values, from another one on for each subject."""
    return values[zlib.crc32(repr(about).encode()) % step :: step]


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


def attack(words: Sequence[str]) -> Done:
    """Run a command in this process. It may refuse, in sentences; anything else is raised."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape") for _ in "oe"]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        status = run(list(words))
    for stream in streams:
        stream.flush()
    done = Done(status, *(stream.buffer.getvalue().decode(errors="surrogateescape") for stream in streams))  # type: ignore[attr-defined]
    assert done.status in STATUSES, words
    if done.status == 2:
        last = done.err.splitlines()[-1]
        assert last.startswith("jobgen: "), (words, done.err[-500:])
        assert len(last) < 3000, words
        assert done.err.count("\njobgen: ") + 1 == done.err.count("\n"), (words, done.err[-500:])
    return done


def forked(words: Sequence[str], prepare: Callable[[], None]) -> int:
    """Return the status of a command in a child with real streams; ``prepare`` changes them there."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 99
    try:
        prepare()
        status = guarded(lambda: run(list(words)))
        sys.stderr.flush()
    except BaseException as error:
        os.write(2, f"Traceback: {error!r}".encode())
    finally:
        os._exit(status)


def everything(directory: str) -> dict[str, bytes | None]:
    """The files and folders below a directory, with the content of each file."""
    found: dict[str, bytes | None] = {}
    for folder, folders, files in os.walk(directory):
        found |= {os.path.join(folder, name): None for name in folders}
        for path in (os.path.join(folder, name) for name in files):
            if os.path.islink(path):
                continue
            with contextlib.suppress(OSError), open(path, "rb") as file:
                found[path] = file.read()
    return found
