"""The kinds of nodes of a queue: those that a job fits, and the one that it gets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jobgen.errors import counted
from jobgen.values import parsers
from jobgen.values.devices import SHARD

if TYPE_CHECKING:
    from jobgen.sites.site_file import NodeTable, Site


class Demand(NamedTuple):
    """What a job requests of each node. ``gpus`` None: any number of devices, but at least one; ``kind`` is
    their type; ``mem`` is in MiB."""

    nodes: int = 1
    gpus: int | None = None
    kind: str = ""
    cores: int = 1
    mem: int | None = None
    constraint: str | None = None


def best(site: Site, queue: str | None, demand: Demand) -> str:
    """Return the name of the kind with the most nodes that a job fits: of those with enough nodes if there
    are any, and for a job without devices of those without devices if there are any. Empty if no kind fits,
    or the nodes of the queue do not differ."""
    if not queue or queue not in site.queues or not site.queues[queue].kinds:
        return ""
    kinds = site.kinds(queue)
    demand = demand._replace(constraint=known_constraint(site, queue, demand.constraint))
    fit = [(name, number or 0, table) for name, (number, table) in kinds.items() if fits(table, demand)]
    fit.sort(key=lambda one: (one[1] < demand.nodes, demand.gpus == 0 and bool(one[2].gpus), -one[1]))
    return fit[0][0] if fit else ""


def own_feature(site: Site, queue: str, demand: Demand) -> str:
    """Return a feature of the job's kind of nodes that the other kinds with devices lack which it fits, too.
    It is empty if there is no such feature, or no other such kind."""
    kinds = site.kinds(queue)
    others = [
        table
        for name, (_, table) in kinds.items()
        if name != site.kind and table.gpus and fits(table, demand)
    ]
    if not others or site.kind not in kinds:
        return ""
    own = [name for name in kinds[site.kind][1].features or () if re.fullmatch(r"[A-Za-z][\w.-]*", name)]
    shared = {name for table in others for name in table.features or ()}
    return next((name for name in own if name not in shared), "")


def fits(table: NodeTable, demand: Demand) -> bool:
    """Return whether a node has what a job requests."""
    return not (
        devices_of(table, demand.kind) < (1 if demand.gpus is None else demand.gpus)
        or (table.cores is not None and table.cores < demand.cores)
        or (table.memory is not None and demand.mem is not None and parsers.memory(table.memory) < demand.mem)
        or not satisfies(table, demand.constraint)
    )


def devices_of(table: NodeTable, kind: str) -> int:
    """Return the number of devices of a type, or of all types; unknown devices are enough for every job."""
    if kind and table.devices is not None:
        return table.devices.get(kind, 0)
    if kind == SHARD:
        return 0
    return 10**9 if table.gpus is None else table.gpus


def types_of(site: Site, queue: str) -> list[str]:
    """Return the types of the devices of a queue, "" for devices without a type."""
    tables = [table for _, table in site.kinds(queue).values()]
    found = [kind for one in tables for kind in (one.devices or ({"": one.gpus} if one.gpus else {}))]
    return [kind for kind in dict.fromkeys(found) if kind != SHARD]


def type_for(table: NodeTable, number: int | None) -> str:
    """Return the type of which a node has the most devices, if these are enough."""
    typed = {kind: count for kind, count in (table.devices or {}).items() if kind not in ("", SHARD)}
    kind = max(typed, key=lambda one: typed[one], default="")
    return kind if kind and typed[kind] >= (number or 1) else ""


def known_constraint(site: Site, queue: str, constraint: str | None) -> str | None:
    """Return a constraint if it has features of the queue alone, joined by & or : for all of them, by | for
    one. A site file need not name all features: nothing is known about others."""
    if constraint is None or not re.fullmatch(r"[\w.=-]+([&|:][\w.=-]+)*", constraint):
        return None
    known = {name for _, table in site.kinds(queue).values() for name in table.features or ()}
    return constraint if known.issuperset(re.split("[&|:]", constraint)) else None


def satisfies(table: NodeTable, constraint: str | None) -> bool:
    """Return whether a node has the features of a known constraint."""
    if constraint is None or table.features is None:
        return True
    return any(
        all(name in table.features for name in re.split("[&:]", part)) for part in constraint.split("|")
    )


def description(number: int | None, table: NodeTable) -> str:
    """Return ``8 nodes with 8 x 2080ti, 48 cores, 384G``."""
    devices = table.devices if table.devices is not None else {"": table.gpus} if table.gpus else {}
    parts = [
        f"{count} x {kind}" if kind else f"{count} accelerators" for kind, count in devices.items() if count
    ]
    if table.cores:
        parts.append(f"{table.cores} cores")
    if table.memory:
        parts.append(table.memory)
    if table.features:
        parts.append(f"features {','.join(table.features)}")
    nodes = "nodes" if number is None else counted(number, "node")
    return f"{nodes} with {', '.join(parts)}" if parts else nodes
