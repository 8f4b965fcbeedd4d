"""Warnings on what a queue grants one user at a time: further jobs are accepted, and wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobgen.errors import counted
from jobgen.sites.limits import JobSize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobgen.sites.site_file import Site
    from jobgen.spec import Specification
    from jobgen.values.arrays import Array


def at_a_time(spec: Specification, site: Site, name: str, request: JobSize) -> Iterator[str]:
    """Yield warnings on an array, a sweep or a dependency whose jobs do not run at the same time."""
    queue = site.queues[name]
    gpus = request.nodes * request.gpus_per_node
    tasks = _tasks(spec.array) if spec.array or spec.sweep else 1
    by_gpus = queue.max_gpus // gpus if queue.max_gpus is not None and gpus else None
    for most, reason in (
        (queue.max_jobs, f"{counted(queue.max_jobs or 0, 'job')} of a user at a time"),
        (by_gpus, f"{counted(queue.max_gpus or 0, 'accelerator')} of a user at a time"),
    ):
        if most and (tasks is None or tasks > most):
            what = spec.setting_text("array") if spec.array else "the sweep"
            yield f"{what}: queue {name} of {site.title} runs {reason}: further tasks wait until others end"
            return
    if spec.after and queue.max_jobs == 1:
        yield (
            f"{spec.setting_text('after')}: queue {name} of {site.title} runs 1 job of a user at a time: "
            "the job also waits for the end of the others there"
        )


def _tasks(array: Array | None) -> int | None:
    """Return the number of tasks at a time; None if the points of a sweep determine it."""
    if array is None or array.limit is not None or not array.ranges:
        return array and array.limit
    return sum((last - first) // step + 1 for first, last, step in array.ranges)
