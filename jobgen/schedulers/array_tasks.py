"""The tasks of an array."""

from __future__ import annotations

from jobgen.schedulers.arrays import Array
from jobgen.schedulers.base import Scheduler
from jobgen.spec import JobSpec


def tasks(spec: JobSpec, scheduler: Scheduler, points: int) -> str | None:
    """Return the directive of the array, None if there is none; ``points`` are those of a sweep, or 0.

    Raises:
        JobgenError: the scheduler cannot express it, or it contradicts another option.
    """
    asked = spec.array
    if points:
        asked = _of_sweep(spec, scheduler, points)
    if asked is None:
        return None
    if not asked.ranges:
        raise spec.refuse("array", "is the limit alone, which only a sweep takes; name the indices")
    if spec.requeue and not scheduler.requeues_tasks:
        raise spec.refuse("requeue", "PBS would submit the whole array again; leave it out")
    text = scheduler.array(asked)
    if text is None:
        key = "array" if spec.array else "sweep"
        raise spec.refuse(key, f"{scheduler.title} takes one range, {scheduler.array_rule}")
    return scheduler.array_form.format(text)


def _of_sweep(spec: JobSpec, scheduler: Scheduler, points: int) -> Array:
    """Return the array of all points, or of those in --array, with its limit."""
    if "array" in scheduler.lacks:
        raise spec.refuse("sweep", "a local run is one job; run a point of it by its own options")
    asked = spec.array or Array(())
    if asked.last >= points:
        raise spec.refuse("array", f"the sweep has the points 0 to {points - 1}, and none beyond")
    return asked if asked.ranges else Array(((0, points - 1, 1),), asked.limit)
