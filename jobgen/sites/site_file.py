"""The content of a site file as frozen types; only jobs with a site import msgspec for it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from jobgen.jobfile.reader import option_text
from jobgen.jobfile.schema import CheckTable
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import named
from jobgen.values.devices import SHARD

Count = Annotated[int, Meta(ge=0)]
Lines = tuple[str, ...]

# The groups of facts of a site, and how far a source can be relied on, the best first.
GROUPS = ("queues", "node", "request", "binding", "network", "modules", "login", "accounting", "example")
CONFIDENCE = ("machine", "manual", "staff", "users", "unknown")


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a site file."""


class Source(_Table, frozen=True):
    """A page that was read: the groups of facts that are from it, and how far they can be relied on.

    ``confidence`` is ``machine`` for what the scheduler of this machine lists, ``manual`` for the manual,
    ``staff`` for other material of the centre, ``users`` for scripts and notes of its users. ``page`` is an
    address, ``version`` the commit or edition that was read, ``date`` the day of that version, and ``what``
    the part of the page.
    """

    facts: Lines = ()
    confidence: str = ""
    page: str = ""
    version: str = ""
    date: datetime.date | None = None
    what: str = ""


class Detect(_Table, frozen=True):
    """The signs of a machine of the site: any name of the cluster in the configuration of its scheduler, host
    name, or variable, that matches."""

    clusters: Lines = ()
    hosts: Lines = ()
    env: dict[str, str] = {}


class NodeTable(_Table, frozen=True):
    """The resources of a node, and the share of a job per GPU.

    ``cores`` are those that a job can request: hardware threads, if there is ``threads_per_core``.
    ``devices`` has the number of accelerators of each type, ``gpus`` is their number without types.
    ``memory``, ``memory_per_gpu`` and ``memory_per_core`` are sizes such as 512G; the last two are requested
    for jobs that request none. ``features`` are those that a constraint can name. With
    ``cores_fixed`` a job has the cores of its GPUs and no others; with ``whole_nodes`` jobs of more than one
    node use all GPUs of each. ``cpu_lists`` are the CPUs next to each GPU, such as 0-7.
    """

    gpus: Count | None = None
    devices: dict[str, Count] | None = None
    cores: Count | None = None
    cores_per_gpu: Count | None = None
    cores_fixed: bool | None = None
    threads_per_core: Annotated[int, Meta(ge=1)] | None = None
    cpu_lists: Lines | None = None
    memory: str | None = None
    memory_per_gpu: str | None = None
    memory_per_core: str | None = None
    features: Lines | None = None
    whole_nodes: bool | None = None

    def over(self, common: NodeTable) -> NodeTable:
        """Return these resources, with those of ``common`` where a value is missing. Devices with and without
        types replace each other."""
        values = {
            key: getattr(common, key) if getattr(self, key) is None else getattr(self, key)
            for key in NodeTable.__struct_fields__
        }
        if self.devices is not None:
            values["gpus"] = sum(number for kind, number in self.devices.items() if kind != SHARD)
        elif self.gpus is not None:
            values["devices"] = None
        return NodeTable(**values)


class KindTable(NodeTable, frozen=True):
    """A kind of the nodes of a queue: ``count`` of them are equal."""

    count: Annotated[int, Meta(ge=1)] = 1


class Queue(NodeTable, frozen=True):
    """A queue, partition or QoS: its limits, and the differences of its nodes.

    ``name`` is the scheduler's name of the queue, if it is not the key; ``walltime_by_nodes`` has pairs of a
    greatest number of nodes and the wall time of jobs with up to this number. ``routes_to`` are the queues to
    which a routing queue moves its jobs: their limits are its limits. A queue that is not ``enabled``
    takes the jobs of a routing queue alone. The nodes of a ``shared`` queue may have other jobs beside.
    ``max_jobs`` are the running jobs of a user, ``max_gpus`` the GPUs of a user at a time; ``min_gpus``,
    ``min_cores`` and ``max_cores`` are of a job in all. ``accounts`` and ``qos`` are those that it takes, and
    ``groups`` those of its users; without names it takes all. ``gpu_counts`` are the numbers of GPUs that a
    job may have on a node. ``kinds`` are its nodes if they differ. ``request`` and ``account_suffix`` replace
    those of the site; ``env`` are variables of its jobs, ``options`` defaults of options.
    """

    about: str = ""
    name: str | None = None
    nodes: tuple[Count, Count] | None = None
    walltime: str | None = None
    walltime_by_nodes: tuple[tuple[Count, str], ...] = ()
    routes_to: Lines = ()
    enabled: bool = True
    shared: bool = False
    max_jobs: Count | None = None
    max_gpus: Count | None = None
    min_gpus: Count | None = None
    min_cores: Count | None = None
    max_cores: Count | None = None
    accounts: Lines = ()
    groups: Lines = ()
    qos: Lines = ()
    gpu_counts: tuple[Count, ...] = ()
    kinds: dict[str, KindTable] = {}
    account_suffix: str | None = None
    request: Lines = ()
    directives: Lines = ()
    mandatory: dict[str, str] = {}
    env: dict[str, str] = {}
    options: dict[str, Any] = {}


class LauncherTable(_Table, frozen=True):
    """The environment variables of jobs with a launcher, besides those of every job and of their queue, and
    defaults of options for these jobs.

    A variable that several tables have is that of the launcher, then of the queue.
    """

    env: dict[str, str] = {}
    options: dict[str, Any] = {}


class Rules(_Table, frozen=True):
    """The rules of a site that differ from its scheduler's manual.

    ``account`` and ``queue`` are the options of the directives for these; ``account_suffix`` is the end of
    accounts of jobs with accelerators; ``cpu_queue`` is the queue of jobs without accelerators that name
    none; ``devices`` is the option that requests ``{n}`` devices of a node; ``gpu_type`` is the
    resource of PBS Pro for the type of GPUs; ``bind`` is the option of PALS or
    srun that binds ranks to cores; ``master_addr`` is the value of --master-addr; ``srun`` are options of
    each srun that starts ranks, ``srun_ranks`` if it starts one task per rank, ``srun_nodes`` if it starts
    one task per node; ``reservation`` are directives of jobs in a reservation; ``prepend`` are
    folders for the front of search paths, as those of a network.
    """

    account: str | None = None
    account_suffix: str = ""
    queue: str | None = None
    cpu_queue: str | None = None
    devices: str = ""
    gpu_type: str = ""
    bind: str = ""
    master_addr: str = ""
    module_use: Lines = ()
    srun: Lines = ()
    srun_ranks: Lines = ()
    srun_nodes: Lines = ()
    reservation: Lines = ()
    prepend: dict[str, Lines] = {}


class Network(_Table, frozen=True):
    """Settings of the network that a job may choose by name: variables, modules to load after those of the
    job, folders for the front of search paths, such as ``LD_LIBRARY_PATH``, and variables to unset.

    ``fast``: it is faster than the settings of a job that chooses none. A value of ``env`` that is $NAME, or
    a folder that begins with it, has the value of this variable after the modules are loaded; without that
    value there is no setting.
    """

    about: str = ""
    fast: bool = False
    env: dict[str, str] = {}
    modules: Lines = ()
    prepend: dict[str, Lines] = {}
    unset: Lines = ()


class SiteFile(_Table, frozen=True):
    """A site file without the tables that it shares with job files: [job], [resources] and so on.

    ``source`` are the pages that its facts are from; those of a site that it extends come first.
    ``request`` are the directives that request nodes and devices, ``directives`` are further ones; both may
    contain numbers of the job, such as {nodes}. ``mandatory`` has an option, or the beginning of a directive,
    with an example of its value; ``lacks`` has options with the reason why the site does not support them;
    ``check`` and ``scheduler_version`` are for ``jobgen check``.
    ``differs`` has what a script does in another way than the example in the site's manual, with the reason.
    """

    title: str = ""
    extends: str | None = None
    source: tuple[Source, ...] = ()
    scheduler: str = ""
    scheduler_version: str = ""
    request: Lines = ()
    directives: Lines = ()
    mandatory: dict[str, str] = {}
    lacks: dict[str, str] = {}
    differs: dict[str, str] = {}
    check: CheckTable = CheckTable()
    detect: Detect = Detect()
    node: NodeTable = NodeTable()
    queues: dict[str, Queue] = {}
    launcher: dict[str, LauncherTable] = {}
    networks: dict[str, Network] = {}
    rules: Rules = Rules()


class Site(NamedTuple):
    """A site: its file with all that it extends, ``values`` of options as text, and their ``origins``.

    ``places`` has the file and line of every key, by its path in the tables. ``machine`` has what the
    scheduler said; its values have replaced those of the file. ``kind`` is the kind of nodes that the job
    gets in its queue, if these differ.
    """

    name: str
    path: str
    file: SiteFile
    values: Mapping[str, str | Sequence[str]]
    origins: Mapping[str, str]
    data: Mapping[str, Any]
    places: Mapping[tuple[str, ...], tuple[str, int | None]]
    machine: MachineFacts | None = None
    kind: str = ""

    @property
    def title(self) -> str:
        return self.file.title

    @property
    def scheduler(self) -> Scheduler:
        dialect = self.values.get("dialect")
        return named(self.file.scheduler, dialect if isinstance(dialect, str) else None)

    @property
    def queues(self) -> Mapping[str, Queue]:
        return self.file.queues

    @property
    def origin(self) -> str:
        """The site, as the origin of a value."""
        return f"site {self.name}"

    def options(self, queue: str | None, launcher: str) -> dict[str, str | Sequence[str]]:
        """Return the texts of options for jobs with a launcher in a queue: of the launcher, else of the
        queue, else of every job."""
        own = self.queues.get(queue) if queue else None
        tables = (own.options if own else {}, self.file.launcher.get(launcher, LauncherTable()).options)
        more = {key: option_text(value) for table in tables for key, value in table.items()}
        return {**self.values, **more}

    def place(self, path: tuple[str, ...]) -> str:
        """Return the file and line of a key, or of the first key in a table."""
        file, line = next(
            (where for at, where in self.places.items() if at[: len(path)] == path), (self.path, None)
        )
        return f"{file}, line {line}" if line else file

    def request(self, queue: str | None) -> Lines:
        """Return the directives that request nodes and devices of a queue."""
        own = self.queues.get(queue) if queue else None
        return own.request if own and own.request else self.file.request

    def node(self, queue: str | None) -> NodeTable:
        """Return the resources of a node of a queue, of the job's kind if its nodes differ."""
        own = self.queues.get(queue) if queue else None
        common = self.file.node.over(NodeTable())
        if own is None:
            return common
        table = own.over(common)
        return own.kinds[self.kind].over(table) if self.kind in own.kinds else table

    def kinds(self, queue: str) -> dict[str, tuple[int | None, NodeTable]]:
        """Return the number and the resources of each kind of nodes of a queue. Without kinds it has one, and
        their number is unknown."""
        own = self.queues[queue]
        table = own.over(self.file.node.over(NodeTable()))
        return {name: (one.count, one.over(table)) for name, one in own.kinds.items()} or {"": (None, table)}


class MachineFacts(NamedTuple):
    """The queues and nodes that the scheduler of a site listed: the file that keeps them, the date, the
    commands, and a site with these facts alone."""

    path: str
    date: datetime.date
    commands: str
    site: Site
