"""Conversion of a request to the directives of one scheduler."""

from __future__ import annotations

from jobgen.convert.directive_options import Written
from jobgen.convert.request_reader import dependencies
from jobgen.resources.accelerators import ACCELERATORS, GENERIC_RESOURCES
from jobgen.schedulers import arrays
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.directives import unpattern
from jobgen.schedulers.pbs import EVENT_LETTERS
from jobgen.schedulers.request import Request
from jobgen.schedulers.wanted import Wanted

Lost = list[tuple[str, str]]


def write(wanted: Wanted, source: Scheduler, target: Scheduler, extra: Written) -> tuple[list[str], Lost]:
    """Return the lines of the directives, and what this scheduler cannot express, with the reason."""
    lost: Lost = []
    values = _values(wanted, source, target, extra.chunk, lost)
    lines = []
    for key, form in target.request_forms.items():
        value = values.get(key)
        found = value if isinstance(value, list) else [value] * bool(value)
        lines += [form.format(one) for one in found]
    return [f"{target.prefix} {line}" for line in (*lines, *extra.lines)], lost


def _values(
    wanted: Wanted, source: Scheduler, target: Scheduler, chunk: str, lost: Lost
) -> dict[str, object]:
    """Return the values of the target's ``request_forms``."""
    asked, queue = wanted.request, wanted.request.queue
    if queue and target.is_reservation(queue):
        lost.append((f"the queue {queue}", f"{target.title} reads a queue of this name as a reservation"))
        queue = None
    resources = _resources(asked, target, chunk, lost)
    array, depend = _array(asked, target, lost), ",".join(dependencies(asked, target))
    return {
        "name": asked.name and target.job_name(asked.name),
        "queue": queue,
        "account": asked.account,
        "resources": resources,
        "walltime": None if asked.walltime is None else target.clock(asked.walltime),
        "array": array and target.array_form.format(array),
        "dependency": depend and target.dependency_form.format(depend),
        **_logs(asked, source, target, lost),
        "join": asked.join,
        "mail": _mail(asked, source, target),
        "mail_user": asked.mail_user,
        "directory": wanted.directory,
        "exclusive": asked.exclusive and target.forms.get("exclusive"),
        "hold": wanted.hold,
        "requeue": asked.rerun is True,
        "no_requeue": asked.rerun is False,
        "all_variables": wanted.all_variables,
        "names": ",".join(wanted.names),
    }


def _resources(asked: Request, target: Scheduler, chunk: str, lost: Lost) -> list[str]:
    number, devices = asked.gpus_per_node, None
    if number is not None:
        devices = target.devices(ACCELERATORS[GENERIC_RESOURCES.get(asked.accelerator, "cuda")])
    lines, lacking = target.resources(asked, (devices or "").format(n=number), chunk)
    lost += lacking
    if number and devices is None:
        lost.append((f"{number} x {asked.accelerator}", f"{target.title} supports only GPUs"))
    return lines


def _array(asked: Request, target: Scheduler, lost: Lost) -> str | None:
    if asked.array is None:
        return None
    array = arrays.read(asked.array)
    text = target.array(array) if array else None
    if text is None:
        lost.append((f"the array {asked.array}", "PBS Pro takes one range of at least two indices"))
    return text


def _mail(asked: Request, source: Scheduler, target: Scheduler) -> str:
    if source.family == target.family:
        return asked.mail
    return target.mail(event for event, letter in EVENT_LETTERS.items() if letter in asked.mail)


def _logs(asked: Request, source: Scheduler, target: Scheduler, lost: Lost) -> dict[str, str]:
    """Return the output files; another scheduler gets the names that they have by default."""
    found = {}
    for key, path in {"output": asked.output, "error": None if asked.join else asked.error}.items():
        if not path and source.family != target.family and not (asked.join and key == "error"):
            path = source.default_logs.get(key, "").format("%A.%a" if asked.array else "%j")
        if not path:
            continue
        log = path if source.percent_codes else unpattern(path)
        if source.copies_logs and not target.copies_logs:
            log = log.rpartition(":")[2]
        try:
            found[key] = target.log(asked.name or "job", log)
        except ValueError as error:
            lost.append((f"the output file {path}", str(error)))
    return found
