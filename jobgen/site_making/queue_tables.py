"""The tables of queues in a site file, from the facts of a scheduler."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.schedulers.base import clock, size
from jobgen.schedulers.cluster import NodeKind, QueueFacts, number_of
from jobgen.sites.display import key, toml
from jobgen.sites.value_checks import valid_name

_LONGEST = 100_000 * 3600  # s; greater numbers are no limits
_MOST_MEMORY = 10**9  # MiB
# Jobs that request no memory get less than this part of their share: too little for them.
_ENOUGH = 0.8


def queue_table(queue: QueueFacts, enabled: bool, remark: str = "") -> str:
    """Return the table of a queue, with those of its kinds of nodes if these differ; ``remark`` is
    what users read about it."""
    at = f"queues.{key(queue.name)}"
    lines = [f"\n[{at}]", *([f"about = {toml(remark)}"] if remark else [])]
    if queue.routes_to:
        lines.append(f"routes_to = {toml(queue.routes_to)}")
    if not enabled:
        lines.append("enabled = false")
    if queue.most_nodes and (queue.least_nodes or 1) <= queue.most_nodes:
        lines.append(f"nodes = [{queue.least_nodes or 1}, {queue.most_nodes}]")
    if queue.walltime and queue.walltime < _LONGEST:
        lines.append(f"walltime = {toml(clock(queue.walltime))}")
    for name in ("shared", "max_jobs", "max_gpus", "min_gpus", "min_cores", "max_cores"):
        if (value := getattr(queue, name)) is not None:
            lines.append(f"{name} = {toml(value)}")
    for name in ("accounts", "groups", "qos"):
        if value := [one for one in getattr(queue, name) if valid_name(one)]:
            lines.append(f"{name} = {toml(value)}")
    if len(queue.kinds) == 1:
        lines += _node_lines(queue, queue.kinds[0])
    else:
        for name, kind in zip(kind_names(queue.kinds), queue.kinds, strict=True):
            lines += ["", f"[{at}.kinds.{key(name)}]", f"count = {kind.nodes}", *_node_lines(queue, kind)]
    return "\n".join(lines) + "\n"


def kind_names(kinds: tuple[NodeKind, ...]) -> list[str]:
    """Return a name for each kind of nodes: the types of its devices, or cpu, and a number if it is not the
    first of that name."""
    names: list[str] = []
    for kind in kinds:
        types = [name or "gpu" for name, _ in kind.devices if valid_name(name or "gpu")]
        name = "-".join(types)[:60] or "cpu"
        number = next(n for n in range(1, len(kinds) + 1) if (name if n == 1 else f"{name}-{n}") not in names)
        names.append(name if number == 1 else f"{name}-{number}")
    return names


def _node_lines(queue: QueueFacts, kind: NodeKind) -> Iterator[str]:
    """Yield the resources of a node, and the memory that a job must request to get its share."""
    gpus, cores = number_of(kind), kind.cores
    if any(name for name, _ in kind.devices):
        devices = ", ".join(f"{key(name)} = {number}" for name, number in kind.devices)
        yield f"devices = {{{devices}}}"
    else:
        yield f"gpus = {gpus}"
    if cores:
        yield f"cores = {cores}"
    if gpus and cores and cores >= gpus:
        yield f"cores_per_gpu = {cores // gpus}"
    if kind.threads_per_core > 1:
        yield f"threads_per_core = {kind.threads_per_core}"
    if kind.memory and kind.memory < _MOST_MEMORY:
        yield f"memory = {toml(size(kind.memory).upper())}"
        yield from _shares(queue, kind)
    if any(one.features for one in queue.kinds):
        yield f"features = {toml([one for one in kind.features if one.isprintable()])}"


def _shares(queue: QueueFacts, kind: NodeKind) -> Iterator[str]:
    """Yield the memory of a device and of a core, where jobs that request none get much less, or more: with
    more, no node has the memory of a job that uses all its devices or cores."""
    gpus, cores, memory, default = number_of(kind), kind.cores, kind.memory or 0, queue.memory
    if not cores:
        return
    of_gpu = cores // gpus if gpus else 0
    if gpus and of_gpu:
        share = _at_most(memory // gpus, default.most_per_core, of_gpu)
        there = (
            default.device
            or (default.core and default.core * of_gpu)
            or (default.node and default.node / gpus)
        )
        if there is not None and not _ENOUGH * share <= there <= memory // gpus:
            yield f"memory_per_gpu = {toml(_whole(share))}"
    share = _at_most(memory // cores, default.most_per_core, 1)
    there = default.core or (default.node and default.node / cores)
    if there is not None and not _ENOUGH * share <= there <= memory // cores:
        yield f"memory_per_core = {toml(_whole(share))}"


def _at_most(share: int, most_per_core: int | None, cores: int) -> int:
    return share if most_per_core is None else min(share, most_per_core * cores)


def _whole(mib: int) -> str:
    """Return a size in GiB, rounded down, or in MiB if it is below 8 GiB."""
    return f"{mib // 1024}G" if mib >= 8192 else f"{max(mib, 1)}M"
