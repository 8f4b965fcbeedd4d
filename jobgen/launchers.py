"""The launchers of ranks, and the flavours of MPI: one row each.

The command lines are in templates/launcher/.
"""

from typing import NamedTuple


class Launcher(NamedTuple):
    """A launcher. With ``once_a_node`` it is started once on every node and starts the ranks there."""

    command: str
    once_a_node: bool = False
    schedulers: tuple[str, ...] = ("pbs", "slurm", "local")


LAUNCHERS = {
    "deepspeed": Launcher("deepspeed", once_a_node=True),
    "mpirun": Launcher("mpirun"),
    "torchrun": Launcher("torchrun", once_a_node=True),
    "srun": Launcher("srun", schedulers=("slurm",)),
}


class MpiFlavour(NamedTuple):
    """The options of one MPI's mpirun.

    ``runtime`` names the files of templates/runtime/ that set its environment. ``place`` puts the ranks on
    the nodes (``{ranks}``, ``{ranks_per_node}``, ``{cpus}``, ``{bind}``); ``unbound`` does so if the ranks
    bind themselves, and ``mixed`` if the nodes differ in their ranks (empty: not supported). ``export``
    passes the variable ``{name}`` to every rank. ``version`` is a part of what ``--version`` prints (empty:
    not checked). ``srun`` is Slurm's plugin for this MPI. ``knows_slurm``: it starts its daemons with srun
    however it was built. ``shows_values``: ``export`` puts values on the command line, where all users see
    them. ``rank``, ``size``, ``local_rank`` and ``local_size`` are shell expansions of the variables that
    number the ranks.
    """

    title: str
    command: str
    place: tuple[str, ...]
    export: tuple[str, ...]
    version: str
    rank: str
    size: str
    local_rank: str
    srun: str = "none"
    knows_slurm: bool = True
    shows_values: bool = False
    unbound: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    local_size: str = ""
    runtime: tuple[str, ...] = ("mpi",)


MPI_FLAVOURS = {
    # https://docs.open-mpi.org/en/v5.0.x/man-openmpi/man1/mpirun.1.html
    # Open MPI binds each rank to one core or one socket by default.
    "openmpi": MpiFlavour(
        "Open MPI",
        "mpirun",
        (
            "-np {ranks}",
            '--hostfile "$JOBGEN_RUN_DIR/hostfile"',
            "--map-by ppr:{ranks_per_node}:node --bind-to none",
        ),
        ("-x {name}",),
        "Open MPI",
        "$OMPI_COMM_WORLD_RANK",
        "$OMPI_COMM_WORLD_SIZE",
        "$OMPI_COMM_WORLD_LOCAL_RANK",
        local_size="$OMPI_COMM_WORLD_LOCAL_SIZE",
        mixed=("-np {ranks}", '--hostfile "$JOBGEN_RUN_DIR/hostfile"', "--map-by slot --bind-to none"),
        srun="pmix",
        knows_slurm=False,
        runtime=("mpi", "openmpi"),
    ),
    # https://github.com/pmodels/mpich/blob/main/doc/wiki/how_to/Using_the_Hydra_Process_Manager.md
    "mpich": MpiFlavour(
        "MPICH",
        "mpirun",
        ("-n {ranks} -ppn {ranks_per_node}", '-f "$JOBGEN_RUN_DIR/hosts"'),
        ('-genv {name} "${name}"',),
        "HYDRA",
        "$PMI_RANK",
        "$PMI_SIZE",
        "$MPI_LOCALRANKID",
        srun="pmi2",
        shows_values=True,
        unbound=("-n {ranks} -ppn {ranks_per_node} -bind-to none", '-f "$JOBGEN_RUN_DIR/hosts"'),
        mixed=("-n {ranks} -bind-to none", '-f "$JOBGEN_RUN_DIR/machines"'),
        local_size="$MPI_LOCALNRANKS",
        runtime=("mpi", "mpich"),
    ),
    # https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/
    "intel": MpiFlavour(
        "Intel MPI",
        "mpirun",
        ("-n {ranks} -ppn {ranks_per_node}", '-f "$JOBGEN_RUN_DIR/hosts"'),
        ('-genv {name} "${name}"',),
        "Intel",
        "$PMI_RANK",
        "$PMI_SIZE",
        "$MPI_LOCALRANKID",
        srun="pmi2",
        shows_values=True,
        unbound=("-n {ranks} -ppn {ranks_per_node} -genv I_MPI_PIN off", '-f "$JOBGEN_RUN_DIR/hosts"'),
        runtime=("mpi", "intel"),
    ),
    # https://cpe.ext.hpe.com/docs/latest/pals/index.html
    "pals": MpiFlavour(
        "HPE Cray PALS",
        "mpiexec",
        (
            "-n {ranks} --ppn {ranks_per_node} --depth {cpus} {bind}",
            '--hostfile "$JOBGEN_RUN_DIR/hosts"',
        ),
        ('--env {name}="${name}"',),
        "",
        "$PALS_RANKID",
        "${PMI_SIZE:-$JOBGEN_WORLD_SIZE}",
        "$PALS_LOCAL_RANKID",
        shows_values=True,
        unbound=("-n {ranks} --ppn {ranks_per_node} --cpu-bind none", '--hostfile "$JOBGEN_RUN_DIR/hosts"'),
    ),
}
