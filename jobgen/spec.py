"""The specification of a job, with the origin of each value."""

import os
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from jobgen.errors import JobgenError, setting
from jobgen.launch.default_launcher import OF_RANKS, DefaultLauncher, default_launcher
from jobgen.schedulers.directive_options import values_by_key
from jobgen.schedulers.table import scheduler_of
from jobgen.secrets import masked_data
from jobgen.values.arrays import Array
from jobgen.values.devices import Devices
from jobgen.values.node_groups import Group, groups_text, total
from jobgen.values.parsers import known_directory

if TYPE_CHECKING:
    from jobgen.sites.site_file import Site

COMMAND_LINE = "command line"
NO_CONTAINER = "none"  # of a step in a job with a container
SET = "--set"

Filter = tuple[tuple[str, tuple[int, ...]], ...]
Text = str | Sequence[str]


class SweepRequest(NamedTuple):
    """The table [sweep]: ``mode`` is product or zip; each parameter with its values."""

    mode: str
    values: tuple[tuple[str, tuple[Any, ...]], ...]


class Ready(NamedTuple):
    """When a step is ready: a file exists, its port (0: the one chosen for it) is open, or a line of its
    output has a text. ``within`` are the seconds until then at most."""

    file: str
    by_port: bool
    port: int
    line: str
    within: int


class Step(NamedTuple):
    """A table [[step]]: its program, and the options that differ from those of the job.

    ``parallel``: it starts together with the step before. ``env`` are the environment variables of the site
    that the steps do not have in common, as their launchers differ; ``own_env`` are those of the table.
    With ``gpus`` or ``cores``, a number or which ones, it has a part of each of its nodes, else whole nodes.
    ``starts`` are the steps that must be ready before it starts, ``ends`` is the step with which it is ended.
    """

    program: tuple[str, ...]
    launcher: str | None = None
    nodes: int | None = None
    ranks_per_node: int | None = None
    parallel: bool = False
    env: tuple[tuple[str, str | None], ...] = ()
    container: str | None = None
    image: str | None = None
    bind: tuple[str, ...] | None = None
    container_arg: tuple[str, ...] | None = None
    name: str | None = None
    gpus: int | tuple[int, ...] | None = None
    cores: int | tuple[int, ...] | None = None
    own_env: tuple[tuple[str, str | None], ...] = ()
    starts: tuple[str, ...] = ()
    ends: str | None = None
    ready: Ready | None = None

    @property
    def shares_nodes(self) -> bool:
        """Return whether it has a part of each of its nodes."""
        return self.gpus is not None or self.cores is not None


def first_nodes(steps: Sequence[Step], nodes: int) -> Iterator[int]:
    """Yield the first node of each step, from 0. Steps at the same time have the next nodes, except those
    that follow each other with parts of nodes: they begin on the same node."""
    first = end = 0
    before: Step | None = None
    for step in steps:
        if not step.parallel or before is None:
            first = end = 0
        elif not (step.shares_nodes and before.shares_nodes):
            first = end
        end = max(end, first + (step.nodes or nodes))
        yield first
        before = step


class Component(NamedTuple):
    """A table [[component]]: equal nodes, which differ from those of other components. A value is None if it
    is that of the job."""

    nodes: int = 1
    ranks_per_node: int | None = None
    gpus_per_node: int | Devices | None = None
    cpus_per_rank: int | None = None
    cpus_per_node: int | None = None
    mem: int | None = None
    constraint: str | None = None
    queue: str | None = None


class SiteName(NamedTuple):
    """The name of a site or the path of its file, the origin of the name, and the folder of the job file."""

    name: str
    origin: str
    beside: str = ""


class OwnValues(NamedTuple):
    """The options of one scheduler: their texts and origins by key, and the origin of their table."""

    values: Mapping[str, Text]
    origins: Mapping[str, str]
    origin: str


class Layer(NamedTuple):
    """The content of a job file: the text of each option by its key (a list for repeatable ones), their
    origins, the program (the command line is already added to it), the scheduler, the site and the sweep.
    ``own`` are the tables of single schedulers by name. ``is_default``: the job file was not named, but found
    in the current directory.
    """

    values: Mapping[str, Text]
    origins: Mapping[str, str]
    program: tuple[str, ...]
    scheduler: str | None = None
    site: SiteName | None = None
    sweep: SweepRequest | None = None
    steps: tuple[Step, ...] = ()
    components: tuple[Component, ...] = ()
    own: Mapping[str, OwnValues] = MappingProxyType({})
    is_default: bool = False


class _Values(NamedTuple):
    scheduler: str
    program: tuple[str, ...]
    name: str
    queue: str | None
    account: str | None
    walltime: int | None
    mail: str | None
    array: Array | None
    pack: int | None
    after: tuple[tuple[str, str], ...]
    reservation: str | None
    qos: str | None
    constraint: str | None
    licenses: str | None
    comment: str | None
    mail_on: tuple[str, ...] | None
    log: str | None
    begin: str | None
    priority: int | None
    directive: tuple[str, ...]
    dialect: str | None
    nodes: int | tuple[Group, ...]
    ranks: int | None
    hostfile: tuple[tuple[str, int], ...] | None
    gpus_per_node: int | Devices | None
    ranks_per_node: int | None
    cpus_per_rank: int | None
    cpus_per_node: int | None
    mem: int | None
    exclusive: bool | None
    accelerator: str | None
    launcher: str
    mpi: str | None
    remote: str
    launcher_arg: tuple[str, ...]
    expand: bool | None
    cpu_bind: tuple[str, tuple[str, ...]] | None
    interface: str | None
    network: str | None
    include: Filter | None
    exclude: Filter | None
    master_addr: str | None
    master_port: int | None
    grace: int | None
    signal: tuple[str, int | None] | None
    requeue: int | None
    requeue_on: str
    preflight: bool | None
    spare_nodes: int | None
    restarts: int | None
    min_nodes: int | None
    hang_timeout: int | None
    gpu_telemetry: bool | None
    node_limit: int | None
    module_init: tuple[str, ...]
    module_purge: bool | None
    module_use: tuple[str, ...]
    module: tuple[str, ...]
    source: tuple[str, ...]
    conda: str | None
    venv: str | None
    env: tuple[tuple[str, str | None], ...]
    env_file: tuple[tuple[str, tuple[str, ...]], ...]
    container: str | None
    image: str | None
    bind: tuple[str, ...]
    container_arg: tuple[str, ...]
    early_setup: str | None
    setup: str | None
    before: str | None
    after_block: str | None
    on_each_node: str | None
    after_on_each_node: str | None
    workdir: str | None
    stage: tuple[tuple[str, str], ...]
    local_dir: str | None
    local_caches: bool | None
    runs_dir: str
    group_readable: bool | None
    rank_logs: str
    runtime: str
    sweep: SweepRequest | None
    steps: tuple[Step, ...]
    components: tuple[Component, ...]
    away: bool
    origins: Mapping[str, str]
    texts: Mapping[str, str]
    site: "Site | None"


class Specification(_Values):
    """The specification of a job; a value is None if no option sets it.

    ``mem`` is in MiB per node, ``walltime`` in seconds; ``nodes`` are groups if the nodes differ. ``program``
    are the words after ``--``, or those of the job file. A variable in ``env`` without a value has the one of
    the environment at submission; ``env_file`` has the names in each file. ``origins`` and ``texts`` are the
    origins and the texts of values by key. ``away``: a step that runs beside another one, without the host of
    the script. Two specifications are equal if they request the same, whatever the origins of the values."""

    __slots__ = ()

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """Return the environment variables whose values the script contains."""
        return tuple((name, value) for name, value in self.env if value is not None)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the names of the variables whose values are read at submission or from a file."""
        env = dict(self.env)
        named = (name for _, names in self.env_file for name in names)
        return tuple(name for name in dict.fromkeys((*env, *named)) if env.get(name) is None)

    @property
    def default_launcher(self) -> DefaultLauncher:
        """Return the launcher of the program if neither an option nor the site names one."""
        several = any(getattr(self, key) for key in ("mpi", "hostfile", "away", "components", *OF_RANKS)) or (
            self.nodes != 1 if self.ranks_per_node == 1 else bool(self.ranks_per_node)
        )
        words = () if self.steps else self.program  # each step has its own launcher
        return default_launcher(
            words, self.scheduler, several or not isinstance(self.nodes, int) or self._directive_ranks
        )

    @property
    def _directive_ranks(self) -> bool:
        """Return whether the user's directives request several ranks."""
        if not self.directive:
            return False
        scheduler = scheduler_of(self)
        request = scheduler.sizes(values_by_key(self.directive, scheduler))
        return max(request.ranks or 1, request.ranks_per_node or 1) > 1

    def launcher_of(self, step: Step) -> str:
        """Return the launcher of a step."""
        if step.launcher or "launcher" in self.origins:
            return step.launcher or self.launcher
        ranks = step.ranks_per_node or self.ranks_per_node
        nodes = step.nodes or self.nodes
        alone = self._replace(
            steps=(), away=self.is_away(step), program=step.program, ranks_per_node=ranks, nodes=nodes
        )
        return alone.default_launcher.name

    def is_away(self, step: Step) -> bool:
        """Return whether a step has not the first node of the job, which is the host of the script."""
        firsts = first_nodes(self.steps, total(self.nodes))
        return any(first for one, first in zip(self.steps, firsts, strict=True) if one is step)

    def origin(self, key: str) -> str:
        """Return the origin of the value of ``key``."""
        return self.origins.get(key, "default")

    def is_of_site(self, key: str) -> bool:
        """Return whether the value of ``key`` is that of the site."""
        return self.origin(key).startswith("site ")

    @property
    def late_workdir(self) -> str:
        """Return the working directory if it has variables: the job enters it behind early_setup."""
        return "" if known_directory(self.workdir) else self.workdir or ""

    def directory_on_this_machine(self, start: str = "") -> str:
        """Return the directory of the job as a path of this machine, relative to ``start``."""
        return os.path.join(start, os.path.expanduser(known_directory(self.workdir)))

    @property
    def program_origin(self) -> str:
        """Return the origin of the program as errors name it."""
        origin = self.origin("program")
        return "after --" if origin in ("default", "derived", COMMAND_LINE) else origin

    def setting_text(self, key: str) -> str:
        """Return ``--key value (origin)``, or ``key = value (origin)``, as an error names a setting."""
        origin, value = self.origin(key), getattr(self, key)
        name = setting(key, origin)
        if isinstance(value, bool) and name.startswith("--"):
            return f"{name if value else name.replace('--', '--no-')} ({origin})"
        if key == "nodes" and not isinstance(value, int):
            value = groups_text(value)
        return f"{name} {self.texts.get(key, masked_data(value))} ({origin})"

    def refuse(self, key: str, reason: str) -> JobgenError:
        """Return the error that refuses a setting, with the reason."""
        return JobgenError(f"{self.setting_text(key)}: {reason}", key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specification) and self._request() == other._request()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._request())

    def __repr__(self) -> str:
        values = ((key, getattr(self, key)) for key in ("program", *self.origins) if key in self._fields)
        words = (f"{key}={value!r}" for key, value in dict(values).items() if value != ())
        return f"JobSpec({', '.join([repr(self.scheduler), *words])})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._make, (tuple(self),)

    def _request(self) -> tuple[Any, ...]:
        values = tuple(self)[: -len(("origins", "texts", "site"))]
        return (*values, self.site and self.site.name)
