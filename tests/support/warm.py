"""Ranks of a training that need not import torch: one process has imported it, and forks a process a rank.

As a module: `Rank`, used like a subprocess.Popen with text, and `run` for all ranks of a world. As a program,
warm.py FD MODULE...: the process that forks. It gets requests over a socket, with the rank's stdout and stderr,
and sends back pids and statuses. What is under test then is the training, not the launcher.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

MODULES = ("torch.distributed", "jobgen.train.__main__", "jobgen.train.preflight.together")
TRAINING = (*MODULES, "torch._dynamo")  # which torch imports with the first optimizer


class Nursery:
    """The forking process, as the tests see it."""

    def __init__(
        self, python: str, modules: Sequence[str], env: Mapping[str, str], before: Sequence[str] = ()
    ) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [*before, python, __file__, str(theirs.fileno()), *modules]
        self._process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()])
        theirs.close()
        self.pid = self._process.pid
        self._ended: dict[int, int] = {}

    def fork(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: str | Path, outputs: Sequence[int]
    ) -> int:
        request = json.dumps({"argv": list(argv), "env": dict(env), "cwd": str(cwd)}).encode()
        socket.send_fds(self._socket, [request], list(outputs))
        while True:
            said = self._hear(120)
            if "forked" in said:
                return int(said["forked"])

    def status(self, pid: int, seconds: float) -> int | None:
        """With which the process has ended, as subprocess has it; None if it has not within that time."""
        until = time.monotonic() + seconds
        while pid not in self._ended:
            left = until - time.monotonic()
            if not self._hear(max(left, 0)) and left <= 0:
                break
        return self._ended.get(pid)

    def _hear(self, seconds: float) -> dict[str, Any]:
        self._socket.settimeout(seconds or 1e-6)
        try:
            said = json.loads(self._socket.recv(1000) or b"null")
        except TimeoutError:
            return {}
        assert said is not None, "the process that forks ranks is gone"
        if "ended" in said:
            self._ended[said["ended"]] = said["status"]
        return said


@functools.cache
def nursery(
    python: str = sys.executable, modules: tuple[str, ...] = MODULES, before: tuple[str, ...] = ()
) -> Nursery:
    """before: words that become the process, such as unshare."""
    # What torch reads once, when it is imported, is as jobgen.train sets it.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("JOBGEN_")}
    return Nursery(
        python,
        modules,
        {**plain, "TORCH_CPP_LOG_LEVEL": "ERROR", "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu"},
        before,
    )


def trainings() -> Nursery:
    """The process that forks ranks of every engine."""
    return nursery(modules=(*TRAINING, "deepspeed"))


class Rank:
    """python -m jobgen.train ARGV with that environment, or python FILE ARG..., in a process that is forked."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | Path = ".",
        parent: Callable[[], Nursery] = nursery,
    ) -> None:
        self._outputs = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        self._parent = parent()
        self.returncode: int | None = None
        self.pid = self._parent.fork(
            argv, env, Path(cwd).resolve(), [file.fileno() for file in self._outputs]
        )

    def wait(self, timeout: float) -> int:
        self.returncode = (
            self._parent.status(self.pid, timeout) if self.returncode is None else self.returncode
        )
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a warm rank", timeout)
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        self.wait(timeout)
        for file in self._outputs:
            file.seek(0)
        return self._outputs[0].read(), self._outputs[1].read()

    def send_signal(self, number: int) -> None:
        if self.returncode is None and self._parent.status(self.pid, 0) is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    ranks: int,
    parent: Callable[[], Nursery] = nursery,
) -> tuple[int, str, str]:
    """Run `ranks` ranks on this host and return the first status that is not 0, and what all wrote."""
    from jobgen.train.addresses import free_port

    world = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)}
    world |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    each = [
        {**world, "RANK": str(rank), "LOCAL_RANK": str(rank)} if ranks > 1 else {} for rank in range(ranks)
    ]
    processes = [Rank(argv, {**env, **own}, cwd, parent) for own in each]
    statuses, out, err = finish(processes, 500)
    return next(filter(None, statuses), 0), out, err


def finish(
    processes: Sequence[Rank | subprocess.Popen[str]], seconds: float
) -> tuple[list[int | None], str, str]:
    """Wait for the ends of ranks, and return their statuses and what all wrote."""
    try:
        said = [process.communicate(timeout=seconds) for process in processes]
    finally:
        for process in processes:
            process.kill()
    out, err = ("".join(texts) for texts in zip(*said, strict=True))
    return [process.returncode for process in processes], out, err


def serve(ours: socket.socket, modules: Sequence[str]) -> None:
    """Fork for each request, until the other side is gone."""
    del sys.path[0]  # the folder of this file
    for name in modules:
        importlib.import_module(name)
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    selector = selectors.DefaultSelector()
    for each in (ours, woken):
        selector.register(each, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is woken:
                woken.recv(1000)
                reap(ours)
                continue
            request, outputs, _, _ = socket.recv_fds(ours, 1 << 20, 2)
            if not request:
                return
            if not (pid := os.fork()):
                be_rank(json.loads(request), outputs)
            for output in outputs:
                os.close(output)
            tell(ours, forked=pid)


def reap(ours: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        tell(ours, ended=pid, status=os.waitstatus_to_exitcode(status))


def tell(ours: socket.socket, **said: int) -> None:
    ours.send(json.dumps(said).encode())


def be_rank(request: Mapping[str, Any], outputs: Sequence[int]) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        sys.path.insert(0, request["cwd"])  # as python -m has it
        from jobgen.train import __main__ as program

        argv = request["argv"]
        program._leave(script(argv) if argv and argv[0].endswith(".py") else program.main(argv))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


def script(argv: list[str]) -> int:
    """Run a program of a user, as python FILE ARG... would, and return its status.

    Its module stays: to delete a DistributedDataParallel may wait for a thread of gloo that waits for Python's lock.
    """
    sys.argv = argv
    sys.path[0] = str(Path(argv[0]).parent)
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    module.__file__ = argv[0]
    try:
        exec(compile(Path(argv[0]).read_bytes(), argv[0], "exec"), module.__dict__)
    except SystemExit as error:
        return int(error.code or 0)
    return 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
