"""Submit jobs with jobgen, and kill it at moments that do not depend on the load of the machine.

    killed.py ORDERS WORD...

ORDERS is a file of JSON with a list for each job: its name, MOMENT and WHOM. Each job is submitted by ``jobgen
WORD... --name NAME -- true`` in a process of its own. MOMENT is a number (of the line of Python, from where the run
directory is filled; 0 is never), or such as 0.01s (from where the scheduler's command is started). WHOM is "one"
(jobgen alone) or "all" (the command, too). The answers are printed as JSON: for each job what jobgen printed and its
exit status, and the lines and the seconds of the command if it was not killed.
"""

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from jobgen.commands import cli
from jobgen.runs import run_files, submit_command

WATCHED = ("jobgen/runs/", "jobgen/schedulers/", "jobgen/commands/cli.py", "/subprocess.py")
lines, seconds = 0, 0.0


def kill(pid: int, whom: str) -> None:
    (os.killpg if whom == "all" else os.kill)(pid, signal.SIGKILL)


def kill_later(after: float, whom: str) -> None:
    parent = os.getpid()
    if os.fork() == 0:
        try:
            os.setsid()
            time.sleep(after)
            if os.getppid() == parent:  # it has not ended
                kill(parent, whom)
        finally:
            os._exit(0)


def before(module: Any, name: str, act: Callable[[], None]) -> None:
    """Have a function of a module begin with an act, and take its time."""
    function = getattr(module, name)

    def wrapped(*given: Any) -> Any:
        global seconds
        act()
        began = time.monotonic()
        try:
            return function(*given)
        finally:
            seconds = time.monotonic() - began

    setattr(module, name, wrapped)


def kill_at(moment: int, whom: str) -> None:
    """Count the lines from here on, also of the callers, and kill at one of them."""

    def line(frame: FrameType, event: str, _: object) -> Any:
        global lines
        if event == "line":
            lines += 1
            if lines == moment:
                kill(os.getpid(), whom)
        return line

    def call(frame: FrameType, event: str, _: object) -> Any:
        return line if any(part in frame.f_code.co_filename for part in WATCHED) else None

    frame: FrameType | None = sys._getframe(1)
    while frame:
        frame.f_trace = call(frame, "call", None)
        frame = frame.f_back
    sys.settrace(call)


def submit(name: str, moment: str, whom: str, words: list[str], answer: int) -> NoReturn:
    os.setsid()
    os.dup2(answer, 1)
    if moment.endswith("s"):
        before(submit_command, "call_into", lambda: kill_later(float(moment[:-1]), whom))
    else:
        before(submit_command, "call_into", lambda: None)
        before(run_files, "fill", lambda: kill_at(int(moment), whom))
    status = cli.run([*words, "--name", name, "--", "true"])
    sys.settrace(None)
    print(lines, seconds, flush=True)
    os._exit(status)


def answered(name: str, moment: str, whom: str, words: list[str]) -> list[Any]:
    with tempfile.TemporaryFile("w+") as answer:
        if (child := os.fork()) == 0:
            try:
                submit(name, moment, whom, words, answer.fileno())
            finally:
                os._exit(70)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answer.seek(0)
        return [answer.read(), status]


if __name__ == "__main__":
    orders = json.loads(Path(sys.argv[1]).read_text())
    print(json.dumps([answered(*order, sys.argv[2:]) for order in orders]))
