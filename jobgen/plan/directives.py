"""Directives of each scheduler except those for sizes: reservations, mail, output and the like."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from jobgen.errors import JobgenError, one_of, shown
from jobgen.options import OPTIONS
from jobgen.plan.pack import tasks_of
from jobgen.schedulers.base import Scheduler, queue_fault
from jobgen.schedulers.table import SCHEDULERS
from jobgen.spec import Specification
from jobgen.values.arrays import Array


class JobDirectives(NamedTuple):
    """The directives of a job. ``chunk`` follows the request of each node; ``place`` is PBS Pro's.

    ``array`` is one of ``options``; ``log`` is the file of the output; None leaves it to PBS.
    """

    array: str | None
    options: tuple[str, ...]
    chunk: str
    place: str
    mail_on: str
    log: str | None


def check_directives(spec: Specification, scheduler: Scheduler) -> None:
    """Refuse options that the scheduler would refuse, or would ignore without a message.

    Raises:
        JobgenError: the scheduler does not support an option, refuses the name, or a directive
            belongs to another scheduler.
    """
    for key, reason in scheduler.lacks.items():
        if spec.origin(key) != "default":
            raise spec.refuse(key, reason)
    for key in (option.key for option in OPTIONS if option.directive):
        if getattr(spec, key) not in (None, False, ()) and not scheduler.writes(key):
            raise spec.refuse(key, f"{scheduler.title} has no equivalent; remove it, or use --directive")
    if not re.fullmatch(scheduler.name_pattern, spec.name, re.ASCII):
        raise spec.refuse("name", f"a job name {scheduler.name_rule}")
    if not scheduler.behaviour.queue_lists and spec.queue and "," in spec.queue:
        others = one_of(
            one.title
            for one in SCHEDULERS.values()
            if one.behaviour.queue_lists and not one.behaviour.one_host
        )
        raise spec.refuse("queue", f"a list of queues is only for {others}; {scheduler.title} takes one")
    if spec.queue and (fault := queue_fault(scheduler, spec.queue)):
        raise spec.refuse("queue", fault)
    for line in spec.directive:
        if (misplaced := scheduler.misplaced(line)) is not None:
            where = spec.origin("directive")
            raise JobgenError(f"--directive {shown(line)} ({where}): {misplaced}", "directive")


def directives(spec: Specification, scheduler: Scheduler, points: int) -> JobDirectives:
    """Return the directives of a job; ``points`` are those of a sweep, or 0.

    Raises:
        JobgenError: the scheduler does not accept a value.
    """
    array = _array(spec, scheduler, points)
    own: list[str] = []
    for key in (*scheduler.forms, *scheduler.lists):
        if (value := getattr(spec, key)) not in (None, False):
            own += _accepted(spec, key, scheduler.lines, key, value)
    scheduler.check(spec)
    chunk = ""
    if "constraint" in scheduler.in_request and spec.constraint:
        chunk = _accepted(spec, "constraint", scheduler.constraint, spec.constraint)
    events = spec.mail_on or (("begin", "end", "fail") if spec.mail else ())
    return JobDirectives(
        array=array,
        options=tuple(line for line in (array, _dependencies(spec, scheduler), *own) if line),
        chunk=chunk,
        place="scatter:excl" if spec.exclusive else "scatter",
        mail_on=scheduler.mail(events),
        log=_log(spec, scheduler, bool(array)),
    )


def _array(spec: Specification, scheduler: Scheduler, points: int) -> str | None:
    """Return the directive of the array, None if there is none; ``points`` are those of a sweep, or 0."""
    array = points_of(spec, scheduler, points)
    if array is None:
        return None
    if not array.ranges:
        why = "limits an array without indices; add them, as in 0-9%5 (only a sweep needs none)"
        raise spec.refuse("array", why)
    if spec.requeue and not scheduler.behaviour.requeues_tasks:
        raise spec.refuse("requeue", f"{scheduler.title} would submit the whole array again; remove it")
    tasks = tasks_of(spec, array)
    text = scheduler.array(tasks) or (scheduler.one_task if spec.pack and tasks.size == 1 else None)
    if text is None:
        key = "array" if spec.array else "sweep"
        raise spec.refuse(key, f"{scheduler.title} takes one range{scheduler.array_rule}")
    return scheduler.request_forms["array"].format(text)


def points_of(spec: Specification, scheduler: Scheduler, points: int) -> Array | None:
    """Return the array, of all points if it is that of a sweep with so many ``points``; None without one.

    Raises:
        JobgenError: the scheduler has no arrays, or the sweep has not all of the points.
    """
    return _array_of_sweep(spec, scheduler, points) if points else spec.array


def _array_of_sweep(spec: Specification, scheduler: Scheduler, points: int) -> Array:
    """Return the array of all points, or of those in --array, with its limit."""
    if "array" not in scheduler.request_forms:
        title = "a local run" if scheduler.behaviour.one_host else f"a script of {scheduler.title}"
        raise spec.refuse("sweep", f"{title} is one job; run one point with its options")
    array = spec.array or Array(())
    if array.last >= points:
        raise spec.refuse("array", f"the sweep has only the points 0 to {points - 1}")
    return array if array.ranges else Array(((0, points - 1, 1),), array.limit)


def _dependencies(spec: Specification, scheduler: Scheduler) -> str | None:
    """Return all dependencies as one directive, grouped by kind; None if there are none."""
    kinds: dict[str, list[str]] = {}
    for kind, job in spec.after:
        kinds.setdefault(_accepted(spec, "after", scheduler.dependency, kind, job), []).append(job)
    text = ",".join(f"{kind}:{':'.join(jobs)}" for kind, jobs in kinds.items())
    return scheduler.request_forms["dependency"].format(text) if text else None


def _accepted(spec: Specification, key: str, form: Callable[..., Any], *values: object) -> Any:
    """Return values in their form for the scheduler; raise JobgenError if it does not accept them."""
    try:
        return form(*values)
    except ValueError as error:
        raise spec.refuse(key, str(error)) from None


def _log(spec: Specification, scheduler: Scheduler, array: bool) -> str | None:
    """Return the path of the output with the patterns of the scheduler."""
    log = spec.log
    if log is None:
        return scheduler.default_log(spec.name, array)
    codes = set(re.findall(r"%(.)", log))
    if array and not scheduler.one_file_a_task & codes:
        raise spec.refuse("log", "all tasks of the array would write to one file; add %a")
    if not array and {"a", "A"} & codes:
        raise spec.refuse("log", "%A and %a are only for arrays; the id of a job is %j")
    path: str = _accepted(spec, "log", scheduler.log, spec.name, log)
    return path


def unpattern(path: str) -> str:
    """Return a path of PBS with Slurm's patterns: the inverse of ``Scheduler.log``."""
    path = re.sub(r"\$\{(\w+)\}", r"$\1", path.replace("%", "%%"))
    for scheduler in SCHEDULERS.values():
        for code, word in scheduler.log_codes.items():
            path = path.replace(word, f"%{code}")
    return path.replace("$PBS_JOBNAME", "%x")
