"""What a site file says, as frozen types: only a job for a site pays for msgspec."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
Lines = tuple[str, ...]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a site file."""


class Detect(_Table, frozen=True):
    """How a machine shows that it belongs to the site: any host name, or any variable, that matches."""

    hosts: Lines = ()
    env: dict[str, str] = {}


class Node(_Table, frozen=True):
    """What one node has, and how much of it a job gets with each GPU.

    ``cores`` are those that a job can ask for, ``memory`` and ``memory_per_gpu`` sizes such as 512G.
    With ``cores_fixed`` a job has the cores of its GPUs and no others; with ``whole_nodes`` jobs of more
    than one node take all GPUs of each. ``cpu_lists`` are the CPUs next to each GPU, such as 0-7.
    """

    gpus: Count | None = None
    cores: Count | None = None
    cores_per_gpu: Count | None = None
    cores_fixed: bool | None = None
    cpu_lists: Lines | None = None
    memory: str | None = None
    memory_per_gpu: str | None = None
    whole_nodes: bool | None = None


class Queue(Node, frozen=True):
    """A queue, partition or QoS: its limits, and where its nodes differ from the others.

    ``name`` is what the scheduler is told, if it is not the key; ``walltime_by_nodes`` pairs a greatest
    number of nodes with the wall time that jobs up to it may have.
    """

    about: str = ""
    name: str | None = None
    nodes: tuple[Count, Count] | None = None
    walltime: str | None = None
    walltime_by_nodes: tuple[tuple[Count, str], ...] = ()
    directives: Lines = ()
    mandatory: dict[str, str] = {}


class Rules(_Table, frozen=True):
    """What a site does otherwise than its scheduler's manual.

    ``account`` and ``queue`` are the directives' options for these; ``bind`` is how ranks are bound to
    cores, an option of PALS or srun; ``master_suffix`` ends the host name that the rendezvous is at;
    ``srun`` are options of each srun that starts ranks, ``srun_ranks`` where it starts one task a rank,
    ``srun_nodes`` where it starts one a node.
    """

    account: str | None = None
    queue: str | None = None
    bind: str = ""
    master_suffix: str = ""
    module_use: Lines = ()
    srun: Lines = ()
    srun_ranks: Lines = ()
    srun_nodes: Lines = ()


class SiteFile(_Table, frozen=True):
    """A site file less the tables that it shares with job files: [job], [resources] and so on.

    ``request`` are the directives that ask for nodes and devices, ``directives`` more of them; both name
    numbers of the job, such as {nodes}. ``mandatory`` pairs an option, or the beginning of a directive, with
    an example of its value; ``lacks`` options with the reason why the site does not take them; ``silence``
    are rules of ``jobgen check`` that do not hold here.
    """

    title: str = ""
    extends: str | None = None
    manual: Lines = ()
    read: datetime.date | None = None
    scheduler: Literal["pbs", "slurm", ""] = ""
    request: Lines = ()
    directives: Lines = ()
    mandatory: dict[str, str] = {}
    lacks: dict[str, str] = {}
    silence: Lines = ()
    detect: Detect = Detect()
    node: Node = Node()
    queues: dict[str, Queue] = {}
    rules: Rules = Rules()


class Site(NamedTuple):
    """A site: its file with all that it extends, ``values`` of options as text, and where each stands.

    ``places`` has the file and line of every key, by its path in the tables.
    """

    name: str
    path: str
    file: SiteFile
    values: Mapping[str, str | Sequence[str]]
    origins: Mapping[str, str]
    data: Mapping[str, Any]
    places: Mapping[tuple[str, ...], tuple[str, int | None]]

    @property
    def title(self) -> str:
        return self.file.title

    @property
    def queues(self) -> Mapping[str, Queue]:
        return self.file.queues

    @property
    def said(self) -> str:
        """The site, as the origin of a value."""
        return f"site {self.name}"

    def place(self, path: tuple[str, ...]) -> str:
        """The file and line of a key, or of the first one inside a table."""
        file, line = next(
            (where for at, where in self.places.items() if at[: len(path)] == path), (self.path, None)
        )
        return f"{file}, line {line}" if line else file

    def node(self, queue: str | None) -> Node:
        """What a node of a queue has."""
        own = self.queues.get(queue) if queue else None
        if own is None:
            return self.file.node
        common = self.file.node
        merged = {
            key: getattr(common, key) if getattr(own, key) is None else getattr(own, key)
            for key in Node.__struct_fields__
        }
        return Node(**merged)
