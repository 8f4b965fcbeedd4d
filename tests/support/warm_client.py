"""python ARG..., or torchrun ARG... and the like, run by warm_server.py in a process that has imported torch.

Its copies in the folder of warm_python.py have the names of these commands. What uses neither torch nor jobgen, or
cannot be run like this, runs as it always does. The program has this process' files, directory, environment, user,
host, limits and signals, and ends if it is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

IMPORTED = (b"torch", b"deepspeed", b"transformers", b"lightning", b"accelerate", b"jobgen.__main__")
MODULES = ("jobgen.train", "benchmarks.gpu", "deepspeed.launcher.launch", "torch.distributed.run")
READ_AT_START = ("LD_PRELOAD", "PYTHONHOME", "DS_ENV_FILE")
FORWARDED = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT),
)


def is_slow(argv: list[str]) -> bool:
    """Whether python with these words runs a program that imports torch, or a command of jobgen."""
    words = [word for word in argv if word != "-u"]
    if words[:1] == ["-m"]:
        return len(words) > 1 and words[1] in MODULES
    if words[:1] == ["-c"]:
        return len(words) > 1 and "torch" in words[1]
    try:
        text = Path(words[0]).read_bytes() if words and not words[0].startswith("-") else b""
    except OSError:
        return False
    return any(name in text for name in IMPORTED)


def connected(folder: str | Path) -> socket.socket:
    """Return a connection to the server; OSError if there is none."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect(f"{folder}/socket")
    return server


def send(
    server: socket.socket,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | Path,
    files: Mapping[int, int],
    like: int | None = None,
    python: str | None = None,
) -> None:
    """Ask for python ARG..., with open files that get other numbers, in the namespaces of the process `like`.

    Its sys.executable is `python`, by default the client that is next to the server. The answers are its process id,
    as this host counts (0: the server does not run it), and its status.
    """
    asked = {
        "argv": list(argv),
        "env": dict(env),
        "cwd": str(cwd),
        "files": list(files.values()),
        "like": like,
    }
    asked["ignored"] = [number for number in FORWARDED if signal.getsignal(number) == signal.SIG_IGN]
    asked["limits"] = [resource.getrlimit(kind) for kind in range(16)]
    asked["python"] = python or f"{os.path.dirname(server.getpeername())}/python"
    socket.send_fds(server, [json.dumps(asked).encode()], list(files))


def given() -> list[int]:
    """Return the open files that this process was given."""
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # the folder itself
            found += [number] if os.get_inheritable(number) else []
    return found


def ask(folder: str, argv: list[str]) -> int | None:
    """Return the status of the program, negative for a signal; None if the server does not run it."""
    try:
        server = connected(folder)
    except OSError:
        return None
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    send(server, argv, os.environ, os.getcwd(), {number: number for number in given()})
    pid = int(server.recv(100))

    def forward(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in FORWARDED if pid else ():
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    return int(server.recv(100)) if pid else None


def main(folder: str, command: str, argv: list[str]) -> int:
    if not command.startswith("python"):
        argv = [os.path.join(os.path.dirname(sys.executable), command), *argv]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    own = f"{Path(sys.executable).parent.parent}/lib"  # which mpirun adds
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    cold = any(map(os.environ.get, READ_AT_START))
    cold |= any(path != own and os.path.isdir(path) for path in libraries)
    cold |= any(Path(path, "sitecustomize.py").exists() for path in paths)
    status = None if cold or not is_slow(argv) else ask(folder, argv)
    if status is None:
        os.execv(sys.executable, [sys.executable, *argv])
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(*os.path.split(os.path.abspath(sys.argv[0])), sys.argv[1:]))
