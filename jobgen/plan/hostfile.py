"""A static list of hosts for a job without a scheduler: ``jobgen local --hostfile FILE``."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from jobgen.errors import counted
from jobgen.launch.launchers import LAUNCHERS
from jobgen.values.devices import number_of

if TYPE_CHECKING:
    from typing import Any

    from jobgen.spec import Specification

_HOSTS_WITH_SLOTS = ("mpich", "intel")  # they read HOST:N


def with_hosts(spec: Specification) -> Specification:
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
        from jobgen.values.node_groups import Group

        runs = ((count, len(list(some))) for count, some in groupby(count for _, count in chosen))
        values = {"nodes": tuple(Group(nodes, count) for count, nodes in runs)}
    _check_addresses(spec, chosen)
    origins = {**spec.origins, **{key: "--hostfile" for key in values if key not in spec.origins}}
    return spec._replace(hostfile=chosen, origins=origins, **values)


def _check_addresses(spec: Specification, chosen: tuple[tuple[str, int], ...]) -> None:
    """Refuse IPv6 addresses where a colon in the name of a host has another meaning."""
    row = LAUNCHERS[spec.launcher]
    reader = (
        row.remote_shell
        if spec.remote == "ssh"
        else row.of_mpi and spec.mpi in _HOSTS_WITH_SLOTS and spec.mpi
    )
    address = next((host for host, _ in chosen if ":" in host), None)
    if address and reader:
        raise spec.refuse("hostfile", f"{reader} cannot read the address {address}; use names of hosts")
