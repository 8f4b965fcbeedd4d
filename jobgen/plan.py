"""Resolution of a JobSpec to a Plan, in which all values are set and agree. It has no side effects."""

from typing import TYPE_CHECKING, NamedTuple

from jobgen import __version__
from jobgen.containers import Container, container
from jobgen.errors import one_of
from jobgen.launchers import LAUNCHERS, MPI_FLAVOURS, Launcher, MpiFlavour, RankVariables
from jobgen.options import DEFAULT_WALLTIME
from jobgen.program import Program, read_program
from jobgen.resources import launch_method
from jobgen.resources.accelerators import ACCELERATORS, Accelerator
from jobgen.resources.cores import Cores, cores
from jobgen.resources.device_filter import Active, active
from jobgen.resources.heterogeneous import Chunk, check_groups, chunks, groups_of, most_ranks, total, written
from jobgen.schedulers.array_tasks import tasks
from jobgen.schedulers.base import Scheduler, clock
from jobgen.schedulers.directives import Directives, check_directives, directives
from jobgen.schedulers.table import SCHEDULERS, scheduler_of
from jobgen.sites.site_directives import SiteWords, at_site
from jobgen.spec import JobSpec
from jobgen.survival import Survival, survival

if TYPE_CHECKING:
    from jobgen.sweep import Sweep


class Plan(NamedTuple):
    """A resolved job. The fields are the values for the templates; a list is empty if it is not requested."""

    version: str
    spec: JobSpec
    scheduler: Scheduler
    launcher: str
    launch_template: str
    node_function: bool
    accelerator_name: str
    accelerator: Accelerator
    mpi_name: str | None
    mpi: MpiFlavour | None
    title: str
    nodes: int
    chunks: tuple[Chunk, ...]
    mixed: str | None
    gpus_per_node: int
    ranks_per_node: int
    cpus: Cores
    container: Container | None
    walltime: str
    devices: str | None
    memory: str | None
    start_nodes: str
    agents: tuple[str, ...]
    force_ssh: bool
    run: str
    activate: str | None
    restore_devices: bool
    devices_by_node: bool
    lines_per_rank: int | None
    rank_variables: RankVariables | None
    commands: tuple[str, ...]
    mpi_options: tuple[str, ...]
    launcher_args: tuple[str, ...]
    active: Active
    program: Program
    local_rank_at: int | None
    sets_ranks: bool
    survival: Survival
    allocated: int
    nodes_word: str
    world_word: str
    reach: str | None
    queue: str | None
    site: SiteWords
    array: str | None
    sweep: "Sweep | None"
    directives: Directives

    @property
    def launch_row(self) -> Launcher:
        """Return the row of the launcher."""
        return LAUNCHERS[self.launcher]

    @property
    def mpirun(self) -> MpiFlavour | None:
        """Return the MPI whose mpirun starts the ranks; None with another launcher."""
        return self.mpi if self.launch_row.of_mpi else None


def resolve(spec: JobSpec) -> Plan:
    """Set all values that are not given and check that they agree.

    Raises:
        JobgenError: the request contradicts itself, or the scheduler cannot express it.
    """
    scheduler = scheduler_of(spec)
    check_directives(spec, scheduler)
    check_groups(spec, scheduler)
    accelerator_name, gpus, ranks = _devices(spec, scheduler)
    accelerator = ACCELERATORS[accelerator_name]
    mpi_name = _mpi(spec, scheduler)
    mpi = MPI_FLAVOURS[mpi_name] if mpi_name else None
    cpus = cores(spec, scheduler, ranks)
    nodes, mixed = total(spec.nodes), written(spec.nodes)
    if scheduler.one_host and nodes != 1:
        raise spec.refuse("nodes", "a local run has this one node; use pbs or slurm for more")
    _check_remote(spec, scheduler, mpi)
    part = active(spec, ranks)
    program = read_program(spec.program)
    launcher = LAUNCHERS[spec.launcher]
    start_nodes = launch_method.start_nodes(spec, scheduler)
    agents = launch_method.agents(spec, scheduler, mpi)
    box = container(spec, accelerator_name, program, start_nodes)
    walltime = spec.walltime or DEFAULT_WALLTIME
    survive = survival(spec, scheduler, program, walltime)
    spare = survive.spare_nodes
    device_words = _device_words(spec, scheduler, accelerator) if gpus else ""
    memory = scheduler.memory(spec.mem, nodes, cpus.node) if spec.mem is not None else None
    site = at_site(spec, scheduler, nodes + spare, walltime, gpus, ranks, cpus, memory)
    world = '"$JOBGEN_WORLD_SIZE"' if spare else str(part.world_size)
    command = mpi.command if mpi and launcher.of_mpi else launcher.command
    python = program.head is not None or launcher.once_a_node
    swept = None
    if spec.sweep:
        from jobgen.sweep import sweep  # late: only sweeps need it

        swept = sweep(spec, program)
    array = tasks(spec, scheduler, swept.points if swept else 0)
    return Plan(
        version=__version__,
        spec=spec,
        scheduler=scheduler,
        launcher=spec.launcher,
        launch_template=f"start_{start_nodes}" if launcher.once_a_node else spec.launcher,
        node_function=launcher.once_a_node and start_nodes != "pdsh",
        accelerator_name=accelerator_name,
        accelerator=accelerator,
        mpi_name=mpi_name,
        mpi=mpi,
        title=_title(spec, ranks, part.world_size, mpi, accelerator),
        nodes=nodes,
        chunks=chunks(spec, cpus, ranks, device_words, gpus),
        mixed=mixed,
        gpus_per_node=gpus,
        ranks_per_node=ranks,
        cpus=cpus,
        container=box,
        walltime=clock(walltime),
        devices=device_words.format(n=gpus) or None,
        memory=memory,
        run=f"timeout {spec.walltime} " if spec.walltime and not scheduler.limits_time else "",
        start_nodes=start_nodes,
        agents=agents,
        force_ssh=spec.remote == "ssh",
        commands=(
            *_commands(box, command, python, launcher.once_a_node),
            *(agents if spec.remote == "scheduler" else ()),
        ),
        mpi_options=_mpi_options(spec, mpi, ranks, world, cpus, site.bind) if launcher.of_mpi else (),
        launcher_args=spec.launcher_arg,
        activate=f"{spec.venv}/bin/activate" if spec.venv else None,
        restore_devices=launcher.renumbers_devices and accelerator.visible is not None,
        devices_by_node=start_nodes == "pdsh" and scheduler.sets_devices,
        lines_per_rank=cpus.rank if mixed and scheduler.hosts_by_core else None,
        rank_variables=launch_method.rank_variables(spec, mpi),
        active=part,
        program=program,
        local_rank_at=program.head if launcher.local_rank_option else None,
        sets_ranks=not (launcher.of_mpi and program.is_ours and box is None),
        survival=survive,
        allocated=nodes + spare,
        # With spare nodes, only the script knows which nodes take part.
        nodes_word=f"$((JOBGEN_WORLD_SIZE / {ranks}))" if spare else str(part.nodes),
        world_word=world,
        reach=launch_method.reach(spec, scheduler, agents),
        queue=site.queue_name or spec.queue,
        site=site,
        array=array,
        sweep=swept,
        directives=directives(spec, scheduler, array),
    )


def _commands(box: Container | None, command: str, python: bool, once_a_node: bool) -> tuple[str, ...]:
    """Return the commands that the host must have; the others are in the container."""
    if box is None:
        return (*(("python3",) if python else ()), command)
    return tuple(dict.fromkeys((box.runtime.command, *(() if once_a_node else (command,)))))


def _devices(spec: JobSpec, scheduler: Scheduler) -> tuple[str, int, int]:
    """Return accelerator, devices and ranks per node; a value that is not given follows from the others."""
    gpus, ranks = spec.gpus_per_node, spec.ranks_per_node or most_ranks(spec.nodes)
    name = spec.accelerator
    if name is None:
        name = "cpu" if gpus == 0 or (gpus is None and scheduler.one_host) else "cuda"
    if name == "cpu":
        if gpus:
            raise spec.refuse(
                "gpus_per_node", "there are none with --accelerator cpu; leave one of the two out"
            )
        return name, 0, ranks or 1
    if gpus == 0:
        raise spec.refuse("gpus_per_node", f"--accelerator {name} needs at least 1, or say --accelerator cpu")
    gpus = gpus or ranks or 1
    ranks = ranks or gpus
    if ranks > gpus:
        raise spec.refuse(
            "ranks_per_node", f"{ranks} ranks do not fit {gpus} accelerators a node: each needs its own"
        )
    return name, gpus, ranks


def _mpi(spec: JobSpec, scheduler: Scheduler) -> str | None:
    launcher = LAUNCHERS[spec.launcher]
    if spec.scheduler not in launcher.schedulers:
        others = one_of(name for name, other in LAUNCHERS.items() if spec.scheduler in other.schedulers)
        raise spec.refuse("launcher", f"{spec.launcher} is Slurm's own; with {spec.scheduler} use {others}")
    if not isinstance(spec.nodes, int) and launcher.ranks and not launcher.ranks.local_size:
        raise spec.refuse("launcher", f"{spec.launcher} starts as many ranks on each node; use torchrun")
    if spec.mpi is None:
        return launcher.default_mpi
    if not launcher.starts_mpi:
        raise spec.refuse("mpi", f"--launcher {spec.launcher} starts no MPI; leave it out or use mpirun")
    mpi = MPI_FLAVOURS[spec.mpi]
    if mpi.dialects and scheduler.name not in mpi.dialects:
        titles = one_of(SCHEDULERS[one].title for one in mpi.dialects)
        raise spec.refuse("mpi", f"{spec.mpi.upper()} starts jobs of {titles} only; use another MPI")
    if not isinstance(spec.nodes, int) and not mpi.mixed:
        raise spec.refuse(
            "mpi", "nodes that differ are for openmpi and mpich here; use one of them, torchrun or deepspeed"
        )
    return spec.mpi


def _check_remote(spec: JobSpec, scheduler: Scheduler, mpi: MpiFlavour | None) -> None:
    if spec.remote == "auto":
        return
    if scheduler.one_host:
        raise spec.refuse("remote", "a local run has no other nodes; leave it out")
    if spec.remote == "ssh" and launch_method.by_scheduler(spec, mpi):
        who = spec.launcher if LAUNCHERS[spec.launcher].by_scheduler else str(spec.mpi).upper()
        raise spec.refuse("remote", f"{who} goes through the scheduler and never through ssh")


def _device_words(spec: JobSpec, scheduler: Scheduler, accelerator: Accelerator) -> str:
    """Return the scheduler's option for ``{n}`` devices per node."""
    words = scheduler.devices(accelerator)
    if words is None:
        title = scheduler.title
        raise spec.refuse("accelerator", f"{title} cannot request {accelerator.title}; use PBS Pro or Slurm")
    return words


def _mpi_options(
    spec: JobSpec, mpi: MpiFlavour | None, ranks: int, world: str, cpus: Cores, bind: str
) -> tuple[str, ...]:
    """Return the lines of mpirun's options: the placement of ranks, then the variables to export."""
    assert mpi
    always = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "MASTER_ADDR", "MASTER_PORT")
    # The ranks read env.sh, too, so that values need not be on a command line that all users see.
    named = () if mpi.shows_values else (name for name, _ in spec.env)
    names = dict.fromkeys((*always, *named))
    numbers = {"ranks": world, "ranks_per_node": ranks, "cpus": cpus.rank, "bind": bind or "--cpu-bind depth"}
    place = (line.format(**numbers) for line in _place(spec, mpi, cpus))
    export = (word.format(name=name) for word in mpi.export for name in names)
    return (*place, " ".join(export))


def _place(spec: JobSpec, mpi: MpiFlavour, cpus: Cores) -> tuple[str, ...]:
    """Return the options that place the ranks; mpirun must not bind ranks that bind themselves."""
    if not isinstance(spec.nodes, int):
        return mpi.mixed
    return mpi.place if cpus.bind is None else mpi.unbound or mpi.place


def _title(spec: JobSpec, ranks: int, world: int, mpi: MpiFlavour | None, accelerator: Accelerator) -> str:
    def count(number: int, noun: str) -> str:
        return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

    by = f"{spec.launcher} ({mpi.title})" if mpi else spec.launcher
    each = (
        f"{count(group.nodes, 'node')} x {count(group.ranks, 'rank')}"
        for group in groups_of(spec.nodes, ranks)
    )
    return f"{' + '.join(each)}, {count(world, 'rank')} in all, by {by} on {accelerator.title}"
