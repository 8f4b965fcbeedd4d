"""Shell code of the user: bash itself says whether it can be read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from functools import lru_cache

from jobgen.errors import JobgenError, setting
from jobgen.spec import JobSpec


def check_syntax(spec: JobSpec, keys: Iterable[str]) -> None:
    """Have bash read these blocks, without running anything of them.

    Raises:
        JobgenError: it cannot; the sentence is bash's own.
    """
    for key in keys:
        if said := _complaint(getattr(spec, key)):
            origin = spec.origin(key)
            raise JobgenError(f"{setting(key, origin)} ({origin}): bash cannot read it: {said}")


@lru_cache(maxsize=64)
def _complaint(code: str) -> str:
    """What bash says, from the line number on; nothing where it is content, or not there to be asked."""
    env = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["bash", "--norc", "-n"], input=os.fsencode(code), capture_output=True, env=env, check=False
        )
    except OSError:
        return ""
    first = os.fsdecode(done.stderr).partition("\n")[0]
    return first.removeprefix("bash: ") if done.returncode or first else ""
