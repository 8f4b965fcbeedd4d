"""python ARG..., or torchrun ARG... and the like, run by warm_server.py in a process that has imported torch.

Its copies in the folder of warm_python.py have the names of these commands. What does not use torch, or cannot be run
like this, runs as it always does. The program has this process' files, directory, environment, user, host, limits and signals, and ends if it is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path

TORCH = (b"torch", b"deepspeed", b"transformers", b"lightning", b"accelerate")
READ_AT_START = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "TORCH_DEVICE_BACKEND_AUTOLOAD")
FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")


def needs_torch(argv: list[str]) -> bool:
    """Whether python with these words runs a program that imports torch."""
    words = [word for word in argv if word != "-u"]
    if words[:1] == ["-m"]:
        return words[1:2] in (["jobgen.train"], ["torch.distributed.run"], ["deepspeed.launcher.launch"])
    if words[:1] == ["-c"]:
        return len(words) > 1 and "torch" in words[1]
    try:
        text = Path(words[0]).read_bytes() if words and not words[0].startswith("-") else b""
    except OSError:
        return False
    return any(name in text for name in TORCH)


def files() -> list[int]:
    """Return the files that this process was given."""
    numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    return [
        number
        for number in numbers
        if os.path.exists(f"/proc/self/fd/{number}") and os.get_inheritable(number)
    ]


def ask(folder: str, argv: list[str]) -> int | None:
    """Return the status of the program, negative for a signal; None if the server does not run it."""
    given = files()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        try:
            server.connect(f"{folder}/socket")
        except OSError:
            return None
        ignored = [name for name in FORWARDED if signal.getsignal(getattr(signal, name)) == signal.SIG_IGN]
        request = {
            "argv": argv,
            "env": dict(os.environ),
            "cwd": os.getcwd(),
            "files": given,
            "ignored": ignored,
        }
        request["limits"] = [resource.getrlimit(kind) for kind in range(16)]
        request["python"] = f"{folder}/python"
        socket.send_fds(server, [json.dumps(request).encode()], given)
        signals = {getattr(signal, name) for name in FORWARDED}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        pid = int(server.recv(100))
        if not pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
            return None
        for number in signals:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda number, frame: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        return int(server.recv(100))


def main(folder: str, command: str, argv: list[str]) -> int:
    if not command.startswith("python"):
        argv = [os.path.join(os.path.dirname(sys.executable), command), *argv]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    own = f"{Path(sys.executable).parent.parent}/lib"  # which mpirun adds
    cold = any(os.environ.get(name, "").strip(":") not in ("", own) for name in READ_AT_START)
    cold |= any(Path(path, "sitecustomize.py").exists() for path in paths)
    status = None if cold or not needs_torch(argv) else ask(folder, argv)
    if status is None:
        os.execv(sys.executable, [sys.executable, *argv])
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(*os.path.split(os.path.abspath(sys.argv[0])), sys.argv[1:]))
