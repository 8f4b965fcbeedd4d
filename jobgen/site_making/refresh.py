"""The text that ``jobgen site refresh`` writes, and what it changes at a site."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from jobgen.errors import JobgenError
from jobgen.schedulers.cluster import Facts, QueueFacts
from jobgen.site_making.creation import LoginNode, closed, without_reservations
from jobgen.site_making.queue_tables import queue_table
from jobgen.sites.display import toml
from jobgen.sites.site_file import Queue, Site

_HEAD = """\
# Written by jobgen site refresh, which overwrites it: the queues and nodes that the scheduler listed.
refreshed = {today}
scheduler = {scheduler}
commands = {commands}
host = {host}
"""
_SHOWN = ("nodes", "walltime", "routes_to", "max_jobs", "max_gpus")


def text_of(site: Site, facts: Facts, host: LoginNode) -> str:
    """Return the text of the file for a site. Queues that are closed to the user of ``host`` are not enabled.

    Raises:
        JobgenError: the scheduler lists no queue.
    """
    by_qos = site.file.rules.queue == "--qos"
    facts = without_reservations(site.scheduler, facts._replace(queues=facts.qos) if by_qos else facts)
    if not facts.queues:
        what = "QoS, and a queue of this site is one" if by_qos else "queue"
        raise JobgenError(f"site refresh: the scheduler lists no {what}")
    names = {one.name for one in facts.queues}
    head = _HEAD.format(
        today=datetime.date.today().isoformat(),
        scheduler=toml(site.file.scheduler),
        commands=toml(facts.commands),
        host=toml(host.name),
    )
    text = head
    for one in facts.queues:
        why = closed(one, facts, host)
        text += queue_table(_known(one, names), one.enabled and not why, why)
    return text


def _known(queue: QueueFacts, names: set[str]) -> QueueFacts:
    """Return a queue without its routes, unless all of them are listed."""
    return queue if names.issuperset(queue.routes_to) else queue._replace(routes_to=())


def differences(before: Site, after: Site) -> Iterator[str]:
    """Yield a line for each queue that differs from what the site file says of it."""
    for name, new in after.queues.items():
        old = before.queues.get(name)
        if old is None:
            if new.enabled:
                yield f"{name}: is not in the site file"
        elif old.enabled and not new.enabled:
            there = after.machine is not None and name in after.machine.site.queues
            yield f"{name}: {'is not enabled' if there else 'does not exist'}"
        elif changes := [*_changes(old, new)]:
            yield f"{name}: {', '.join(changes)}"


def _changes(old: Queue, new: Queue) -> Iterator[str]:
    for key in _SHOWN:
        value = getattr(new, key)
        if value != getattr(old, key) and value not in (None, ()):
            before = getattr(old, key)
            was = f", not {toml(before)}" if before not in (None, ()) else ""
            yield f"{key} = {toml(value)}{was}"
