"""A page of ``jobgen report`` as an example: of two runs that are made up."""

from __future__ import annotations

import math
import re
import tempfile
from pathlib import Path

from support import runs

from jobgen.report.page import page as report_page

_STEPS = 120


def page() -> str:
    """Return the page; it is the same at every build of one version."""
    with tempfile.TemporaryDirectory() as folder:
        made = [
            _run(Path(folder) / "lr-0.1-4711", 0.02, (75, 0)),
            _run(Path(folder) / "lr-0.01-4712", 0.008, (0,)),
        ]
        text = report_page(made, runs.BEGAN + 86_400).replace(folder, "/scratch/me/runs")
        return re.sub('<a href="[^"]*/nodes">ranks</a>', "ranks", text)  # there are no logs beside it


def _run(directory: Path, speed: float, attempts: tuple[int, ...]) -> Path:
    losses = [2.3 * math.exp(-speed * step) + 0.05 * math.sin(step) ** 2 for step in range(_STEPS)]
    return runs.run(directory, runs.rows(losses, 20), attempts, {"state": "finished", "step": _STEPS})
