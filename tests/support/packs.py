"""Packed arrays as their tests see them: the tasks, the points that began, and what jobgen says of a run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from support import ROOT, warm_python
from support.story import AnyCluster


def tasks_of(array: str, tasks: int) -> list[str]:
    """Return the ids of the tasks of an array."""
    return [array.replace("[]", f"[{n}]") if "[]" in array else f"{array}_{n}" for n in range(tasks)]


def jobgen(cluster: AnyCluster, folder: Path, *words: object) -> str:
    """Run a command of jobgen on the head of a cluster, and return what it prints."""
    command = [*warm_python.jobgen(), *map(str, words)]
    done = cluster.exec("head", command, cwd=folder, timeout=120, env={"PYTHONPATH": str(ROOT)})
    return done.stdout


def state(cluster: AnyCluster, folder: Path, run: str) -> dict[str, Any]:
    """Return what jobgen status says of a run."""
    found: dict[str, Any] = json.loads(jobgen(cluster, folder, "status", "--json", run))[0]
    return found


def begun(folder: Path) -> Counter[int]:
    """Return how often each point began: its program writes its number into the file begun."""
    return Counter(map(int, (folder / "begun").read_text().split()))
