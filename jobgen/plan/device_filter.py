"""DeepSpeed's filters of devices, ``--include`` and ``--exclude``."""

from typing import NamedTuple

from jobgen.launch.launchers import LAUNCHERS
from jobgen.spec import Filter, Specification
from jobgen.values.node_groups import total, world_size


class DeviceSelection(NamedTuple):
    """The nodes and the ranks that take part, and the filter as an option of the launcher.

    ``named`` are the hosts that the allocation must have; ``included`` or ``excluded`` are those that change
    the list of hosts.
    """

    nodes: int
    world_size: int
    option: str | None = None
    text: str | None = None
    named: tuple[str, ...] = ()
    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def device_selection(spec: Specification, ranks: int) -> DeviceSelection:
    """Return the part of ``spec.nodes`` x ``ranks`` that a filter leaves.

    Raises:
        JobgenError: the filter names what does not exist, leaves nothing, or would be ignored.
    """
    if spec.include and spec.exclude:
        raise spec.refuse("exclude", "cannot be used with --include; DeepSpeed takes one of the two")
    key = "include" if spec.include else "exclude"
    chosen: Filter | None = getattr(spec, key)
    if not chosen:
        return DeviceSelection(total(spec.nodes), world_size(spec.nodes, ranks))
    if not LAUNCHERS[spec.launcher].filters_devices:
        raise spec.refuse(key, f"only the deepspeed launcher filters devices; {spec.launcher} ignores it")
    for host, slots in chosen:
        if outside := [slot for slot in slots if slot >= ranks]:
            raise spec.refuse(key, f"{host} has the slots 0 to {ranks - 1}, not {outside[0]}")
    nodes = total(spec.nodes)
    if len(chosen) > nodes:
        raise spec.refuse(key, f"names {len(chosen)} hosts, but --nodes is {nodes}")
    named = tuple(host for host, _ in chosen)
    text = "@".join(f"{host}:{','.join(map(str, slots))}" if slots else host for host, slots in chosen)
    counts = [len(slots) or ranks for _, slots in chosen]
    if key == "include":
        return DeviceSelection(len(chosen), sum(counts), "--include", text, named, included=named)
    left = nodes * ranks - sum(counts)
    if not left:
        raise spec.refuse(key, "leaves no device")
    whole = tuple(host for host, count in zip(named, counts, strict=True) if count == ranks)
    return DeviceSelection(nodes - len(whole), left, "--exclude", text, named, excluded=whole)
