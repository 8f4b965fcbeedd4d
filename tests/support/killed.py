"""Run a command on a host of a cluster, and kill it at some moment.

    killed.py SECONDS WHEN WHOM COMMAND...

WHEN is "begun" (after so many seconds) or a directory (after so many seconds from when a submission is recorded in
a new folder of it). WHOM is "one" (the command alone) or "all" (what it has started, too).
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main(seconds: str, when: str, whom: str, *command: str) -> None:
    known = set() if when == "begun" else set(Path(when).glob("*/submission"))
    process = subprocess.Popen(command, start_new_session=True)
    while when != "begun" and process.poll() is None and set(Path(when).glob("*/submission")) <= known:
        time.sleep(0.001)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(float(seconds))
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if whom == "all" else os.kill)(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
