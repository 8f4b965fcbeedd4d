"""Resolves a JobSpec into a Plan: no unknowns left, all numbers agree. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from jobgen import __version__
from jobgen.accelerators import ACCELERATORS, Accelerator
from jobgen.errors import JobgenError, one_of, shown
from jobgen.launchers import LAUNCHERS, MPI_FLAVOURS, MpiFlavour
from jobgen.schedulers import SCHEDULERS, Scheduler, check_directives, clock, scheduler_of, size, torque_memory
from jobgen.spec import Filter, JobSpec

DEFAULT_WALLTIME = 3600  # s; a job without a limit waits longer, or takes the queue's by surprise

_SRUN_RANK = ("$SLURM_PROCID", "$SLURM_NTASKS", "$SLURM_LOCALID")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What will run. Every field is what a template prints; lists are empty where nothing is asked."""

    version: str
    spec: JobSpec = field(repr=False)
    scheduler: Scheduler
    launcher: str
    launcher_template: str
    accelerator_name: str
    accelerator: Accelerator
    mpi_name: str | None
    mpi: MpiFlavour | None
    title: str
    nodes: int
    gpus_per_node: int
    ranks_per_node: int
    cpus_per_rank: int
    cpus_per_node: int
    slots: int
    active_nodes: int
    world_size: int
    walltime: str
    devices: str | None
    memory: str | None
    start_nodes: str
    agents: tuple[str, ...]
    force_ssh: bool
    run: str
    activate: str | None
    env_names: tuple[str, ...]
    restore_devices: bool
    rank_words: tuple[str, str, str]
    hostfile_slots: int
    commands: tuple[str, ...]
    mpi_options: tuple[str, ...]
    launcher_args: tuple[str, ...]
    filter_option: tuple[str, str] | None
    include_hosts: tuple[str, ...]
    exclude_hosts: tuple[str, ...]
    named_hosts: tuple[str, ...]
    program: tuple[str, ...]
    program_file: str | None
    program_command: str | None
    our_module: bool
    local_rank_at: int | None
    sets_ranks: bool


def resolve(spec: JobSpec) -> Plan:
    """Fill in what was not said and check that all of it agrees.

    Raises:
        JobgenError: the request contradicts itself, or the scheduler cannot express it.
    """
    row = scheduler_of(spec)
    scheduler = SCHEDULERS[row]
    check_directives(spec, row)
    accelerator_name, gpus, ranks = _devices(spec)
    accelerator = ACCELERATORS[accelerator_name]
    mpi_name = _mpi(spec, row)
    mpi = MPI_FLAVOURS[mpi_name] if mpi_name else None
    cpus = spec.cpus_per_rank or (1 if row == "local" else 2)
    if row == "local" and spec.nodes != 1:
        raise spec.refuse("nodes", "a local run has this one node; use pbs or slurm for more")
    _check_remote(spec, row)
    active_nodes, world_size = _active(spec, ranks)
    walltime = spec.walltime or DEFAULT_WALLTIME
    program, kind = _program(spec.program)
    ours = program[:3] == ("python3", "-m", "jobgen.train")
    launcher = LAUNCHERS[spec.launcher]
    start_nodes = _start_nodes(spec, row)
    agents = _agents(spec, row, mpi)
    command = mpi.command if mpi and spec.launcher == "mpirun" else launcher.command
    python = kind != "command" or launcher.once_a_node
    return Plan(
        version=__version__,
        spec=spec,
        scheduler=scheduler,
        launcher=spec.launcher,
        launcher_template="launcher/pdsh.sh.j2" if start_nodes == "pdsh" else f"launcher/{spec.launcher}.sh.j2",
        accelerator_name=accelerator_name,
        accelerator=accelerator,
        mpi_name=mpi_name,
        mpi=mpi,
        title=_title(spec, ranks, world_size, mpi, accelerator),
        nodes=spec.nodes,
        gpus_per_node=gpus,
        ranks_per_node=ranks,
        cpus_per_rank=cpus,
        cpus_per_node=ranks * cpus,
        slots=ranks,
        active_nodes=active_nodes,
        world_size=world_size,
        walltime=clock(walltime),
        devices=_devices_request(spec, row, accelerator, gpus),
        memory=_memory(spec, row, ranks * cpus),
        # Nothing but timeout ends a local run in time.
        run=f"timeout {spec.walltime} " if row == "local" and spec.walltime else "",
        start_nodes=start_nodes,
        agents=agents,
        force_ssh=spec.remote == "ssh",
        commands=(*(("python3",) if python else ()), command, *(agents if spec.remote == "scheduler" else ())),
        mpi_options=_mpi_options(spec, mpi, ranks, world_size, cpus) if spec.launcher == "mpirun" else (),
        launcher_args=spec.launcher_arg,
        hostfile_slots=spec.nodes * ranks,
        activate=f"{spec.venv}/bin/activate" if spec.venv else None,
        env_names=tuple(dict.fromkeys(name for name, _ in spec.env)),
        restore_devices=spec.launcher == "deepspeed" and accelerator.visible is not None,
        rank_words=(mpi.rank, mpi.size, mpi.local_rank) if mpi and spec.launcher == "mpirun" else _SRUN_RANK,
        filter_option=_filter_option(spec),
        include_hosts=_hosts(spec.include),
        exclude_hosts=tuple(host for host, slots in spec.exclude or () if not slots or len(set(slots)) == ranks),
        named_hosts=_hosts(spec.include or spec.exclude),
        program=program,
        program_file=program[1] if kind == "script" else None,
        program_command=program[0] if kind == "command" else None,
        our_module=ours,
        # The deepspeed launcher hands --local_rank to a Python program, right behind its name.
        local_rank_at=_local_rank_at(kind) if spec.launcher == "deepspeed" else None,
        sets_ranks=spec.launcher == "srun" or (spec.launcher == "mpirun" and not ours),
    )


def _devices(spec: JobSpec) -> tuple[str, int, int]:
    """Accelerator, devices and ranks a node: each follows from the others where it was not said."""
    gpus, ranks = spec.gpus_per_node, spec.ranks_per_node
    name = spec.accelerator
    if name is None:
        name = "cpu" if gpus == 0 or (gpus is None and spec.scheduler == "local") else "cuda"
    if name == "cpu":
        if gpus:
            raise spec.refuse("gpus_per_node", "there are none with --accelerator cpu; leave one of the two out")
        return name, 0, ranks or 1
    if gpus == 0:
        raise spec.refuse("gpus_per_node", f"--accelerator {name} needs at least 1, or say --accelerator cpu")
    gpus = gpus or ranks or 1
    ranks = ranks or gpus
    if ranks > gpus:
        raise spec.refuse("ranks_per_node", f"{ranks} ranks do not fit {gpus} accelerators a node: each needs its own")
    return name, gpus, ranks


def _mpi(spec: JobSpec, row: str) -> str | None:
    if spec.scheduler not in LAUNCHERS[spec.launcher].schedulers:
        others = one_of(name for name, other in LAUNCHERS.items() if spec.scheduler in other.schedulers)
        raise spec.refuse("launcher", f"{spec.launcher} is Slurm's own; with {spec.scheduler} use {others}")
    if spec.mpi is None:
        return "openmpi" if spec.launcher == "mpirun" else None
    if spec.launcher not in ("mpirun", "srun"):
        raise spec.refuse("mpi", f"--launcher {spec.launcher} starts no MPI; leave it out or use mpirun")
    if spec.mpi == "pals" and row != "pbspro":
        raise spec.refuse("mpi", "PALS starts jobs of PBS Pro only; use another MPI")
    return spec.mpi


def _check_remote(spec: JobSpec, row: str) -> None:
    if spec.remote == "auto":
        return
    if row == "local":
        raise spec.refuse("remote", "a local run has no other nodes; leave it out")
    if spec.remote == "ssh" and (spec.launcher == "srun" or spec.mpi == "pals"):
        who = "srun" if spec.launcher == "srun" else "PALS"
        raise spec.refuse("remote", f"{who} goes through the scheduler and never through ssh")


def _active(spec: JobSpec, ranks: int) -> tuple[int, int]:
    """Nodes and ranks that take part, after DeepSpeed's filters."""
    if spec.include and spec.exclude:
        raise spec.refuse("exclude", "goes with --include never; DeepSpeed takes one of the two")
    key = "include" if spec.include else "exclude"
    chosen: Filter | None = getattr(spec, key)
    if not chosen:
        return spec.nodes, spec.nodes * ranks
    if spec.launcher != "deepspeed":
        raise spec.refuse(key, f"only the deepspeed launcher filters devices; {spec.launcher} would not heed it")
    for host, slots in chosen:
        if outside := [slot for slot in slots if slot >= ranks]:
            raise spec.refuse(key, f"{host} has the slots 0 to {ranks - 1}, so not {outside[0]}")
    if len(chosen) > spec.nodes:
        raise spec.refuse(key, f"names {len(chosen)} hosts, but --nodes is {spec.nodes}")
    counts = [len(slots) or ranks for _, slots in chosen]
    if key == "include":
        return len(chosen), sum(counts)
    world_size = spec.nodes * ranks - sum(counts)
    if not world_size:
        raise spec.refuse(key, "leaves no device at all")
    return spec.nodes - counts.count(ranks), world_size


def _devices_request(spec: JobSpec, row: str, accelerator: Accelerator, gpus: int) -> str | None:
    if not gpus or row == "local":
        return None
    words = {"pbspro": accelerator.select, "torque": accelerator.torque, "slurm": accelerator.gres}[row]
    if words is None:
        title = SCHEDULERS[row].title
        raise spec.refuse("accelerator", f"{title} has no word for {accelerator.title}; use PBS Pro or Slurm")
    return words.format(n=gpus)


def _memory(spec: JobSpec, row: str, processes: int) -> str | None:
    if spec.mem is None:
        return None
    if row == "torque":
        return torque_memory(spec.mem, spec.nodes, processes)
    return size(spec.mem, "b") if row == "pbspro" else size(spec.mem).upper()


def _start_nodes(spec: JobSpec, row: str) -> str:
    """How a launcher that runs once a node is started there: the end of a template's name in launcher/."""
    if spec.launcher == "mpirun":
        return "mpirun"  # starts its own daemons
    if spec.nodes == 1:
        return "here"
    if spec.remote == "ssh" and spec.launcher == "deepspeed":
        return "pdsh"
    return "srun" if row == "slurm" and spec.remote != "ssh" else "each"


def _agents(spec: JobSpec, row: str, mpi: MpiFlavour | None) -> tuple[str, ...]:
    """What stands in for ssh between the nodes, in the order of trial: names of templates in remote/."""
    if spec.nodes == 1 or spec.launcher == "srun" or spec.mpi == "pals" or _start_nodes(spec, row) in ("srun", "pdsh"):
        return ()
    if spec.remote == "ssh":
        return ("ssh",)
    if row == "slurm":
        return () if mpi and mpi.knows_slurm else ("srun",)
    own = {"pbspro": "pbs_tmrsh", "torque": "pbsdsh"}[row]
    return (own,) if spec.remote == "scheduler" else (own, "ssh")


def _mpi_options(spec: JobSpec, mpi: MpiFlavour | None, ranks: int, world: int, cpus: int) -> tuple[str, ...]:
    """The lines of options behind mpirun: where the ranks go, then which variables go with them."""
    assert mpi
    names = dict.fromkeys(
        ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "MASTER_ADDR", "MASTER_PORT", *(name for name, _ in spec.env))
    )
    place = (line.format(ranks=world, ranks_per_node=ranks, cpus=cpus) for line in mpi.place)
    export = (word.format(name=name) for word in mpi.export for name in names)
    return (*place, " ".join(export))


def _filter_option(spec: JobSpec) -> tuple[str, str] | None:
    for option, hosts in (("--include", spec.include), ("--exclude", spec.exclude)):
        if hosts:
            parts = (f"{host}:{','.join(map(str, slots))}" if slots else host for host, slots in hosts)
            return option, "@".join(parts)
    return None


def _hosts(chosen: Filter | None) -> tuple[str, ...]:
    return tuple(host for host, _ in chosen or ())


def _program(words: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The command of one rank, and what it is: a script or a module of Python, or a command as it stands."""
    if words and not words[0]:
        raise JobgenError("the program after -- is an empty word: name a script, -m MODULE or a command")
    if words and words[0] == "-m":
        if len(words) == 1 or not all(part.isidentifier() for part in words[1].split(".")):
            raise JobgenError(f"-m {shown(' '.join(words[1:2]))} (after --): must be followed by the name of a module")
        return ("python3", *words), "module"
    if not words or words[0].startswith("-"):
        return ("python3", "-m", "jobgen.train", *words), "module"
    if PurePosixPath(words[0]).suffix == ".py":
        return ("python3", *words), "script"
    return words, "command"


def _local_rank_at(kind: str) -> int | None:
    """Behind how many words of the command --local_rank goes; None for a program that is not Python."""
    return {"script": 2, "module": 3}.get(kind)


def _title(spec: JobSpec, ranks: int, world: int, mpi: MpiFlavour | None, accelerator: Accelerator) -> str:
    def count(number: int, noun: str) -> str:
        return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

    by = f"{spec.launcher} ({mpi.title})" if mpi else spec.launcher
    return f"{count(spec.nodes, 'node')} x {count(ranks, 'rank')}, {count(world, 'rank')} in all, by {by} on {accelerator.title}"
