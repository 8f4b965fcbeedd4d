"""The facts about a cluster that its scheduler lists: queues and nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class Facts(NamedTuple):
    """The facts about a cluster; ``gres`` is Slurm's name of the devices, such as gpu:a100; ``qos`` are the
    limits of its QoS, for sites where these are the queues; ``commands`` are those that list them."""

    name: str
    queues: tuple[QueueFacts, ...]
    gres: str = ""
    qos: tuple[QueueFacts, ...] = ()
    commands: str = ""


class QueueFacts(NamedTuple):
    """A queue. A value is None if it is unknown; ``walltime`` in seconds, ``memory`` in MiB per node.

    ``enabled``: it takes jobs that name it; ``started``: its jobs begin; ``shared``: its nodes may have other
    jobs beside; ``max_jobs`` and ``max_gpus`` are of one user at a time.
    """

    name: str
    default: bool = False
    least_nodes: int | None = None
    most_nodes: int | None = None
    walltime: int | None = None
    gpus: int = 0
    cores: int | None = None
    memory: int | None = None
    enabled: bool = True
    started: bool = True
    routes_to: tuple[str, ...] = ()
    shared: bool | None = None
    max_jobs: int | None = None
    max_gpus: int | None = None


class NodeFacts(NamedTuple):
    """The resources of a node; ``memory`` in MiB."""

    gpus: int = 0
    cores: int | None = None
    memory: int | None = None


class ClusterCommands(Protocol):
    """The commands of a scheduler that list queues and nodes: a module of functions.

    Each raises SchedulerError if the scheduler does not answer.
    """

    def facts(self) -> Facts:
        """Return the facts about this cluster."""

    def queues(self, patience: float) -> Iterator[str]:
        """Yield the names of the queues; wait ``patience`` seconds at most."""
