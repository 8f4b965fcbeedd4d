"""The resources of a job: its nodes, ranks, cores, devices, memory and time, as numbers and as requests."""

from typing import NamedTuple

from jobgen.errors import counted, one_of
from jobgen.launch.accelerators import ACCELERATORS, Accelerator
from jobgen.launch.launchers import LAUNCHERS
from jobgen.options import DEFAULT_WALLTIME
from jobgen.plan.node_groups import Chunk, chunks
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import SCHEDULERS, queued
from jobgen.spec import Filter, Specification
from jobgen.topology import cpus as processors
from jobgen.values.devices import SHARD, is_mig, number_of, type_of
from jobgen.values.node_groups import groups_text, most_ranks, total, world_size
from jobgen.values.parsers import QUEUE


class Cores(NamedTuple):
    """The cores per rank (``rank``), per node (``node``), and on Slurm per task of the allocation (``task``).

    ``bind`` is none, cores, numa, or list or site with the lists ``lists``; None leaves binding to the
    launcher.
    """

    rank: int
    node: int
    task: int
    bind: str | None
    lists: tuple[str, ...]


class DeviceSelection(NamedTuple):
    """The nodes and the ranks that a filter of devices selects, and the filter as an option of the launcher.

    ``named`` are the hosts that the allocation must have; ``included`` or ``excluded`` are those
    that the script keeps in the list of hosts, or removes from it.
    """

    nodes: int
    world_size: int
    option: str | None = None
    text: str | None = None
    named: tuple[str, ...] = ()
    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


class Resources(NamedTuple):
    """The resources of a job.

    ``allocated`` are the nodes with the spare ones; ``mixed`` describes nodes that differ. ``active`` are the
    devices that a filter selects. ``chunks``, ``devices`` and ``memory`` are requests in the words of
    the scheduler; ``device_number`` is the number in ``devices`` with the type. ``walltime`` is in seconds;
    None leaves the limit to the queue.
    """

    accelerator_name: str
    accelerator: Accelerator
    nodes: int
    allocated: int
    mixed: str | None
    gpus_per_node: int
    ranks_per_node: int
    cpus: Cores
    active: DeviceSelection
    chunks: tuple[Chunk, ...]
    device_number: str
    devices: str | None
    memory: str | None
    walltime: int | None


def resources_of(spec: Specification, scheduler: Scheduler) -> Resources:
    """Return the resources of a job; a number that is not given follows from the others.

    Raises:
        JobgenError: the numbers contradict each other, or the scheduler cannot request them.
    """
    name, gpus, ranks = devices_and_ranks(spec, scheduler)
    _check_telemetry(spec, ACCELERATORS[name])
    cpus = _cores(spec, scheduler, ranks)
    nodes = total(spec.nodes)
    allocated = nodes + (spec.spare_nodes or 0)
    if scheduler.behaviour.one_host and nodes != 1:
        raise spec.refuse("nodes", f"a local run has only this node; use {one_of(queued())} for more")
    devices, number = "", _device_number(spec, scheduler)
    if gpus:
        devices = _device_option(spec, scheduler, ACCELERATORS[name]).replace("{n}", number)
    return Resources(
        accelerator_name=name,
        accelerator=ACCELERATORS[name],
        nodes=nodes,
        allocated=allocated,
        mixed=groups_text(spec.nodes),
        gpus_per_node=gpus,
        ranks_per_node=ranks,
        cpus=cpus,
        active=_device_selection(spec, ranks),
        chunks=chunks(spec, cpus, ranks, devices, gpus),
        device_number=number.format(n=gpus),
        devices=devices.format(n=gpus) or None,
        memory=None if spec.mem is None else scheduler.memory(spec.mem, allocated),
        walltime=_walltime(spec, scheduler),
    )


def _walltime(spec: Specification, scheduler: Scheduler) -> int | None:
    """Return the time limit; None is that of the queue."""
    if spec.walltime == QUEUE and not scheduler.behaviour.limits_time:
        raise spec.refuse("walltime", "a local run has no queue; leave it out")
    return DEFAULT_WALLTIME if spec.walltime is None else spec.walltime or None


def devices_and_ranks(spec: Specification, scheduler: Scheduler) -> tuple[str, int, int]:
    """Return accelerator, devices and ranks per node; an absent value follows from the others."""
    gpus, ranks = number_of(spec.gpus_per_node), spec.ranks_per_node or most_ranks(spec.nodes)
    if LAUNCHERS[spec.launcher].one_process:
        if ranks not in (None, 1) and not spec.is_of_site("ranks_per_node"):
            raise spec.refuse("ranks_per_node", f"--launcher {spec.launcher} starts one process; remove it")
        ranks = 1
    name = spec.accelerator
    if name is None:
        name = "cpu" if gpus == 0 or (gpus is None and not scheduler.prefix) else "cuda"
    if name == "cpu":
        if gpus:
            raise spec.refuse("gpus_per_node", "cannot be used with --accelerator cpu; remove one of the two")
        return name, 0, ranks or 1
    if gpus == 0:
        raise spec.refuse("gpus_per_node", f"--accelerator {name} needs at least 1; or use --accelerator cpu")
    if type_of(spec.gpus_per_node) == SHARD:
        if ranks not in (None, 1):
            raise spec.refuse("ranks_per_node", "shards are parts of one GPU, for one rank a node")
        return name, 1, 1
    gpus = gpus or ranks or 1
    ranks = ranks or gpus
    if ranks > gpus:
        why = f"{ranks} ranks do not fit {gpus} accelerators a node: each needs its own"
        raise spec.refuse("ranks_per_node", why)
    return name, gpus, ranks


def _check_telemetry(spec: Specification, accelerator: Accelerator) -> None:
    of_site = spec.is_of_site("gpu_telemetry")  # for its jobs with devices
    if spec.gpu_telemetry and not accelerator.telemetry and not of_site:
        able = one_of(row.title for row in ACCELERATORS.values() if row.telemetry)
        why = f"measures {able}; the devices of this job are {accelerator.title}"
        raise spec.refuse("gpu_telemetry", why)


def device_warnings(spec: Specification) -> tuple[str, ...]:
    """Return a warning on several MIG devices of a node."""
    if not is_mig(type_of(spec.gpus_per_node)) or number_of(spec.gpus_per_node) == 1:
        return ()
    why = "a CUDA process uses only one MIG device, and NCCL does not connect those of one GPU"
    return (f"{spec.setting_text('gpus_per_node')}: {why}: request 1 a node, or whole GPUs",)


def _device_option(spec: Specification, scheduler: Scheduler, accelerator: Accelerator) -> str:
    """Return the scheduler's option for ``{n}`` devices per node."""
    kind = type_of(spec.gpus_per_node)
    if spec.site and spec.site.file.rules.devices and kind != SHARD:
        return spec.site.file.rules.devices
    option = scheduler.devices(accelerator, kind)
    if option is None:
        able = one_of(row.title for row in SCHEDULERS.values() if row.devices(accelerator) is not None)
        raise spec.refuse("accelerator", f"{scheduler.title} cannot request {accelerator.title}; use {able}")
    return option


def _device_number(spec: Specification, scheduler: Scheduler) -> str:
    """Return the form of the number ``{n}`` in the option, with the type of the devices."""
    if not (kind := type_of(spec.gpus_per_node)):
        return "{n}"
    try:
        form = scheduler.typed(kind, spec.site.file.rules.gpu_type if spec.site else "")
    except ValueError as error:
        raise spec.refuse("gpus_per_node", str(error)) from None
    return form.format(n=number_of(spec.gpus_per_node)) if kind == SHARD else form


def _cores(spec: Specification, scheduler: Scheduler, ranks: int) -> Cores:
    """Return the cores of a job: a number that is not given follows from the others, and all must agree."""
    bind, lists = spec.cpu_bind or (None, ())
    node = spec.cpus_per_node
    if node is not None and node < ranks:
        raise spec.refuse("cpus_per_node", f"{ranks} ranks a node need {ranks} cores; use {ranks} or more")
    rank = spec.cpus_per_rank or _default_cores(scheduler, ranks, node, lists)
    if node is not None and node < ranks * rank:
        have = f"{counted(ranks, 'rank')} of {counted(rank, 'core')} are {ranks * rank} a node"
        raise spec.refuse("cpus_per_node", f"{have}; use {ranks * rank} or more")
    if node is not None and scheduler.behaviour.equal_tasks and node % ranks:
        near = f"{node - node % ranks} or {node - node % ranks + ranks}"
        title = scheduler.title
        raise spec.refuse("cpus_per_node", f"is divided equally among {ranks} ranks by {title}: use {near}")
    if bind == "list" and len(lists) < ranks:
        raise spec.refuse("cpu_bind", f"has {len(lists)} lists for {ranks} ranks a node; write one for each")
    for number, cpus in enumerate(lists[:ranks]):
        if len(processors.read(cpus)) < rank:
            raise spec.refuse("cpu_bind", f"{cpus} is not enough for the {rank} cores of rank {number}")
    node = node or ranks * rank
    return Cores(rank, node, node // ranks, bind, lists[:ranks])


def _default_cores(scheduler: Scheduler, ranks: int, node: int | None, lists: tuple[str, ...]) -> int:
    if lists:
        return min(len(processors.read(cpus)) for cpus in lists[:ranks])
    if node is not None:
        return node // ranks
    return scheduler.default_cpus_per_rank


def _device_selection(spec: Specification, ranks: int) -> DeviceSelection:
    """Return the nodes and ranks that the filter of devices selects; refuse one without effect."""
    if spec.include and spec.exclude:
        raise spec.refuse("exclude", "cannot be used with --include; remove one of the two")
    key = "include" if spec.include else "exclude"
    chosen: Filter | None = getattr(spec, key)
    if not chosen and LAUNCHERS[spec.launcher].one_process:
        return DeviceSelection(1, 1)
    if not chosen:
        return DeviceSelection(total(spec.nodes), world_size(spec.nodes, ranks))
    if not LAUNCHERS[spec.launcher].filters_devices:
        able = one_of(name for name, row in LAUNCHERS.items() if row.filters_devices)
        raise spec.refuse(key, f"only the {able} launcher filters devices; {spec.launcher} ignores it")
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
