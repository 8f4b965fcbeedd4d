"""A ``python`` for scripts, in which a training and a program FILE.py need not import torch: warm.py forks them.

As a module: `folder`, to be the first on PATH. As a program, warm_python.py SOCKET ARG...: python ARG...
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support import warm

_SCRIPT = """#!/bin/bash
case "$1 $2" in
  "-m jobgen.train") exec {python} -IS {client} {socket} "${{@:3}}" ;;
  *.py\\ *) exec {python} -IS {client} {socket} "$@" ;;
esac
exec {python} "$@"
"""


@contextmanager
def folder(place: Path) -> Iterator[Path]:
    """A folder with ``python`` and ``python3``; the process that forks is asked as long as it is used."""
    from support import warm

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(place / "socket"))
    listener.listen(64)
    names = {"python": sys.executable, "client": __file__, "socket": place / "socket"}
    for name in ("python", "python3"):
        (place / name).write_text(_SCRIPT.format(**names))
        (place / name).chmod(0o755)
    over = threading.Event()
    server = threading.Thread(target=_serve, args=(listener, warm.nursery(modules=warm.TRAINING), over))
    server.start()
    try:
        yield place
    finally:
        over.set()
        server.join()
        listener.close()


def _serve(listener: socket.socket, parent: warm.Nursery, over: threading.Event) -> None:
    waiting: dict[int, socket.socket] = {}
    while not over.is_set():
        if select.select([listener], [], [], 0.05)[0]:
            client, _ = listener.accept()
            request, outputs, _, _ = socket.recv_fds(client, 1 << 20, 2)
            asked = json.loads(request)
            waiting[parent.fork(asked["argv"], asked["env"], asked["cwd"], outputs)] = client
            for output in outputs:
                os.close(output)
        for pid in [*waiting]:
            if (status := parent.status(pid, 0.01)) is not None:
                with waiting.pop(pid) as client:
                    client.send(str(status).encode())


def _ask(path: str, argv: list[str]) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        request = {"argv": argv, "env": dict(os.environ), "cwd": os.getcwd()}
        socket.send_fds(server, [json.dumps(request).encode()], [1, 2])
        status = int(server.recv(100))
    if status < 0:
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(_ask(sys.argv[1], sys.argv[2:]))
