"""Which processes a job has left, on whatever host of the test clusters: seen from outside, through /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from support.waiting import wait_until


@dataclass(frozen=True)
class Process:
    pid: int
    host: str
    command: str

    def __str__(self) -> str:
        return f"{self.host} {self.pid} {self.command}"


def processes_of(folder: Path) -> list[Process]:
    """Those that name the folder of a job: in their environment, their command line or as working directory.

    But for those of OpenPBS's qsub, which waits in the background for a minute for more to submit.
    """
    mine = os.getpid()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != mine]
    named = [pid for pid in pids if _names(pid, os.fsencode(folder))]
    return [Process(pid, _host(pid), command(pid)) for pid in named if not command(pid).startswith("qsub ")]


def gone(folder: Path, seconds: float = 20) -> list[Process]:
    """The processes that are there after so many seconds still."""
    wait_until(lambda: not processes_of(folder), seconds)
    return processes_of(folder)


def kill(folder: Path) -> None:
    """Kill the processes that name the folder of a job."""
    for process in processes_of(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def _names(pid: int, folder: bytes) -> bool:
    there = Path("/proc", str(pid))
    try:
        if folder in (there / "cmdline").read_bytes() or folder in (there / "environ").read_bytes():
            return True
        return (os.fsencode(os.readlink(there / "cwd")) + b"/").startswith(folder + b"/")
    except OSError:  # it has ended, or is a zombie or the kernel's
        return False


def command(pid: int) -> str:
    """The command line of a process, or its beginning."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "(ended)"
    return os.fsdecode(b" ".join(words))[:200]


def _host(pid: int) -> str:
    done = subprocess.run(["nsenter", "-t", str(pid), "-u", "hostname"], capture_output=True, text=True)
    return done.stdout.strip() or "?"
