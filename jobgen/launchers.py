"""What starts the ranks: one row a launcher, one row a flavour of MPI.

The command lines themselves stand in templates/launcher/, where they can be read.
"""

from typing import NamedTuple


class Launcher(NamedTuple):
    """A launcher. With ``once_a_node`` it is started on every node and starts the ranks there."""

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
    """How one MPI's mpirun is spoken to.

    ``place`` puts the ranks on the nodes (``{ranks}``, ``{ranks_per_node}``, ``{cpus}``, ``{bind}``),
    ``export`` hands the variable ``{name}`` to every rank, ``version`` is what its
    ``--version`` mentions (nothing: not asked), ``srun`` is Slurm's own plug-in for it. ``setup`` are lines
    of the script before it, ``agent`` those that make it start its daemons through
    ``jobgen-remote`` instead of ssh, and ``force_ssh`` those that keep it from starting them
    through the scheduler; ``knows_slurm`` says that it starts them through srun however it was
    built, and ``shows_values`` that ``export`` puts values on the command line, where everybody
    sees them, ``forwards_signals`` that it passes USR1 and USR2 on to the ranks.
    ``unbound`` stands in the place of ``place`` where the ranks bind themselves.
    ``mixed`` does where the nodes differ in their ranks (nothing: it does not take them).
    ``rank``, ``size``, ``local_rank`` and ``local_size`` are the shell's words for the variables in
    which a rank finds itself.
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
    setup: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    force_ssh: tuple[str, ...] = ()
    knows_slurm: bool = True
    shows_values: bool = False
    forwards_signals: bool = False
    unbound: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    local_size: str = ""


MPI_FLAVOURS = {
    # https://docs.open-mpi.org/en/v5.0.x/man-openmpi/man1/mpirun.1.html
    # Open MPI binds each rank to one core, or one socket, unless told not to.
    "openmpi": MpiFlavour(
        "Open MPI",
        "mpirun",
        (
            "-np {ranks}",
            '--hostfile "$job_dir/hostfile"',
            "--map-by ppr:{ranks_per_node}:node --bind-to none",
        ),
        ("-x {name}",),
        "Open MPI",
        "$OMPI_COMM_WORLD_RANK",
        "$OMPI_COMM_WORLD_SIZE",
        "$OMPI_COMM_WORLD_LOCAL_RANK",
        local_size="$OMPI_COMM_WORLD_LOCAL_SIZE",
        mixed=("-np {ranks}", '--hostfile "$job_dir/hostfile"', "--map-by slot --bind-to none"),
        srun="pmix",
        setup=(
            "# Open MPI refuses root, which a container's user often is.",
            "((EUID)) || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        ),
        # The names of version 4, then of version 5. No tree: a scheduler may let the first node alone start
        # something on the others.
        agent=(
            "export OMPI_MCA_plm_rsh_agent=jobgen-remote PRTE_MCA_plm_ssh_agent=jobgen-remote",
            "export OMPI_MCA_plm_rsh_no_tree_spawn=1 PRTE_MCA_plm_ssh_no_tree_spawn=1 PATH=$job_dir:$PATH",
        ),
        force_ssh=("export OMPI_MCA_plm=rsh PRTE_MCA_plm=ssh",),
        knows_slurm=False,
        forwards_signals=True,
    ),
    # https://github.com/pmodels/mpich/blob/main/doc/wiki/how_to/Using_the_Hydra_Process_Manager.md
    "mpich": MpiFlavour(
        "MPICH",
        "mpirun",
        ("-n {ranks} -ppn {ranks_per_node}", '-f "$job_dir/hosts"'),
        ('-genv {name} "${name}"',),
        "HYDRA",
        "$PMI_RANK",
        "$PMI_SIZE",
        "$MPI_LOCALRANKID",
        srun="pmi2",
        shows_values=True,
        unbound=("-n {ranks} -ppn {ranks_per_node} -bind-to none", '-f "$job_dir/hosts"'),
        mixed=("-n {ranks} -bind-to none", '-f "$job_dir/machines"'),
        local_size="$MPI_LOCALNRANKS",
        agent=("export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=jobgen-remote PATH=$job_dir:$PATH",),
    ),
    # https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/
    "intel": MpiFlavour(
        "Intel MPI",
        "mpirun",
        ("-n {ranks} -ppn {ranks_per_node}", '-f "$job_dir/hosts"'),
        ('-genv {name} "${name}"',),
        "Intel",
        "$PMI_RANK",
        "$PMI_SIZE",
        "$MPI_LOCALRANKID",
        srun="pmi2",
        shows_values=True,
        unbound=("-n {ranks} -ppn {ranks_per_node} -genv I_MPI_PIN off", '-f "$job_dir/hosts"'),
        # Without this -ppn is not heeded under a scheduler.
        setup=("export I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=0",),
        agent=(
            "export I_MPI_HYDRA_BOOTSTRAP=ssh I_MPI_HYDRA_BOOTSTRAP_EXEC=jobgen-remote PATH=$job_dir:$PATH",
        ),
    ),
    # https://cpe.ext.hpe.com/docs/latest/pals/index.html
    "pals": MpiFlavour(
        "HPE Cray PALS",
        "mpiexec",
        (
            "-n {ranks} --ppn {ranks_per_node} --depth {cpus} {bind}",
            '--hostfile "$job_dir/hosts"',
        ),
        ('--env {name}="${name}"',),
        "",
        "$PALS_RANKID",
        "${PMI_SIZE:-$JOBGEN_WORLD_SIZE}",
        "$PALS_LOCAL_RANKID",
        shows_values=True,
        unbound=("-n {ranks} --ppn {ranks_per_node} --cpu-bind none", '--hostfile "$job_dir/hosts"'),
        forwards_signals=True,
    ),
}
