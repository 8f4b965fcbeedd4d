"""What a run of python -m jobgen.train left."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What a launcher or scheduler around the tests may have set must not reach the runs.
FOREIGN = (
    *("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMI", "PRTE_", "PALS_", "SLURM_", "MPI_"),
    "JOBGEN_",
)


@dataclass
class Finished:
    """What a run left."""

    returncode: int
    stdout: str
    stderr: str
    directory: Path

    @property
    def status(self) -> dict[str, Any]:
        return json.loads((self.directory / "status.json").read_text())

    def metrics(self, event: str) -> list[dict[str, Any]]:
        lines = (self.directory / "metrics.jsonl").read_text().splitlines()
        return [row for row in map(json.loads, lines) if row["event"] == event]

    def losses(self) -> list[float]:
        return [row["loss"] for row in self.metrics("step")]
