"""Checks of a job against a site: the limits of its queue, and what the site requires of every job.

A limit that the machine has confirmed refuses a job. One that only the site file states may be old: it gives
a warning, and the scheduler decides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import JobgenError, counted, nearest, one_of
from jobgen.sites.limits import JobSize, accepted_range, accepts, distance, excesses
from jobgen.sites.sources import confidence, newest
from jobgen.values.parsers import QUEUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobgen.sites.site_file import Site
    from jobgen.spec import Specification
    from jobgen.values.arrays import Array


class _Fault(NamedTuple):
    """A value that a queue does not accept: the key of the option, and the sentence."""

    key: str
    text: str


def check(spec: Specification, request: JobSize, lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return the warnings on a job; ``lines`` are the directives of the site and of the user.

    Raises:
        JobgenError: the machine has no such queue or has confirmed a limit that is exceeded, the site does
            not support an option, or a mandatory value is missing.
    """
    site = spec.site
    assert site is not None
    own = site.values.get("accelerator")
    if own and spec.accelerator not in (None, own, "cpu"):
        raise spec.refuse("accelerator", f"{site.title} has {own}; remove it")
    if spec.qos and site.file.rules.queue == "--qos":
        raise spec.refuse("qos", f"a queue of {site.title} is a QoS: use --queue {spec.qos}")
    for key, reason in site.file.lacks.items():
        if spec.origin(key) not in ("default", site.origin):
            raise spec.refuse(key, f"{site.title}: {reason}")
    warnings: tuple[str, ...] = ()
    if site.queues and not spec.reservation and not site.scheduler.is_reservation(spec.queue):
        warnings = tuple(_check_queue(spec, site, request))
    queue = site.queues.get(spec.queue) if spec.queue else None
    demanded = {**site.file.mandatory, **(queue.mandatory if queue else {})}
    for key, example in demanded.items():
        _check_mandatory(spec, site, key, example, lines)
    return warnings


def _check_queue(spec: Specification, site: Site, request: JobSize) -> Iterator[str]:
    """Refuse a job that exceeds a limit of the machine; yield a warning for each limit of the site file."""
    queue = spec.queue or min(site.queues, key=lambda one: _distance(site, one, request))
    confirmed = _confirmed(spec, site, queue, request)
    for key, text in confirmed:
        yield f"{spec.setting_text(key)}: {text}"
    for key, text in _faults(spec, site, site, queue, request):
        if key not in {one.key for one in confirmed}:
            sentence = f"{text} ({_source(site)}; jobgen site refresh asks the scheduler)"
            if confidence(site, "queues") == "machine" and (key == "queue" or spec.qos is None):
                raise spec.refuse(key, sentence)
            yield f"{spec.setting_text(key)}: {sentence}"
    if queue in site.queues:
        yield from _at_a_time(spec, site, queue, request)


def _at_a_time(spec: Specification, site: Site, name: str, request: JobSize) -> Iterator[str]:
    """Yield a warning on an array, a sweep or a dependency with more jobs than the queue runs at a time."""
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


def _confirmed(spec: Specification, site: Site, queue: str, request: JobSize) -> list[_Fault]:
    """Return the faults of a job with --qos by the limits of the machine: a QoS may allow more.

    Raises:
        JobgenError: the machine has no such queue, or a limit is exceeded without --qos.
    """
    if (machine := site.machine) is None:
        return []
    origin = f"{machine.commands} on {machine.date}; jobgen site refresh asks again"
    faults = [
        one._replace(text=f"{one.text} ({origin})")
        for one in _faults(spec, machine.site, site, queue, request)
    ]
    for key, text in faults:
        if key == "queue" or spec.qos is None:
            raise spec.refuse(key, text)
    return faults


def _distance(site: Site, name: str, request: JobSize) -> tuple[bool, int]:
    return not site.queues[name].enabled, len(excesses(site, name, request))


def _source(site: Site) -> str:
    """Return the source of the queues in the site file, in words: its confidence and its date."""
    day = newest(site, "queues")
    words = {
        "machine": "the scheduler of this machine",
        "manual": "the manual",
        "staff": "material of the staff",
        "users": "reports of users",
        "unknown": "the site file, whose source is unknown",
    }
    return words[confidence(site, "queues")] + (f" of {day}" if day else "")


def _faults(spec: Specification, facts: Site, site: Site, queue: str, request: JobSize) -> Iterator[_Fault]:
    """Yield the values of a job that a queue does not accept.

    The limits are those of ``facts``: the site, or its machine alone. The queues in remedies are of ``site``.
    """
    if queue not in facts.queues:
        known = [name for name, one in site.queues.items() if one.enabled]
        yield _Fault(
            "queue", f"{site.title} has no such queue: use {one_of(known)}{nearest(queue, facts.queues)}"
        )
        return
    if not facts.queues[queue].enabled:
        remedy = _remedy(site, queue, "queue", _elsewhere(spec, request))
        about = f" ({facts.queues[queue].about})" if facts.queues[queue].about else ""
        text = f"queue {queue} of {site.title} is not enabled{about}; {remedy}"
        yield _Fault("queue", text)
        return
    remedies = ""
    for key, limit, *_ in excesses(facts, queue, request):
        if key == "cpus_per_rank" and spec.cpus_per_node is not None:
            key = "cpus_per_node"
        if key == "nodes" and spec.spare_nodes:
            limit += f", and {spec.nodes} with {spec.spare_nodes} spare nodes are {request.nodes}"
        remedy = _remedy(site, queue, key, request)
        again = "" if remedy == remedies else f"; {remedy}"
        yield _Fault(key, f"queue {queue} of {site.title} takes {limit}{again}")
        remedies = remedy


def _elsewhere(spec: Specification, request: JobSize) -> JobSize:
    """Return a request without the cores and the memory that come from the nodes of its queue: those of
    another queue differ."""
    by_site = {key for key in ("cpus_per_rank", "mem") if spec.is_of_site(key)}
    cores = 1 if "cpus_per_rank" in by_site else request.cpus_per_node
    return request._replace(cpus_per_node=cores, mem=None if "mem" in by_site else request.mem)


def _remedy(site: Site, queue: str, key: str, request: JobSize) -> str:
    """Return the queues that accept the job; without any, the changes with which the nearest queues do."""
    takers = [one for one in site.queues if one != queue and accepts(site, one, request)]
    takers.sort(key=lambda one: queue not in site.queues[one].routes_to)  # routing queues that lead there
    if takers:
        limit = accepted_range(site, takers[0], key, request.nodes) if len(takers) == 1 else ""
        return f"{takers[0]} takes {limit}: " * bool(limit) + f"use --queue {one_of(takers)}"
    would = _would(site, queue, request)
    return f"no queue accepts it, but {one_of(would)}" if would else "no queue accepts it"


def _would(site: Site, queue: str, request: JobSize) -> list[str]:
    """Return the changes with which the nearest queues accept a job, at most two.

    The nearest queue has devices of the type that the job requests, the fewest limits that the job exceeds,
    and the smallest factor. A second one is named only if its factor is not more than four times as large.
    """
    changes = {one: excesses(site, one, request) for one in site.queues if site.queues[one].enabled}
    far = {one: distance(found) for one, found in changes.items() if found}
    near = sorted(far, key=lambda one: (*far[one], one != queue))
    alike = [one for one in near if far[one][:2] == far[near[0]][:2] and far[one][2] <= 4 * far[near[0]][2]]
    return [f"{one} would with {' and '.join(each.change for each in changes[one])}" for one in alike[:2]]


def _check_mandatory(spec: Specification, site: Site, key: str, example: str, lines: tuple[str, ...]) -> None:
    """Refuse a job without a mandatory value: of an option, or of a directive that begins with the key."""
    if key.startswith("-l "):
        there = any(re.match(rf"-l *(.*[, ])?{re.escape(key[3:])}=", line) for line in lines)
        how = f"--directive '{key}={example}'"
    elif key.startswith("-"):
        there, how = any(line.startswith(key) for line in lines), f"--directive '{key}={example}'"
    else:
        value = getattr(spec, key)
        there, how = (
            value not in (None, ()) and (key, value) != ("walltime", QUEUE),
            f"--{key.replace('_', '-')} {example}",
        )
    if not there:
        what = key.removeprefix("-l ").lstrip("-")
        raise JobgenError(f"{site.title} requires {what}: add {how}, or set it in the job file")
