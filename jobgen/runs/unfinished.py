"""The tasks of an array that have not finished, as an array of their own in the same directories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from jobgen.errors import JobgenError, counted
from jobgen.plan.directives import points_of
from jobgen.plan.plan import Plan, resolve
from jobgen.runs import regular_file, states
from jobgen.values import arrays
from jobgen.values.arrays import Array


def without_finished(run: Path, plan: Plan) -> Plan:
    """Return the plan of a run with only those points of its array that have not finished; the plan itself if
    no point of it has begun.

    Raises:
        JobgenError: all have finished, or the run has not ended.
    """
    array = points_of(plan.spec, plan.scheduler, plan.sweep.points if plan.sweep else 0)
    if array is None:
        return plan
    later = regular_file.text(run / states.CONTINUED).split()
    runs = [run, *(run.parent / name for name in later if (run.parent / name).is_dir())]
    found, _ = states.states(runs)  # which are fetched from their host
    tasks = states.read(run).tasks
    if not tasks:
        return plan
    _check_end(run, found)
    done = {task.directory.name for task in tasks if task.status == 0}
    rest = [index for index in array.indices() if f"task-{index}" not in done]
    if not rest:
        raise JobgenError(f"--again {run.name}: all of its {counted(array.size, 'task')} have finished")
    some = Array(arrays.ranges_of(rest), array.limit) if done else array
    origins = {**plan.spec.origins, "array": f"--again {run.name}"}
    texts = {**plan.spec.texts, "array": some.text()}
    spec = plan.spec._replace(array=some, origins=origins, texts=texts)
    if spec.pack is None and plan.scheduler.array(some) is None:  # any points are tasks of a packed array
        spec = spec._replace(pack=1, origins={**origins, "pack": f"--again {run.name}"})
    return resolve(spec)


def _check_end(run: Path, found: Sequence[states.State]) -> None:
    """Refuse a run that runs still, or goes on as another one."""
    for one in found:
        if one.live:
            what = (
                f"it is {one.state}"
                if one.name == run.name
                else f"it goes on as {one.name}, which is {one.state}"
            )
            raise JobgenError(f"--again {run.name}: {what}; wait for its end, or cancel it")


def link(run: Path, directory: Path, points: Array) -> list[str]:
    """Let the tasks of a new run directory go on in those of an earlier run, and return their names.

    Raises:
        JobgenError: a link cannot be made.
    """
    names = [name for index in points.indices() if (run / (name := f"task-{index}")).is_dir()]
    try:
        for name in names:
            (directory / name).symlink_to(os.path.relpath((run / name).resolve(), directory))
    except OSError as error:
        raise JobgenError(f"{directory} cannot be written: {error.strerror}") from None
    with suppress(OSError), open(run / states.CONTINUED, "a", encoding="utf-8") as file:
        file.write(f"{directory.name}\n")
    return names
