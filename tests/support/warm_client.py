"""python ARG..., or torchrun ARG... and the like, run by warm_server.py in a process that has imported torch.

Its copies in the folder of warm_python.py have the names of these commands. What uses neither torch nor jobgen, or
cannot be run like this, runs as it always does. The program has this process' files, directory, environment, user,
host, limits and signals, and ends if it is killed.
"""

from __future__ import annotations

import _signal
import _socket  # socket and signal would take three times as long as all the rest
import marshal
import os
import resource
import sys
from collections.abc import Mapping, Sequence

IMPORTED = (b"torch", b"deepspeed", b"transformers", b"lightning", b"accelerate", b"jobgen.__main__")
MODULES = (
    *("jobgen", "jobgen.train", "benchmarks.gpu", "benchmarks.gpu.correctness"),
    *("deepspeed.checkpoint.ds_to_universal", "deepspeed.launcher.launch", "torch.distributed.run"),
)
READ_AT_START = ("LD_PRELOAD", "PYTHONHOME", "DS_ENV_FILE")
FORWARDED = (
    *(_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGQUIT),
    *(_signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGCONT),
)


def is_slow(argv: list[str]) -> bool:
    """Whether python with these words runs a program that imports torch, or a command of jobgen."""
    words = [word for word in argv if word != "-u"]
    if words[:1] == ["-m"]:
        return len(words) > 1 and words[1] in MODULES
    if words[:1] == ["-c"]:
        return len(words) > 1 and "torch" in words[1]
    if not words or words[0].startswith("-"):
        return False
    try:
        with open(words[0], "rb") as file:
            text = file.read()
    except OSError:
        return False
    return any(name in text for name in IMPORTED)


def connected(folder: str | os.PathLike[str]) -> _socket.socket:
    """Return a connection to the server; OSError if there is none."""
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    server.connect(f"{folder}/socket")
    return server


def send(
    server: _socket.socket,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | os.PathLike[str],
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
    asked["ignored"] = [number for number in FORWARDED if _signal.getsignal(number) == _signal.SIG_IGN]
    asked["limits"] = [resource.getrlimit(kind) for kind in range(16)]
    asked["python"] = python or f"{os.path.dirname(server.getpeername())}/python"
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in files)
    server.sendmsg([marshal.dumps(asked)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])


def given() -> list[int]:
    """Return the open files that this process was given."""
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            found += [number] if os.get_inheritable(number) else []
        except OSError:  # the folder itself
            continue
    return found


def ask(folder: str, argv: list[str]) -> int | None:
    """Return the status of the program, negative for a signal; None if the server does not run it."""
    try:
        server = connected(folder)
    except OSError:
        return None
    _signal.pthread_sigmask(_signal.SIG_BLOCK, FORWARDED)
    send(server, argv, os.environ, os.getcwd(), {number: number for number in given()})
    pid = int(server.recv(100))

    def forward(number: int, frame: object) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return

    for number in FORWARDED if pid else ():
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, forward)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, FORWARDED)
    return int(server.recv(100)) if pid else None


def main(folder: str, command: str, argv: list[str]) -> int:
    if not command.startswith("python"):
        argv = [os.path.join(os.path.dirname(sys.executable), command), *argv]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    own = f"{os.path.dirname(os.path.dirname(sys.executable))}/lib"  # which mpirun adds
    libraries = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    cold = any(map(os.environ.get, READ_AT_START))
    cold |= any(path != own and os.path.isdir(path) for path in libraries)
    cold |= any(os.path.exists(os.path.join(path, "sitecustomize.py")) for path in paths)
    status = None if cold or not is_slow(argv) else ask(folder, argv)
    if status is None:
        os.execv(sys.executable, [sys.executable, *argv])
    if status < 0:
        if -status != _signal.SIGKILL:  # it has no handler
            _signal.signal(-status, _signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(*os.path.split(os.path.abspath(sys.argv[0])), sys.argv[1:]))
