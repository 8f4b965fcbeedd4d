"""Syntax check of the user's shell code: bash itself parses it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from functools import lru_cache

from jobgen.errors import JobgenError, setting
from jobgen.spec import Specification


def check_syntax(spec: Specification, keys: Iterable[str]) -> None:
    """Parse these blocks with bash without running them.

    Raises:
        JobgenError: a block has a syntax error; the message is bash's own.
    """
    for key in keys:
        if (code := getattr(spec, key)) and (message := complaint(code)):
            origin = spec.origin(key)
            raise JobgenError(f"{setting(key, origin)} ({origin}): bash cannot read it: {message}")


@lru_cache(maxsize=64)
def complaint(code: str) -> str:
    """Return bash's message from the line number on; empty if there is none, or if bash cannot be run."""
    env = {**os.environ, "LC_ALL": "C"}
    options = ["-O", "extglob"] if "extglob" in code else []  # the option changes what bash can read
    command = ["bash", "--norc", *options, "-n"]
    try:
        done = subprocess.run(command, input=os.fsencode(code), capture_output=True, env=env, check=False)
    except OSError:
        return ""
    first = os.fsdecode(done.stderr).partition("\n")[0]
    return first.removeprefix("bash: ") if done.returncode or first else ""
