"""Run jobgen, and kill it at a moment that does not depend on the load of the machine.

    killed.py MOMENT WHOM ARGUMENT...

MOMENT is a number (of the line of Python, from where the run directory is filled), or such as 0.01s (after so many
seconds in which the scheduler's command has run). WHOM is "one" (jobgen alone) or "all" (the command, too). The
last line on standard error is the number of lines if jobgen has ended before.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from jobgen.commands import cli

WATCHED = ("jobgen/runs/", "jobgen/schedulers/", "jobgen/commands/cli.py", "/subprocess.py")
lines = 0


def kill(pid: int, whom: str) -> None:
    (os.killpg if whom == "all" else os.kill)(pid, signal.SIGKILL)


def kill_later(seconds: float, whom: str) -> None:
    parent = os.getpid()
    if os.fork() == 0:
        try:
            os.setsid()
            time.sleep(seconds)
            if os.getppid() == parent:  # it has not ended
                kill(parent, whom)
        finally:
            os._exit(0)


def watch(moment: str, whom: str) -> Callable[..., Any]:
    def line(frame: FrameType, event: str, _: object) -> Any:
        global lines
        if event == "line":
            lines += 1
            if moment == str(lines):
                kill(os.getpid(), whom)
        return line

    def call(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        if code.co_name == "_fill" and code.co_filename.endswith("submission.py"):
            call.begun = True  # type: ignore[attr-defined]
        if moment.endswith("s") and code.co_name == "wait" and code.co_filename.endswith("/subprocess.py"):
            kill_later(float(moment[:-1]), whom)
        watched = any(part in code.co_filename for part in WATCHED)
        return line if watched and getattr(call, "begun", False) else None

    return call


if __name__ == "__main__":
    os.setsid()
    sys.settrace(watch(sys.argv[1], sys.argv[2]))
    status = cli.run(sys.argv[3:])
    sys.settrace(None)
    print(lines, file=sys.stderr)
    sys.exit(status)
