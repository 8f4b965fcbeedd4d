"""Ranks of a training that need not import torch, and commands of jobgen: warm_server.py forks them.

`Program` is used like a subprocess.Popen with text, and `run` for all ranks of a world. What is under test then is the
training, not the launcher.
"""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from support import warm_client, warm_python


class Program:
    """python ARG..., with that environment, in the namespaces of this process or of the process `like`."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | Path = ".",
        *,
        server: Path,
        like: int | None = None,
        python: str | None = None,
        stdin: str = "",
    ) -> None:
        file = functools.partial(tempfile.TemporaryFile, "w+", errors="surrogateescape")
        self._outputs = [file(), file()]
        self._server = warm_client.connected(server)
        with file() as given:
            given.write(stdin)
            given.seek(0)
            files = {file.fileno(): number for number, file in enumerate((given, *self._outputs))}
            warm_client.send(self._server, argv, env, Path(cwd).resolve(), files, like, python)
        self.pid = int(self._server.recv(100))
        self.returncode: int | None = None

    def wait(self, timeout: float) -> int:
        if self.returncode is None:
            self._server.settimeout(timeout or 1e-6)
            try:
                self.returncode = int(self._server.recv(100))
            except TimeoutError:
                raise subprocess.TimeoutExpired("a warm rank", timeout) from None
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        self.wait(timeout)
        for file in self._outputs:
            file.seek(0)
        return self._outputs[0].read(), self._outputs[1].read()

    def send_signal(self, number: int) -> None:
        try:
            self.wait(0)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Rank(Program):
    """python -m jobgen.train ARGV, or python FILE ARG..."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | Path = ".",
        like: int | None = None,
        server: Callable[[], Path] = warm_python.server,
    ) -> None:
        words = list(argv) if argv and argv[0].endswith(".py") else ["-m", "jobgen.train", *argv]
        super().__init__(words, env, cwd, server=server(), like=like)


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    ranks: int,
    like: int | None = None,
    server: Callable[[], Path] = warm_python.server,
) -> tuple[int, str, str]:
    """Run `ranks` ranks on this host and return the first status that is not 0, and what all wrote."""
    with world(argv, env, cwd, ranks, like, server) as started:
        statuses, out, err = finish(started, 1500)  # sixty trainings, which give way to other tests
    return next(filter(None, statuses), 0), out, err


@contextmanager
def world(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    ranks: int,
    like: int | None = None,
    server: Callable[[], Path] = warm_python.server,
) -> Iterator[list[Rank]]:
    """Ranks on this host that meet each other. They are killed in the end."""
    from jobgen.train.addresses import free_port

    with socket.socket() as held, ExitStack() as ends:
        # It does not listen: rank 0 can, and no other run finds the port free in the meantime.
        held.bind(("", free_port()))
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        shared = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
        shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(held.getsockname()[1])}
        started = []
        for rank in range(ranks):
            own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} if ranks > 1 else {}
            started.append(Rank(argv, {**env, **own}, cwd, like, server))
            ends.callback(started[-1].kill)
        yield started


def finish(
    processes: Sequence[Program | subprocess.Popen[str]], seconds: float
) -> tuple[list[int | None], str, str]:
    """Wait for the ends of ranks, and return their statuses and what all wrote."""
    try:
        said = [process.communicate(timeout=seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()
    out, err = ("".join(texts) for texts in zip(*said, strict=True))
    return [process.returncode for process in processes], out, err


def jobgen(words: Sequence[str], env: Mapping[str, str], cwd: str | Path, stdin: str) -> tuple[int, str, str]:
    """Run a command of jobgen and return its status and what it wrote."""
    server = warm_python.server(sys.executable, warm_python.JOBGEN)
    command = ["-m", "jobgen", *words]
    program = Program(command, env, cwd, server=server, python=sys.executable, stdin=stdin)
    try:
        out, err = program.communicate(60)
    finally:
        program.kill()
    return program.wait(0), out, err
