"""The launch of the ranks: the launcher, its MPI, and how it is started on the other nodes."""

import re
from typing import NamedTuple

from jobgen.errors import one_of
from jobgen.launch.default_launcher import OF_RANKS
from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS, Launcher, MpiFlavour, RankVariables
from jobgen.plan.node_work import works_on_nodes
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import SCHEDULERS, named
from jobgen.spec import COMMAND_LINE, Specification


class LaunchMethod(NamedTuple):
    """The launcher of a job, its MPI, and the method that reaches other nodes; the functions describe the
    fields.

    ``template`` is in templates/launcher/. With ``node_function`` it starts the function node of the script,
    which has the launcher itself.
    """

    row: Launcher
    mpi_name: str | None
    mpi: MpiFlavour | None
    template: str
    node_function: bool
    start_nodes: str
    agents: tuple[str, ...]
    reach: str | None

    @property
    def mpirun(self) -> MpiFlavour | None:
        """Return the MPI whose mpirun starts the ranks; None with another launcher."""
        return self.mpi if self.row.of_mpi else None

    @property
    def pmi_library(self) -> str:
        """Return the variable by which the MPI of srun's ranks finds a library of Slurm, or an empty text."""
        return self.mpi.pmi_library if self.mpi is not None and self.row.mpi_plugin else ""

    @property
    def rank_variables(self) -> RankVariables | None:
        """Return the launcher's rank variables; None if it sets RANK, WORLD_SIZE and LOCAL_RANK itself."""
        return (self.mpirun or self.row).ranks


def launch_of(spec: Specification, scheduler: Scheduler) -> LaunchMethod:
    """Return the launch of the ranks.

    Raises:
        JobgenError: the launcher, the MPI or the way to the other nodes does not suit the rest of the job.
    """
    row = LAUNCHERS[spec.launcher]
    name = _mpi(spec, scheduler, row)
    mpi = MPI_FLAVOURS[name] if name else None
    _check_remote(spec, scheduler, mpi)
    _check_master_addr(spec)
    _check_one_process(spec, row)
    start, others = start_nodes(spec, scheduler), agents(spec, scheduler, mpi)
    return LaunchMethod(
        row=row,
        mpi_name=name,
        mpi=mpi,
        template=f"start_{start}" if row.once_a_node else spec.launcher,
        node_function=row.once_a_node and start != row.remote_shell,
        start_nodes=start,
        agents=others,
        reach=reach(spec, scheduler, others),
    )


def note(spec: Specification) -> str:
    """Return a note on the launchers that no option names; empty if options do."""
    origin = spec.origin("launcher")
    if spec.is_of_site("launcher"):
        return f"the launcher is {spec.launcher}, that of {origin}"
    if origin != "default":
        return ""
    of_steps = [
        f"that of step {number} is {spec.launcher_of(step)}"
        for number, step in enumerate(spec.steps, 1)
        if not step.launcher
    ]
    if spec.steps:
        return "without --launcher, " * bool(of_steps) + ", ".join(of_steps)
    name, use = spec.default_launcher
    more = ": --ranks-per-node N starts more" * LAUNCHERS[name].one_process
    return f"the launcher is {name}, the default for {use}{more}"


def filter_note(spec: Specification, scheduler: Scheduler) -> str:
    """Return a note on a typed filter that the scheduler's command has, too, with another meaning."""
    for key in ("include", "exclude"):
        hosts = [host for host, slots in getattr(spec, key) or () if not slots]
        if hosts and key in scheduler.grammar.long_options and spec.origin(key) == COMMAND_LINE:
            own = f"--directive=--{key}={','.join(hosts)}"
            return (
                f"{spec.setting_text(key)} is the filter of {spec.launcher} among the nodes of the job; "
                f"{scheduler.command} chooses the nodes with {own}"
            )
    return ""


def _mpi(spec: Specification, scheduler: Scheduler, launcher: Launcher) -> str | None:
    """Return the name of the MPI, None without one; refuse a launcher that cannot start the job."""
    if not launcher.starts(spec.scheduler):
        others = one_of(name for name, other in LAUNCHERS.items() if other.starts(spec.scheduler))
        titles = one_of(named(one, None).title for one in launcher.schedulers)
        why = f"{spec.launcher} is only for {titles}; with {spec.scheduler} use {others}"
        raise spec.refuse("launcher", why)
    own_step = bool(scheduler.component_line) and launcher.command == scheduler.node_step
    if not isinstance(spec.nodes, int) and not (launcher.mixes_nodes or own_step):
        step = scheduler.node_step if scheduler.component_line else None
        able = one_of(name for name, other in LAUNCHERS.items() if other.mixes_nodes or other.command == step)
        raise spec.refuse("launcher", f"{spec.launcher} supports only equal nodes; use {able}")
    if spec.mpi is None:
        return launcher.default_mpi
    if not launcher.starts_mpi:
        able = one_of(
            name for name, other in LAUNCHERS.items() if other.starts_mpi and other.starts(spec.scheduler)
        )
        raise spec.refuse("mpi", f"--launcher {spec.launcher} starts no MPI; remove it or use {able}")
    mpi = MPI_FLAVOURS[spec.mpi]
    if mpi.dialects and scheduler.name not in mpi.dialects:
        titles = one_of(SCHEDULERS[one].title for one in mpi.dialects)
        raise spec.refuse("mpi", f"{spec.mpi.upper()} starts jobs of {titles} only; use another MPI")
    if not isinstance(spec.nodes, int) and not (mpi.mixed or own_step):
        able = one_of(name for name, other in MPI_FLAVOURS.items() if other.mixed)
        others = one_of(name for name, row in LAUNCHERS.items() if row.mixes_nodes and not row.starts_mpi)
        raise spec.refuse("mpi", f"supports only equal nodes here; use {able}, or the launcher {others}")
    return spec.mpi


def _check_remote(spec: Specification, scheduler: Scheduler, mpi: MpiFlavour | None) -> None:
    if spec.remote == "auto":
        return
    if scheduler.behaviour.one_host:
        raise spec.refuse("remote", "a local run has no other nodes; remove it")
    if spec.remote == "ssh" and by_scheduler(spec, mpi):
        who = spec.launcher if LAUNCHERS[spec.launcher].by_scheduler else str(spec.mpi).upper()
        raise spec.refuse("remote", f"{who} starts processes through the scheduler, never through ssh")


def _check_master_addr(spec: Specification) -> None:
    """Refuse an address that other nodes cannot reach, and that of one node if others begin."""
    address = spec.master_addr or ""
    if re.fullmatch(r"localhost|127\.[\d.]+|::1|interface:lo", address) and not alone(spec):
        raise spec.refuse("master_addr", "is an address at which each node reaches only itself")
    if not address or re.search(r"\{host\}|^interface:", address):
        return
    why = "which the job may leave out" if spec.spare_nodes or spec.min_nodes else ""
    why = "and programs at the same time begin on others, too" if spec.away else why
    if why:
        raise spec.refuse("master_addr", f"is the address of one node, {why}; use {{host}} or interface:NAME")


def _check_one_process(spec: Specification, launcher: Launcher) -> None:
    """Refuse what needs several ranks, or a launcher, in a job that starts its program itself."""
    if not launcher.one_process:
        return
    if spec.away:
        raise spec.refuse("launcher", f"{spec.launcher} starts its process on the first node of the job only")
    for key in OF_RANKS:
        if getattr(spec, key):
            raise spec.refuse(key, f"--launcher {spec.launcher} starts one process, and no ranks; remove it")


def alone(spec: Specification) -> bool:
    """Return whether the script starts processes on its own node only."""
    if LAUNCHERS[spec.launcher].one_process and not works_on_nodes(spec):
        return True
    return spec.nodes == 1 and not spec.spare_nodes and not spec.away


def start_nodes(spec: Specification, scheduler: Scheduler) -> str:
    """Return how a launcher is started once per node: the end of a template's name in launcher/.

    It is launcher if the launcher itself starts the ranks on all nodes.
    """
    launcher = LAUNCHERS[spec.launcher]
    if not launcher.once_a_node:
        return "launcher"
    if alone(spec):
        return "here"
    if spec.remote == "ssh" and launcher.remote_shell:
        return launcher.remote_shell
    return scheduler.node_step if scheduler.node_step and spec.remote != "ssh" else "each"


def by_scheduler(spec: Specification, mpi: MpiFlavour | None) -> bool:
    """Return whether the scheduler starts the ranks, for the launcher or its MPI."""
    return LAUNCHERS[spec.launcher].by_scheduler or (mpi is not None and mpi.by_scheduler)


def reach(spec: Specification, scheduler: Scheduler, agents: tuple[str, ...]) -> str | None:
    """Return how the script reaches another host: srun, remote (jobgen-remote) or ssh; None without one."""
    if alone(spec):
        return None
    if scheduler.node_step and spec.remote != "ssh" and isinstance(spec.nodes, int):
        return scheduler.node_step
    return "remote" if agents else "ssh"


def agents(spec: Specification, scheduler: Scheduler, mpi: MpiFlavour | None) -> tuple[str, ...]:
    """Return the replacements of ssh between nodes in the order of use: names of templates in remote/."""
    if (
        scheduler.component_line
        and scheduler.agent
        and not isinstance(spec.nodes, int)
        and spec.remote != "ssh"
    ):
        return (scheduler.agent,)  # a host is reached by a step in its component
    if alone(spec) or by_scheduler(spec, mpi) or start_nodes(spec, scheduler) not in ("launcher", "each"):
        return ()
    if scheduler.agent is None and spec.remote == "scheduler":
        raise spec.refuse("remote", f"{scheduler.title} cannot start a process on another node; remove it")
    if scheduler.agent is None or spec.remote == "ssh":
        return ("ssh",)
    if scheduler.node_step:
        return () if mpi and mpi.knows_slurm else (scheduler.agent,)
    return (scheduler.agent,) if spec.remote == "scheduler" else (scheduler.agent, "ssh")
