"""The ways to start the launcher on the other nodes, and to send them a signal."""

from jobgen.launchers import LAUNCHERS, MpiFlavour, RankVariables
from jobgen.schedulers.base import Scheduler
from jobgen.spec import JobSpec


def alone(spec: JobSpec) -> bool:
    """Return whether the job has only the node of the script."""
    return spec.nodes == 1 and not spec.spare_nodes


def start_nodes(spec: JobSpec, scheduler: Scheduler) -> str:
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


def rank_variables(spec: JobSpec, mpi: MpiFlavour | None) -> RankVariables | None:
    """Return the launcher's rank variables; None if it sets RANK, WORLD_SIZE and LOCAL_RANK itself."""
    launcher = LAUNCHERS[spec.launcher]
    return mpi.ranks if mpi and launcher.of_mpi else launcher.ranks


def by_scheduler(spec: JobSpec, mpi: MpiFlavour | None) -> bool:
    """Return whether the scheduler starts the ranks, for the launcher or its MPI."""
    return LAUNCHERS[spec.launcher].by_scheduler or (mpi is not None and mpi.by_scheduler)


def reach(spec: JobSpec, scheduler: Scheduler, agents: tuple[str, ...]) -> str | None:
    """Return how the script reaches another host: srun, remote (jobgen-remote) or ssh; None without one."""
    if alone(spec):
        return None
    if scheduler.node_step and spec.remote != "ssh":
        return scheduler.node_step
    return "remote" if agents else "ssh"


def agents(spec: JobSpec, scheduler: Scheduler, mpi: MpiFlavour | None) -> tuple[str, ...]:
    """Return the replacements of ssh between nodes, in the order of trial: names of templates in remote/."""
    if alone(spec) or by_scheduler(spec, mpi) or start_nodes(spec, scheduler) not in ("launcher", "each"):
        return ()
    if scheduler.agent is None and spec.remote == "scheduler":
        raise spec.refuse("remote", f"{scheduler.title} starts no process on another node; leave it out")
    if scheduler.agent is None or spec.remote == "ssh":
        return ("ssh",)
    if scheduler.node_step:
        return () if mpi and mpi.knows_slurm else (scheduler.agent,)
    return (scheduler.agent,) if spec.remote == "scheduler" else (scheduler.agent, "ssh")
