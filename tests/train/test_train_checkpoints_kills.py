"""SIGKILL of one rank, or of all, at random moments while they save: nothing is lost, and a run that goes on
ends with the undisturbed run's weights. The short form of ``python -m benchmarks checkpoint_kills``."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from train_support import module_needs

module_needs("torch", "deepspeed", "numpy", "sklearn")

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.checkpoint_kills import BAD, kill  # noqa: E402


@pytest.mark.parametrize(("kind", "moments"), [("ddp", 12), ("zero1", 5)])
def test_killed_while_saving(kind: str, moments: int) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    counts = kill(kind, moments, seed)
    assert counts["moments"] == moments
    assert counts["resumes"] >= moments / 2
    assert counts["finished"] >= 1
    assert {name: counts[name] for name in BAD} == dict.fromkeys(BAD, 0)
