"""The exit statuses of the commands, of a job's script and of the training, and their meanings.

The script's runtime and the training cannot import them: tests/runs/test_exit_statuses.py compares.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import suppress

from jobgen.errors import BAD_INPUT, INTERRUPTED, LOST, NO, PROGRAM_CHANGED, READER_GONE, UNREACHABLE

RESUMABLE = 75

EVERY_COMMAND = {
    0: "done",
    NO: "the scheduler is not installed here, does not answer, or refuses",
    BAD_INPUT: "bad input: an option, a value, a file; nothing has been written",
    LOST: "standard output could not be written: the disk is full, or the stream is closed",
    UNREACHABLE: "a host does not answer, or the connection to it broke",
    INTERRUPTED: "interrupted by Ctrl-C",
    READER_GONE: "the reader of standard output has closed the pipe, as `head` does",
}
# What 1 means for a command of its own.
COMMANDS = {
    "cancel": "the answer to the question was no; or the scheduler refuses",
    "check": "a script has errors",
    "convert": "a part of the script could not be translated",
    "diff": "the runs differ",
    "doctor": "there is a problem",
    "host": "`host check`: a step fails; `host clean`: the answer to the question was no",
    "site": "`site detect`: this machine is no site that jobgen knows",
}
# Further statuses of a command.
MORE = {
    "convert": {PROGRAM_CHANGED: "a container or another command around the program could not be translated"}
}
JOB = {
    0: "finished",
    70: "the allocation differs from the request, or the script is incomplete",
    71: "a file, a module, a command or the program is missing",
    72: "a directory cannot be used",
    73: "no proof that every rank finished",
    74: "the preflight found a fault",
    RESUMABLE: "not finished, but can go on",
    124: "stopped at the wall time",
    INTERRUPTED: "interrupted by Ctrl-C",
}
TRAINING = {
    1: "the training failed",
    2: "bad input",
    3: "finished, but missed its target",
    4: "checkpoints cannot be written",
}


def meaning(status: int | None, training: bool = False) -> str:
    """Return an exit status of a job in words; ``training`` if the program is jobgen's training module."""
    if status is None:
        return "no end is recorded: it runs, or was killed with its script"
    if status > 128 and status != INTERRUPTED:  # 128 plus a signal from the shell, 256 plus a signal from PBS
        with suppress(ValueError):
            return f"killed by {signal.Signals(status - (256 if status > 256 else 128)).name}"
    return (TRAINING if training else {}).get(status) or JOB.get(status) or "failed"


def of_command(name: str) -> Mapping[int, str]:
    """Return the exit statuses of a command, such as ``check``."""
    own = {NO: COMMANDS[name]} if name in COMMANDS else {}
    return dict(sorted((EVERY_COMMAND | own | MORE.get(name, {})).items()))
