"""Ranks that are killed at random moments while they save: the number of kills and of lost checkpoints.

No checkpoint may be lost. See checkpoint_killing.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure

MOMENTS = {"ddp": 400, "ddp-async": 100, "fsdp": 100, "fsdp-async": 100, "zero1": 100}
BAD = ("lost", "damaged", "wrong resumes", "wrong ends")


def figures() -> Iterator[Figure]:
    for kind, moments in MOMENTS.items():
        counts = kill(kind, moments)
        yield Figure(f"{kind}, 2 ranks: kill moments", counts["moments"], "")
        for name in ("one rank", "in a save", "resumes", "finished", *BAD):
            yield Figure(f"  {name}", counts[name], "")
        yield Figure("  in all", counts["seconds"], "s")


def kill(kind: str, moments: int, seed: int = 0) -> dict[str, float]:
    """Run checkpoint_killing.py and return its counts."""
    program = [sys.executable, "-m", "benchmarks.checkpoint_killing", kind, str(moments), str(seed)]
    top = Path(__file__).parents[1]
    done = subprocess.run(program, cwd=top, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])
