"""The ways to start the launcher on the other nodes, and to send them a signal."""

from jobgen.launchers import MpiFlavour
from jobgen.schedulers.base import Scheduler
from jobgen.spec import JobSpec

_SRUN_RANK = ("$SLURM_PROCID", "$SLURM_NTASKS", "$SLURM_LOCALID")
_OWN_RANK = ("$RANK", "$WORLD_SIZE", "$LOCAL_RANK")


def alone(spec: JobSpec) -> bool:
    """Return whether the job has only the node of the script."""
    return spec.nodes == 1 and not spec.spare_nodes


def start_nodes(spec: JobSpec, scheduler: Scheduler) -> str:
    """Return how a launcher is started once per node: the end of a template's name in launcher/."""
    if spec.launcher == "mpirun":
        return "mpirun"  # starts its own daemons
    if alone(spec):
        return "here"
    if spec.remote == "ssh" and spec.launcher == "deepspeed":
        return "pdsh"
    return scheduler.node_step if scheduler.node_step and spec.remote != "ssh" else "each"


def rank_words(spec: JobSpec, mpi: MpiFlavour | None) -> tuple[str, str, str]:
    """Return the shell expansions of rank, world size and local rank, as the launcher sets them."""
    if spec.launcher == "mpirun" and mpi:
        return mpi.rank, mpi.size, mpi.local_rank
    return _SRUN_RANK if spec.launcher == "srun" else _OWN_RANK


def local_size(spec: JobSpec, mpi: MpiFlavour | None) -> str:
    """Return the shell expansion of the number of ranks on a host, if hosts differ."""
    return mpi.local_size if spec.launcher == "mpirun" and mpi else "$LOCAL_WORLD_SIZE"


def reach(spec: JobSpec, scheduler: Scheduler, agents: tuple[str, ...]) -> str | None:
    """Return how the script reaches another host: srun, remote (jobgen-remote) or ssh; None without one."""
    if alone(spec):
        return None
    if scheduler.node_step and spec.remote != "ssh":
        return scheduler.node_step
    return "remote" if agents else "ssh"


def agents(spec: JobSpec, scheduler: Scheduler, mpi: MpiFlavour | None) -> tuple[str, ...]:
    """Return the replacements of ssh between nodes, in the order of trial: names of templates in remote/."""
    if (
        alone(spec)
        or spec.launcher == "srun"
        or spec.mpi == "pals"
        or start_nodes(spec, scheduler) in ("srun", "pdsh")
    ):
        return ()
    if spec.remote == "ssh":
        return ("ssh",)
    assert scheduler.agent
    if scheduler.node_step:
        return () if mpi and mpi.knows_slurm else (scheduler.agent,)
    return (scheduler.agent,) if spec.remote == "scheduler" else (scheduler.agent, "ssh")
