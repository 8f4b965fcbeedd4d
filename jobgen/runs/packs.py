"""Packed arrays: the points that each task of an array runs side by side, by the script of the run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from jobgen.runs import run_directory
from jobgen.schedulers.jobs import Job
from jobgen.values import arrays
from jobgen.values.arrays import Array

FOLDER = "pack"  # with the number of a task, its directory; that of a point is task-N


class PackedTask(NamedTuple):
    """The number of points of each task, and all points."""

    size: int
    points: Array

    def by_point(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Yield the jobs, those of tasks once for each of their points, which is their task."""
        points = self.points.indices()
        for job in jobs:
            if job.task is None or not job.task.isdecimal():
                yield job
                continue
            first = int(job.task) * self.size
            yield from (job._replace(task=str(point)) for point in points[first : first + self.size])


def pack_of(run: Path) -> PackedTask | None:
    """Return the pack of a run, or of the array that it is a point of; None if its array is not packed."""
    text = run_directory.script(run)
    size = re.search(r"^job_pack=(\d{1,4})$", text, re.MULTILINE | re.ASCII)
    points = re.search(r"^job_points='?([\d,:-]+)'?$", text, re.MULTILINE | re.ASCII)
    array = arrays.read(points[1]) if points else None
    return PackedTask(int(size[1]), array) if size and int(size[1]) and array else None
