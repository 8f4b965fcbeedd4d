"""The cores of a job: the number per node and per rank, and the binding of ranks to cores."""

from typing import NamedTuple

from jobgen.schedulers.base import Scheduler
from jobgen.spec import Specification
from jobgen.topology import cpus as processors


class Cores(NamedTuple):
    """The cores per rank (``rank``), per node (``node``), and on Slurm per task of the allocation (``task``).

    ``bind`` is none, cores, numa or list (with the lists ``lists``); None leaves binding to the launcher.
    """

    rank: int
    node: int
    task: int
    bind: str | None
    lists: tuple[str, ...]


def cores(spec: Specification, scheduler: Scheduler, ranks: int) -> Cores:
    """Return the cores of a job; a number that is not given follows from the others.

    Raises:
        JobgenError: the ranks do not fit what is allocated, or the lists do not fit the ranks.
    """
    bind, lists = spec.cpu_bind or (None, ())
    node = spec.cpus_per_node
    if node is not None and node < ranks:
        raise spec.refuse("cpus_per_node", f"{ranks} ranks a node need at least {ranks} cores")
    rank = spec.cpus_per_rank or _default(scheduler, ranks, node, lists)
    if node is not None and node < ranks * rank:
        raise spec.refuse("cpus_per_node", f"{ranks} ranks of {rank} cores are {ranks * rank} a node")
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


def _default(scheduler: Scheduler, ranks: int, node: int | None, lists: tuple[str, ...]) -> int:
    if lists:
        return min(len(processors.read(cpus)) for cpus in lists[:ranks])
    if node is not None:
        return node // ranks
    return scheduler.default_cpus_per_rank
