"""The facts about a cluster that its scheduler lists: queues and nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class Facts(NamedTuple):
    """The facts about a cluster; ``gres`` is Slurm's name of the devices, such as gpu:a100."""

    name: str
    queues: tuple[QueueFacts, ...]
    gres: str = ""


class QueueFacts(NamedTuple):
    """A queue. A value is None if it is unknown; ``walltime`` in seconds, ``memory`` in MiB per node."""

    name: str
    default: bool = False
    least_nodes: int | None = None
    most_nodes: int | None = None
    walltime: int | None = None
    gpus: int = 0
    cores: int | None = None
    memory: int | None = None


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
