"""The facts of the machine: the queues and nodes that its scheduler listed, kept by ``jobgen site refresh``.

They win over those of the site file. Cores and memory of a node are the exception: the lesser number holds.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from jobgen.errors import JobgenError, shown
from jobgen.jobfile.locations import line_of
from jobgen.jobfile.reader import decode, read_text
from jobgen.jobfile.tables import TABLES
from jobgen.sites.search import machine_file
from jobgen.sites.site_file import MachineFacts, NodeTable, Queue, Site, SiteFile
from jobgen.sites.value_checks import check_site
from jobgen.values import parsers

_LIMITS = ("nodes", "walltime", "routes_to", "max_jobs", "max_gpus")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file."""

    refreshed: datetime.date
    scheduler: str
    commands: str = ""
    host: str = ""
    queues: dict[str, Queue] = {}


def with_machine(site: Site, names: Sequence[str]) -> Site:
    """Return a site with the facts of its machine; ``names`` are those of the site and of what it extends.

    Raises:
        JobgenError: the file of the facts cannot be read, or something in it is wrong.
    """
    path = next((path for path in map(machine_file, names) if os.path.exists(path)), None)
    return site if path is None else merge(site, path, read_text(path, f"the file {shown(path)}"))


def merge(site: Site, path: str, text: str) -> Site:
    """Return a site with the facts in ``text``, the content of the file at ``path``.

    Raises:
        JobgenError: something in it is wrong.
    """
    data = decode(text, path)
    try:
        file = msgspec.convert(data, _File)
    except msgspec.ValidationError as error:
        raise JobgenError(f"{path}: {error}; jobgen site refresh writes it anew") from None
    if file.scheduler != site.file.scheduler:
        other = f"{path}: is for {shown(file.scheduler)}, and {site.title} has {site.file.scheduler}"
        raise JobgenError(f"{other}; jobgen site refresh writes it anew")
    tables = _by_key(site, data.get("queues", {}))
    own = _machine_site(site, path, text, tables)
    check_site(own)
    queues, places = dict(site.data.get("queues", {})), dict(site.places)
    for key in {**queues, **tables}:
        change = _change(site, key, tables.get(key))
        queues[key] = {**_without_nodes(queues.get(key, {}), change), **change}
        at = ("queues", key)
        places |= {one: own.places.get(one, (path, 2)) for one in _leaves(change, at)}
    content = {**site.data, "queues": queues}
    new = msgspec.convert({key: value for key, value in content.items() if key not in TABLES}, SiteFile)
    machine = MachineFacts(path, file.refreshed, file.commands, own)
    return site._replace(file=new, data=content, places=places, machine=machine)


def _by_key(site: Site, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of the scheduler's queues by the keys of the site file; a key that is another name of
    a queue has its own limits, those of a QoS for instance."""
    found: dict[str, Any] = {}
    for key in dict.fromkeys((*site.queues, *tables)):
        name = (site.queues[key].name if key in site.queues else None) or key
        if name in tables:
            kept = tables[name].items()
            found[key] = {one: value for one, value in kept if name == key or one not in _LIMITS}
    return found


def _machine_site(site: Site, path: str, text: str, tables: Mapping[str, Any]) -> Site:
    """Return a site that has the facts of the machine alone."""
    places: dict[tuple[str, ...], tuple[str, int | None]] = {}
    for key, table in tables.items():
        named = (site.queues[key].name if key in site.queues else None) or key
        for at in _leaves(table, ("queues", key)):
            places[at] = (path, line_of(text, ("queues", named, *at[2:])))
    file = SiteFile(
        title=site.title, scheduler=site.file.scheduler, queues=msgspec.convert(tables, dict[str, Queue])
    )
    return Site(site.name, path, file, {}, {}, {"queues": dict(tables)}, places)


def _least(node: NodeTable, change: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cores and the memory of a node that the machine lists, or those of the site file if these
    are less, with their part for each device: a scheduler counts all of them, and a site file those that a
    job can request."""
    least: dict[str, Any] = {}
    if "cores" in change and node.cores is not None:
        least["cores"] = min(node.cores, change["cores"])
        if (each := change.get("cores_per_gpu")) is not None:
            share = max(1, each * least["cores"] // change["cores"])
            least["cores_per_gpu"] = min(share, node.cores_per_gpu or share)
    if "memory" in change and node.memory is not None:
        least["memory"] = min(node.memory, change["memory"], key=parsers.memory)
    return least


def _leaves(table: Mapping[str, Any], at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the values in a table and in those below it."""
    for key, value in table.items():
        yield from _leaves(value, (*at, key)) if isinstance(value, dict) else ((*at, key),)


def _without_nodes(queue: Mapping[str, Any], change: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a queue without the devices and kinds of nodes that a change replaces."""
    old = {"gpus", "devices", "kinds"} if change.keys() & {"gpus", "devices", "kinds"} else set()
    return {key: value for key, value in queue.items() if key not in old}


def _change(site: Site, key: str, table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of a queue that replace those of the site file; a queue that the machine lacks takes
    no jobs."""
    if table is None:
        return {"enabled": False}
    change = dict(table)
    queue = site.queues.get(key)
    node = site.node(key) if queue is not None else NodeTable()  # it is of the queues of the site file
    change = {**change, **_least(node, change)}
    if kinds := change.get("kinds"):
        change["kinds"] = {name: {**kind, **_least(node, kind)} for name, kind in kinds.items()}
    for name, default in (("routes_to", []), ("enabled", True)):
        if queue is not None and getattr(queue, name) != getattr(Queue(), name):
            change.setdefault(name, default)
    return change
