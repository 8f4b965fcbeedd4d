"""A static list of hosts for a job without a scheduler: ``jobgen local --hostfile FILE``."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from jobgen.errors import counted, shown
from jobgen.resources.typed_devices import number_of
from jobgen.values import path

if TYPE_CHECKING:
    from typing import Any

    from jobgen.spec import JobSpec

Hosts = tuple[tuple[str, int], ...]  # each with its slots; 0 if the file names none

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"
_LINE = rf"({_NAME})(?:\s+slots\s*=\s*(\d{{1,4}})(?:\s+max[_-]slots\s*=\s*\d+)?|[:*](\d{{1,4}}))?"


def hosts(text: str) -> Hosts:
    """Return the hosts in a file of lines ``HOST``, ``HOST slots=N``, ``HOST:N`` or ``HOST*N``.

    A host that is repeated has as many slots, as in the node file of PBS. ``#`` begins a comment.
    """
    try:
        with open(path(text), encoding="utf-8-sig", errors="surrogateescape") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    read = [(number, *_host(number, line)) for number, line in enumerate(lines, 1) if line]
    numbered = next((number for number, _, slots in read if slots), 0)
    plain = next((number for number, _, slots in read if not slots), 0)
    if numbered and plain:
        raise ValueError(f"line {plain} has no number of slots, but line {numbered} has")
    found: dict[str, int] = {}
    for _, host, slots in read:
        found[host] = found.get(host, 0) + (slots or 1)
    told = numbered or len(found) < len(read)
    return tuple((host, slots if told else 0) for host, slots in found.items())


def _host(number: int, line: str) -> tuple[str, int]:
    """Return the host in a line and its slots, 0 without."""
    match = re.fullmatch(_LINE, line, re.ASCII)
    count = match and (match[2] or match[3])
    if not match or (count and not int(count)):
        raise ValueError(f"line {number} must be HOST, HOST slots=N, HOST:N or HOST*N, not {shown(line)}")
    return match[1], int(count or 0)


def with_hosts(spec: JobSpec) -> JobSpec:
    """Return the specification with the nodes and ranks of its hostfile; ``--nodes N`` takes the first N.

    Raises:
        JobgenError: the file has fewer hosts or slots than are requested.
    """
    if spec.hostfile is None:
        return spec
    if not spec.hostfile:
        raise spec.refuse("hostfile", "has no hosts")
    chosen, fixed = spec.hostfile, spec.origin("nodes") not in ("default", "--hostfile")
    if fixed and isinstance(spec.nodes, int):
        if spec.nodes > len(chosen):
            raise spec.refuse("nodes", f"the hostfile has only {counted(len(chosen), 'host')}")
        chosen = chosen[: spec.nodes]
    elif fixed:
        raise spec.refuse("nodes", "the hostfile has the slots of each host; use a number, or remove it")
    slots = {count for _, count in chosen}
    ranks = spec.ranks_per_node or (number_of(spec.gpus_per_node) if slots == {0} else None)
    if ranks and slots != {0} and ranks > min(slots):
        host = next(host for host, count in chosen if count < ranks)
        raise spec.refuse("ranks_per_node", f"{host} has fewer slots in the hostfile")
    if ranks or len(slots) == 1:
        values: dict[str, Any] = {"nodes": len(chosen), "ranks_per_node": ranks or slots.pop() or None}
        chosen = tuple((host, ranks or count or 1) for host, count in chosen)
    else:
        from jobgen.resources.heterogeneous import Group

        runs = ((count, len(list(some))) for count, some in groupby(count for _, count in chosen))
        values = {"nodes": tuple(Group(nodes, count) for count, nodes in runs)}
    origins = {**spec.origins, **{key: "--hostfile" for key in values if key not in spec.origins}}
    return spec._replace(hostfile=chosen, origins=origins, **values)
