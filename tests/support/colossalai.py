"""An environment with ColossalAI, which cannot be that of the tests: its pins exclude today's torch."""

from __future__ import annotations

import fcntl
import functools
import os
import subprocess
import sys
from pathlib import Path

from support.require import absent, on_ci

ROOT = Path(__file__).parents[2]


@functools.cache
def colossalai_python() -> Path:
    """Its python: that of `make colossalai`; on CI, which must not skip, one that is kept in the user's cache."""
    made = ROOT / ".venv-colossalai/bin/python"
    if made.exists():
        return made
    if not on_ci():
        absent("there is no .venv-colossalai: run make colossalai")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "jobgen")
    cache.mkdir(parents=True, exist_ok=True)
    venv = cache / f"colossalai-{sys.version_info.major}.{sys.version_info.minor}"
    with (cache / "colossalai.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # It is made whole or anew: the mark comes last. The checkout that it is installed from may move.
        mark, wanted = venv / "made", (ROOT / "constraints-colossalai.txt").read_text() + str(ROOT)
        if not mark.exists() or mark.read_text() != wanted:
            make = ["make", "colossalai", f"COLOSSALAI={venv}", f"PYTHON={sys.executable}"]
            done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                absent(f"make colossalai failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
            mark.write_text(wanted)
    return venv / "bin/python"
