"""The tasks of an array: which there are, and how one of them is submitted once more."""

from __future__ import annotations

from typing import NamedTuple

from jobgen import arrays
from jobgen.schedulers import SCHEDULERS
from jobgen.spec import JobSpec

_WORDS = {"pbspro": "-J ", "torque": "-t ", "slurm": "--array="}
# The one task $job_index. PBS Pro has no array of one, but takes a step beyond the end of the range.
_ONE = {"pbspro": "$job_index-$((job_index + 1)):2", "torque": "$job_index", "slurm": "$job_index"}


class Tasks(NamedTuple):
    """``array`` is the directive, or None; ``again`` the words that go on with this job by hand."""

    array: str | None
    again: str


def tasks(spec: JobSpec, row: str) -> Tasks:
    """Resolve the array.

    Raises:
        JobgenError: the scheduler cannot express it, or it contradicts another option.
    """
    command = SCHEDULERS[row].command
    if spec.array is None:
        return Tasks(None, f"cd ${{job_dir@Q}} && {command} job.sh")
    if not spec.array.ranges:
        raise spec.refuse("array", "is the limit alone, which only a sweep takes; name the indices")
    if spec.requeue and row != "slurm":
        raise spec.refuse("requeue", "PBS would submit the whole array again; leave it out")
    text = arrays.write(spec.array, row)
    if text is None:
        why = "a step needs a list that is too long" if row == "torque" else "and two indices at least"
        raise spec.refuse("array", f"{SCHEDULERS[row].title} takes one range, {why}")
    words = _WORDS[row]
    return Tasks(words + text, f"cd ${{job_array_dir@Q}} && {command} {words}{_ONE[row]} job.sh")
