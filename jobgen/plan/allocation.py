"""The resources of a job: its nodes, ranks, cores, devices, memory and time, as numbers and as requests."""

from typing import NamedTuple

from jobgen.launch.accelerators import ACCELERATORS, Accelerator
from jobgen.options import DEFAULT_WALLTIME
from jobgen.plan.cores import Cores, cores
from jobgen.plan.device_filter import DeviceSelection, device_selection
from jobgen.plan.node_groups import Chunk, chunks
from jobgen.schedulers.base import Scheduler
from jobgen.spec import Specification
from jobgen.values.devices import number_of, type_of
from jobgen.values.node_groups import groups_text, most_ranks, total
from jobgen.values.parsers import QUEUE


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
    cpus = cores(spec, scheduler, ranks)
    nodes = total(spec.nodes)
    if scheduler.behaviour.one_host and nodes != 1:
        raise spec.refuse("nodes", "a local run has only this node; use pbs or slurm for more")
    devices, number = "", _device_number(spec, scheduler)
    if gpus:
        devices = _device_option(spec, scheduler, ACCELERATORS[name]).replace("{n}", number)
    return Resources(
        accelerator_name=name,
        accelerator=ACCELERATORS[name],
        nodes=nodes,
        allocated=nodes + (spec.spare_nodes or 0),
        mixed=groups_text(spec.nodes),
        gpus_per_node=gpus,
        ranks_per_node=ranks,
        cpus=cpus,
        active=device_selection(spec, ranks),
        chunks=chunks(spec, cpus, ranks, devices, gpus),
        device_number=number.format(n=gpus),
        devices=devices.format(n=gpus) or None,
        memory=None if spec.mem is None else scheduler.memory(spec.mem, nodes, cpus.node),
        walltime=_walltime(spec, scheduler),
    )


def _walltime(spec: Specification, scheduler: Scheduler) -> int | None:
    """Return the time limit; None is that of the queue."""
    if spec.walltime == QUEUE and not scheduler.behaviour.limits_time:
        raise spec.refuse("walltime", "a local run has no queue; leave it out")
    return DEFAULT_WALLTIME if spec.walltime is None else spec.walltime or None


def devices_and_ranks(spec: Specification, scheduler: Scheduler) -> tuple[str, int, int]:
    """Return accelerator, devices and ranks per node; a value that is not given follows from the others."""
    gpus, ranks = number_of(spec.gpus_per_node), spec.ranks_per_node or most_ranks(spec.nodes)
    name = spec.accelerator
    if name is None:
        name = "cpu" if gpus == 0 or (gpus is None and not scheduler.prefix) else "cuda"
    if name == "cpu":
        of_site = [spec.origin(key).startswith("site ") for key in ("gpus_per_node", "accelerator")]
        if gpus and of_site != [True, False]:  # else it is the site's default for jobs with accelerators
            raise spec.refuse("gpus_per_node", "cannot be used with --accelerator cpu; remove one of the two")
        return name, 0, ranks or 1
    if gpus == 0:
        raise spec.refuse("gpus_per_node", f"--accelerator {name} needs at least 1; or use --accelerator cpu")
    gpus = gpus or ranks or 1
    ranks = ranks or gpus
    if ranks > gpus:
        raise spec.refuse(
            "ranks_per_node", f"{ranks} ranks do not fit {gpus} accelerators a node: each needs its own"
        )
    return name, gpus, ranks


def _device_option(spec: Specification, scheduler: Scheduler, accelerator: Accelerator) -> str:
    """Return the scheduler's option for ``{n}`` devices per node."""
    option = scheduler.devices(accelerator)
    if option is None:
        title = scheduler.title
        raise spec.refuse("accelerator", f"{title} cannot request {accelerator.title}; use PBS Pro or Slurm")
    return option


def _device_number(spec: Specification, scheduler: Scheduler) -> str:
    """Return the form of the number ``{n}`` in the option, which has the type of the devices, too."""
    if not (kind := type_of(spec.gpus_per_node)):
        return "{n}"
    try:
        return scheduler.typed(kind, spec.site.file.rules.gpu_type if spec.site else "")
    except ValueError as error:
        raise spec.refuse("gpus_per_node", str(error)) from None
