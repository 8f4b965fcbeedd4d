"""The facts about a cluster that its scheduler lists: queues, and the kinds of their nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from jobgen.errors import shown
from jobgen.hosts.host import HERE, Host
from jobgen.values.devices import SHARD
from jobgen.values.parsers import count

_QUOTED = 100  # characters of an answer in a message
_NO_LIMIT = ("", "UNLIMITED", "INFINITE", "NONE", "N/A", "(NULL)")
_MOST_FEATURES = 4  # sets of features of equal nodes


class NodeKind(NamedTuple):
    """Equal nodes of a queue: their number, and the resources of each that jobs can request.

    ``cores`` are hardware threads if the scheduler counts these, ``threads_per_core`` of each core;
    ``memory`` is in MiB; ``devices`` has pairs of a type, or "" without one, and a number. None: unknown.
    """

    nodes: int = 1
    cores: int | None = None
    threads_per_core: int = 1
    memory: int | None = None
    devices: tuple[tuple[str, int], ...] = ()
    features: tuple[str, ...] = ()


class Memory(NamedTuple):
    """The memory of jobs that request none, per core, device or node, and the most per core or node, all
    in MiB. None: no limit."""

    core: int | None = None
    device: int | None = None
    node: int | None = None
    most_per_core: int | None = None
    most_per_node: int | None = None


class QueueFacts(NamedTuple):
    """A queue. A value is None if it is unknown; ``walltime`` in seconds.

    ``enabled``: it takes jobs that name it; ``started``: its jobs begin; ``shared``: its nodes may have other
    jobs beside. ``max_jobs`` and ``max_gpus`` are of one user at a time; ``min_gpus``, ``min_cores`` and
    ``max_cores`` of a job in all. ``accounts``, ``groups``, ``users`` and ``qos`` are those that it takes;
    none without such a limit. ``not_accounts`` and ``not_qos`` are those that it refuses.
    """

    name: str
    default: bool = False
    least_nodes: int | None = None
    most_nodes: int | None = None
    walltime: int | None = None
    kinds: tuple[NodeKind, ...] = ()
    memory: Memory = Memory()
    enabled: bool = True
    started: bool = True
    routes_to: tuple[str, ...] = ()
    shared: bool | None = None
    max_jobs: int | None = None
    max_gpus: int | None = None
    min_gpus: int | None = None
    min_cores: int | None = None
    max_cores: int | None = None
    accounts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    not_accounts: tuple[str, ...] = ()
    not_qos: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """The devices of the largest kind of nodes; shares of a device are not counted."""
        return max((number_of(kind) for kind in self.kinds), default=0)


class Facts(NamedTuple):
    """The facts about a cluster.

    ``resource`` is gpu or npu. ``qos`` are the limits of its QoS, for sites where these are the queues.
    ``commands`` are those that list them, and ``version`` is that of the scheduler. ``accounts`` and
    ``user_qos`` are those of the user, the default one first. ``devices`` is the option that requests devices
    if the scheduler lacks its usual one, ``gpu_type`` the resource of PBS for their type. ``unread`` are
    sentences on answers that cannot be read.
    """

    name: str
    queues: tuple[QueueFacts, ...]
    resource: str = "gpu"
    qos: tuple[QueueFacts, ...] = ()
    commands: str = ""
    version: str = ""
    accounts: tuple[str, ...] = ()
    user_qos: tuple[str, ...] = ()
    devices: str = ""
    gpu_type: str = ""
    unread: tuple[str, ...] = ()


class Judgement(NamedTuple):
    """Whether a job can start, and the sentence of the scheduler or the reason. ``how`` is the command."""

    good: bool
    text: str
    how: str


class ClusterCommands(Protocol):
    """The commands of a scheduler that list queues and nodes: a module of functions.

    Each raises SchedulerError if the scheduler does not answer. ``host``: where the commands run.
    """

    def facts(self, host: Host = HERE) -> Facts:
        """Return the facts about this cluster."""

    def judge(self, script: str, needs: Sequence[NodeKind], host: Host = HERE) -> Judgement:
        """Return the judgement of the scheduler on a job that does not run: on its script at a path, or on
        its nodes. ``needs`` are the nodes of each kind, with the cores, devices and memory of each."""

    @property
    def try_job(self) -> Callable[[str, Host], Judgement] | None:
        """The function that submits a script on a host, waits for the judgement on it and deletes the job;
        None if the submission command refuses what no node can run."""

    def configured(self) -> str:
        """Return the name of the cluster in the configuration of this host; empty without one."""

    def server(self, patience: float, host: Host = HERE) -> str:
        """Return this name as the scheduler prints it; wait ``patience`` seconds at most."""

    def queues(self, patience: float) -> Iterator[str]:
        """Yield the names of the queues; wait ``patience`` seconds at most."""


class Reading:
    """The values in the answer of a command; ``unread`` has a sentence on each that cannot be read."""

    def __init__(self, command: Sequence[str], unread: list[str]) -> None:
        self.command, self.unread = " ".join(command), unread

    def value(
        self, fields: Mapping[str, str], key: str, parse: Callable[[str], int | None] = count
    ) -> int | None:
        """Return the number of a field; None for no limit, and for a text that cannot be read."""
        text = fields.get(key, "")
        number = parse(text)
        if number is None and text.upper() not in _NO_LIMIT:
            self.leave_out(f"{key}={text}")
        return number

    def leave_out(self, text: str) -> None:
        """Note a text of the answer that cannot be read."""
        quoted = text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."
        self.unread.append(f"{self.command}: {shown(quoted)} cannot be read, and is left out")


def first_file(paths: Iterable[str | None], pattern: str) -> str:
    """Return the first group of a pattern in the first of some files that can be read and contains it."""
    for path in filter(None, paths):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found = re.search(pattern, file.read())
        except OSError:
            continue
        if found:
            return found[1]
    return ""


def number_of(kind: NodeKind) -> int:
    """Return the devices of a node, without shares of a device."""
    return sum(number for name, number in kind.devices if name != SHARD)


def without_devices(nodes: Iterable[NodeKind]) -> Iterator[NodeKind]:
    """Yield nodes as jobs see them in a queue that gives them no devices."""
    return (node._replace(devices=()) for node in nodes)


def grouped(nodes: Iterable[NodeKind]) -> tuple[NodeKind, ...]:
    """Return the kinds of nodes, each with its number: those with the most nodes first.

    Nodes of one kind may report memory that differs by 5 %: a job can request the least. Features that divide
    equal nodes into many kinds, such as the names of racks, are left out.
    """
    counts: dict[NodeKind, int] = {}
    for node in nodes:
        counts[node._replace(nodes=1)] = counts.get(node._replace(nodes=1), 0) + node.nodes
    alike: dict[NodeKind, list[NodeKind]] = {}
    for kind in sorted(counts, key=lambda one: -(one.memory or 0)):
        same = (
            one
            for one in alike
            if one._replace(memory=None, features=()) == kind._replace(memory=None, features=())
        )
        near = next((one for one in same if (kind.memory or 0) >= 0.95 * (one.memory or 0)), kind)
        alike.setdefault(near, []).append(kind._replace(nodes=counts[kind]))
    kinds = [one for group in alike.values() for one in _by_features(group)]
    return tuple(sorted(kinds, key=lambda kind: -kind.nodes))


def _by_features(group: Sequence[NodeKind]) -> Iterator[NodeKind]:
    """Yield nodes that are alike but for their features, with the least memory of all of them."""
    sets = dict.fromkeys(one.features for one in group)
    if len(sets) > _MOST_FEATURES:
        common = set.intersection(*map(set, sets))
        first = next(iter(sets))
        sets = {tuple(name for name in first if name in common): None}
    least = min((one.memory for one in group if one.memory is not None), default=None)
    for features in sets:
        number = sum(one.nodes for one in group if len(sets) == 1 or one.features == features)
        yield group[0]._replace(nodes=number, memory=least, features=features)
