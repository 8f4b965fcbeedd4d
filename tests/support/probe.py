"""A program for the ranks of a test: it writes down what it sees, as JSON, into the directory PROBE_DIR.

It needs nothing but Python. It then does what PROBE_ACT says: "exit:RANK:STATUS" and "kill:RANK" end that
rank, "parent:RANK" kills the process that started it, and "meet:N" waits for N ranks.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

PATIENCE = 200  # seconds


def main() -> None:
    directory = Path(os.environ["PROBE_DIR"])
    act, *words = os.environ.get("PROBE_ACT", "").split(":")
    seen = {"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "host": socket.gethostname()}
    name = f"{socket.gethostname()}-{os.getpid()}.json"
    (directory / f".{name}").write_text(json.dumps(seen))
    (directory / f".{name}").rename(directory / name)
    mine = os.environ.get("RANK")
    if act == "exit" and mine == words[0]:
        sys.exit(int(words[1]))
    if act == "kill" and mine == words[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "parent" and mine == words[0]:
        os.kill(os.getppid(), signal.SIGKILL)
    if act in ("exit", "kill", "parent"):
        time.sleep(5)  # whoever started this rank is to end it
    if act == "meet":
        wait_for(directory, int(words[0]))


def wait_for(directory: Path, ranks: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(list(directory.glob("[!.]*.json"))) < ranks:
        if time.monotonic() > deadline:
            sys.exit(9)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
