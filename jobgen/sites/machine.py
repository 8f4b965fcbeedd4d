"""The facts of the machine: the queues and nodes that its scheduler listed, kept by ``jobgen site refresh``.

They win over those of the site file. Cores and memory of a node are the exception: a scheduler counts all of
them, and a site file those that a job can request, so that the lesser number holds.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from jobgen.errors import JobgenError, shown
from jobgen.jobfile.locations import line_of
from jobgen.jobfile.reader import decode, read_text
from jobgen.jobfile.tables import TABLES
from jobgen.sites.search import machine_file
from jobgen.sites.site_file import Machine, Queue, Site, SiteFile
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
        queues[key] = {**queues.get(key, {}), **change}
        places |= {("queues", key, name): own.places.get(("queues", key, name), (path, 2)) for name in change}
    content = {**site.data, "queues": queues}
    new = msgspec.convert({key: value for key, value in content.items() if key not in TABLES}, SiteFile)
    machine = Machine(path, file.refreshed, file.commands, own)
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
        for name in table:
            places["queues", key, name] = (path, line_of(text, ("queues", named, name)))
    file = SiteFile(
        title=site.title, scheduler=site.file.scheduler, queues=msgspec.convert(tables, dict[str, Queue])
    )
    return Site(site.name, path, file, {}, {}, {"queues": dict(tables)}, places)


def _change(site: Site, key: str, table: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of a queue that replace those of the site file; a queue that the machine lacks takes
    no jobs."""
    if table is None:
        return {"enabled": False}
    change = dict(table)
    node, queue = site.node(key), site.queues.get(key)
    if node.cores is not None and node.cores <= change.get("cores", node.cores):
        change.pop("cores", None)
    if node.memory is not None and parsers.memory(node.memory) <= parsers.memory(
        change.get("memory", "999T")
    ):
        change.pop("memory", None)
    for name, default in (("routes_to", []), ("enabled", True)):
        if queue is not None and getattr(queue, name) != getattr(Queue(), name):
            change.setdefault(name, default)
    return change
