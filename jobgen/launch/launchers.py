"""The launchers of ranks, and the flavours of MPI: one row each.

The command lines are in templates/launcher/.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from jobgen.launch import bare_options


class RankVariables(NamedTuple):
    """Shell expansions of the variables with which a launcher numbers its ranks.

    Without ``local_size``, the nodes of a job must not differ in their ranks.
    """

    rank: str
    size: str
    local_rank: str
    local_size: str = ""


class CommandLine(NamedTuple):
    """The command line of a launcher as check and convert read it.

    ``names`` are its other commands, ``modules`` those of ``python3 -m``; with ``subcommand`` they
    start ranks only if this word follows. ``module_options`` say that the program is a Python module.
    ``nodes``, ``ranks`` and ``local_ranks`` are the options that set the number of nodes, of all ranks, and
    of the ranks on a node.
    ``reaches_nodes``: one call starts ranks on all nodes. ``config_file``: a file may hold its options.
    ``environment_file`` is the one with variables for other nodes.
    ``from_script`` are options that jobgen's script sets itself, ``more`` those for ``--launcher-arg`` in the
    spelling of the launcher (all others have - for _), ``remarks`` what to know about others, ``flags`` those
    without a value that need no counterpart, ``bare`` others without a value. ``same`` are more options with
    a counterpart: the key of jobgen's option, or "ranks" for the number of all ranks. ``same_values`` are
    values with a counterpart: their pattern, the key of jobgen's option, and its value. ``pairs`` are options
    with two values. ``variables`` of the environment are read as the options to which they belong.
    ``spellings`` are other names of options, with the value of those that have none.
    """

    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    subcommand: str = ""
    module_options: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    ranks: tuple[str, ...] = ()
    local_ranks: tuple[str, ...] = ()
    reaches_nodes: bool = True
    config_file: bool = False
    environment_file: str = ""
    from_script: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    remarks: Mapping[str, str] = MappingProxyType({})
    flags: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    same: Mapping[str, str] = MappingProxyType({})
    same_values: Mapping[str, tuple[tuple[str, str, str], ...]] = MappingProxyType({})
    pairs: tuple[str, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})
    spellings: Mapping[str, str] = MappingProxyType({})

    @property
    def of_node(self) -> tuple[str, ...]:
        """Return the options that set the ranks on a node of a launcher which starts those of all nodes."""
        return tuple(name for name, key in self.same.items() if key == "ranks_per_node")


class Launcher(NamedTuple):
    """A launcher. With ``once_a_node`` it is started once on every node and starts the ranks there;
    otherwise it is started once and its template is templates/launcher/NAME.sh.j2.

    ``ranks`` are its rank variables; a launcher without them sets RANK, WORLD_SIZE and LOCAL_RANK itself.
    With ``default_mpi`` its command, options and rank variables are those of an MPI; with ``mpi_plugin`` it
    takes the name of a plugin for one. ``by_scheduler``: its ranks are started through the scheduler, and
    need neither ssh nor an agent. ``remote_shell`` ends the name of the template that starts it on all nodes
    with ``--remote ssh`` (empty: the script starts it on each node). ``start`` is the text of --explain.

    ``one_process``: it starts the program once, on the first node, without a rendezvous.
    ``schedulers`` are the commands of jobgen for whose jobs it is (empty: all).
    ``package`` is the Python package that the job must have for it. ``filters_devices``: it supports
    ``--include`` and ``--exclude``. ``renumbers_devices``: it counts the devices of a node from 0, whatever
    devices the scheduler gives. ``local_rank_option``: it passes ``--local_rank`` to a Python program,
    directly after its name. ``one_thread``: it sets OMP_NUM_THREADS to 1 for several ranks of a node, if it
    is unset. ``equal_nodes``: its nodes must not differ. ``mixed_ranks`` are the lines that
    correct its numbers if the nodes differ, with ``{before}`` for the number of ranks on the nodes before.
    ``runtime`` names the files of templates/runtime/ that it needs.

    ``default_for`` are the programs for which it is the default launcher: one of the constants below.

    ``kind`` is the option that starts several ranks. Without it, an option of the user that is in
    ``other_kinds`` does so, with the option there.
    """

    command: str
    one_process: bool = False
    once_a_node: bool = False
    schedulers: tuple[str, ...] = ()
    ranks: RankVariables | None = None
    default_mpi: str | None = None
    mpi_plugin: bool = False
    by_scheduler: bool = False
    remote_shell: str = ""
    start: str = ""
    package: str = ""
    runtime: tuple[str, ...] = ()
    filters_devices: bool = False
    renumbers_devices: bool = False
    local_rank_option: bool = False
    one_thread: bool = False
    equal_nodes: bool = False
    mixed_ranks: tuple[str, ...] = ()
    line: CommandLine = CommandLine()
    kind: str = ""
    other_kinds: Mapping[str, str] = MappingProxyType({})
    default_for: str = ""

    def starts(self, scheduler: str) -> bool:
        """Return whether it starts jobs of a scheduler, by the name of jobgen's command."""
        return not self.schedulers or scheduler in self.schedulers

    @property
    def names(self) -> tuple[str, ...]:
        """Return the commands of the launcher."""
        return tuple(filter(None, (self.command, *self.line.names)))

    @property
    def of_mpi(self) -> bool:
        """Return whether the command is the mpirun of an MPI."""
        return self.default_mpi is not None

    @property
    def mixes_nodes(self) -> bool:
        """Return whether the nodes of a job may differ in their ranks; with an MPI, that decides."""
        return not self.equal_nodes and (self.ranks is None or bool(self.ranks.local_size))

    @property
    def starts_mpi(self) -> bool:
        """Return whether the ranks can be those of an MPI program."""
        return self.of_mpi or self.mpi_plugin


EACH_DEVICE = ("gpu", "auto")  # for a number of ranks: one for each device, as jobgen does by default
DEFAULT_MPI = "openmpi"
TRAINING, PYTHON = "the training module", "a Python program"
RANKS, ONE_PROCESS = "several ranks of another program", "one process of another program"
_MODULE = ("-m", "--module")
_NODES = ("--nnodes", "--num-nodes", "--num-machines")
_LOCAL_RANKS = ("--nproc-per-node", "--num-gpus")
_MCA, _VARIABLES = ("--mca", "-mca"), ("-genv", "-env")  # each with a name and a value
_RENDEZVOUS = ("--node-rank", "--master-addr")

LAUNCHERS = {
    "deepspeed": Launcher(
        "deepspeed",
        once_a_node=True,
        remote_shell="pdsh",
        package="deepspeed",
        default_for=TRAINING,
        filters_devices=True,
        renumbers_devices=True,
        local_rank_option=True,
        mixed_ranks=(
            "# The deepspeed launcher takes RANK modulo the ranks of the node, as if all nodes had as many.",
            "local before",
            "before=$({before})",
            "export LOCAL_RANK=$((RANK - before)) LOCAL_WORLD_SIZE=$LOCAL_SIZE",
        ),
        line=CommandLine(
            modules=("deepspeed.launcher.runner",),
            module_options=_MODULE,
            nodes=_NODES,
            local_ranks=_LOCAL_RANKS,
            environment_file=".deepspeed_env",
            from_script=(
                *_RENDEZVOUS,
                *("--hostfile", "-H", "--no-ssh", "--no-ssh-check", "--ssh-port", "--no-python"),
            ),
            more=(
                *("--bind_cores_to_rank", "--bind_core_list", "--elastic_training", "--no_local_rank"),
                *("--enable_each_rank_log", "--save_pid", "--venv_script"),
            ),
            remarks={
                "--force-multi": "leave it out, the script starts the launcher on all nodes",
                "--autotuning": "jobgen has no autotuning: run deepspeed for it in an interactive job",
            },
            flags=("--no-python",),
            bare=bare_options.DEEPSPEED,
            same={"--include": "include", "--exclude": "exclude", "--master-port": "master_port"},
            spellings={"-H": "--hostfile", "-i": "--include", "-e": "--exclude"},
        ),
    ),
    "mpirun": Launcher(
        "mpirun",
        default_mpi=DEFAULT_MPI,
        default_for=RANKS,
        line=CommandLine(
            names=("mpiexec", "mpiexec.hydra", "orterun", "prun", "aprun", "jsrun", "ibrun"),
            ranks=("-n", "-np", "--np"),
            from_script=("-hostfile", "-machinefile", "--machinefile"),
            more=(
                *("--map-by", "--bind-to", "--oversubscribe", "--allow-run-as-root", "--report-bindings"),
                *("--display-map", "--tag-output"),
                *_MCA,
            ),
            flags=(
                *(
                    "--allow-run-as-root",
                    "-allow-run-as-root",
                    "-q",
                    "-v",
                    "--oversubscribe",
                    "-oversubscribe",
                ),
                *("-b", "-B", "-C", "-T", "-ss"),  # of aprun
            ),
            bare=bare_options.MPI,
            same=dict.fromkeys(
                ("-N", "-ppn", "--ppn", "-perhost", "--perhost", "-npernode", "--npernode"), "ranks_per_node"
            ),
            same_values={
                "--map-by": ((r"ppr:(\d+):node", "ranks_per_node", r"\1"),),
                "--bind-to": (
                    ("none", "cpu_bind", "none"),
                    ("core", "cpu_bind", "cores"),
                    ("numa", "cpu_bind", "numa"),
                ),
                "-x": ((r"[A-Z_][A-Z0-9_]*(=.*)?", "env", r"\g<0>"),),
                **dict.fromkeys(_VARIABLES, ((r"(\w+) (.*)", "env", r"\1=\2"),)),
            },
            pairs=(*_MCA, *_VARIABLES),
            spellings={
                **{"--n": "-n", "-d": "--depth", "-pernode": "-npernode=1", "--pernode": "--npernode=1"},
                # aprun(1)
                **{"--pes": "-n", "--pes-per-node": "-N", "--cpus-per-pe": "--depth", "--cc": "-cc"},
                **{"--cpu-binding": "-cc", "--pes-per-numa-node": "-S", "--bypass-app-transfer": "-b"},
            },
        ),
    ),
    "torchrun": Launcher(
        "torchrun",
        once_a_node=True,
        one_thread=True,
        default_for=PYTHON,
        line=CommandLine(
            modules=("torch.distributed.run", "torch.distributed.launch"),
            module_options=_MODULE,
            nodes=_NODES,
            local_ranks=_LOCAL_RANKS,
            reaches_nodes=False,
            from_script=(
                *_RENDEZVOUS,
                *("--standalone", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--local-addr"),
                *("--no-python",),
            ),
            more=(
                *("--max-restarts", "--monitor-interval", "--start-method", "--rdzv-conf", "--redirects"),
                *("--tee", "--log-dir", "--role", "--local-ranks-filter", "--logs-specs"),
            ),
            remarks={"--use-env": "leave it out, every rank has LOCAL_RANK in its environment"},
            flags=("--no-python", "--standalone"),
            bare=bare_options.TORCHRUN,
            same={"--master-port": "master_port"},
        ),
    ),
    "srun": Launcher(
        "srun",
        schedulers=("slurm",),
        default_for=RANKS,
        ranks=RankVariables("$SLURM_PROCID", "$SLURM_NTASKS", "$SLURM_LOCALID"),
        mpi_plugin=True,
        by_scheduler=True,
        line=CommandLine(
            nodes=("-N", "--nodes"),
            ranks=("-n", "--ntasks"),
            flags=(
                *("-K", "--kill-on-bad-exit", "-u", "--unbuffered", "--exact"),
                *("--overlap", "--exclusive", "-Q", "--quiet", "-v", "--verbose"),
            ),
            bare=bare_options.SRUN,
            same={
                "--ntasks-per-node": "ranks_per_node",
                "-c": "cpus_per_rank",
                "--cpus-per-task": "cpus_per_rank",
                "--gpus-per-node": "gpus_per_node",
            },
            variables={
                "SLURM_NTASKS": "--ntasks",
                "SLURM_NPROCS": "--ntasks",
                "SLURM_NNODES": "--nodes",
                "SLURM_NTASKS_PER_NODE": "--ntasks-per-node",
            },
            spellings={"--tasks-per-node": "--ntasks-per-node"},
        ),
    ),
    # https://github.com/huggingface/accelerate/blob/main/src/accelerate/commands/launch.py
    "accelerate": Launcher(
        "accelerate",
        once_a_node=True,
        one_thread=True,
        # With one rank it starts the program itself, and numbers nothing.
        ranks=RankVariables(
            *("${RANK:-0}", "${WORLD_SIZE:-1}", "${LOCAL_RANK:-0}"), local_size="${LOCAL_WORLD_SIZE:-1}"
        ),
        package="accelerate",
        kind="--multi_gpu",
        other_kinds={
            # By default its DeepSpeed plugin starts the ranks of all nodes with pdsh.
            **dict.fromkeys(("--config_file", "--use_deepspeed"), "--deepspeed_multinode_launcher=standard"),
            **dict.fromkeys(("--multi_gpu", "--use_fsdp", "--use_megatron_lm"), ""),
        },
        line=CommandLine(
            modules=("accelerate.commands.launch",),
            subcommand="launch",
            module_options=_MODULE,
            nodes=_NODES,
            reaches_nodes=False,
            config_file=True,
            from_script=(
                *("--machine-rank", "--main-process-ip", "--rdzv-backend", "--same-network", "--multi-gpu"),
                *("--deepspeed-multinode-launcher", "--deepspeed-hostfile"),
            ),
            more=(
                *("--config_file", "--mixed_precision", "--use_deepspeed", "--deepspeed_config_file"),
                *("--zero_stage", "--zero3_init_flag", "--use_fsdp", "--fsdp_sharding_strategy"),
                *("--gradient_accumulation_steps", "--gradient_clipping", "--dynamo_backend", "--debug"),
                *("--offload_optimizer_device", "--offload_param_device", "--fsdp_offload_params"),
                *("--fsdp_auto_wrap_policy", "--fsdp_transformer_layer_cls_to_wrap"),
                *("--fsdp_state_dict_type", "--num_cpu_threads_per_process", "--downcast_bf16"),
            ),
            remarks={
                "--cpu": "use --accelerator cpu; --cpu starts one rank only",
                "--gpu-ids": "leave --gpu_ids out, each rank has a device of its own",
            },
            flags=("--no-python", "--multi-gpu"),
            bare=bare_options.ACCELERATE,
            same={"--num-processes": "ranks", "--main-process-port": "master_port"},
        ),
    ),
    # https://github.com/hpcaitech/ColossalAI/tree/main/colossalai/cli/launcher
    "colossalai": Launcher(
        "colossalai",
        once_a_node=True,
        package="colossalai",
        equal_nodes=True,
        runtime=("colossalai",),
        line=CommandLine(
            subcommand="run",
            module_options=_MODULE,
            nodes=_NODES,
            local_ranks=("--nproc-per-node",),
            from_script=("--hostfile", "--host", "-H", "--ssh-port", "--master-addr", "--extra-launch-args"),
            same={"--master-port": "master_port"},
        ),
    ),
    "none": Launcher(
        "",
        one_process=True,
        ranks=RankVariables("0", "1", "0"),
        start="the script itself",
        default_for=ONE_PROCESS,
    ),
}


class MpiFlavour(NamedTuple):
    """The options of one MPI's mpirun.

    ``runtime`` names the files of templates/runtime/ that set its environment. ``place`` puts the ranks on
    the nodes (``{ranks}``, ``{ranks_per_node}``, ``{cpus}``, ``{bind}``); ``unbound`` does so if the ranks
    bind themselves, and ``mixed`` if the nodes differ in their ranks (empty: not supported). ``export``
    passes the variable ``{name}`` to every rank. ``version`` is a part of what ``--version`` prints (empty:
    not checked). ``srun`` is Slurm's plugin for this MPI. ``knows_slurm``: it starts its daemons with srun
    however it was built. ``shows_values``: ``export`` puts values on the command line, where all users see
    them. ``dialects`` are the schedulers whose jobs it can start (empty: all). ``by_scheduler``: it starts
    its ranks through the scheduler, and needs neither ssh nor an agent. ``network`` is as that of
    an accelerator.
    ``over_components`` are the settings of a job with components, whose first one it would take for all.
    ``overcommit`` allows more ranks than processors. ``marks`` are options by which convert knows it, and
    ``modules`` a pattern of its modules; ``settings`` are beginnings of its variables; ``commands`` are
    launchers that only it has. ``passes_all``: it
    passes the whole environment to every rank. ``own_sessions``: the srun or ssh that it starts leaves its
    session. ``more_ranks`` are further variables of a rank, with the fields of ``ranks`` that have their
    values. ``own_options`` are the title and a pattern of the modules of an MPI of this kind whose mpirun has
    other options. ``slots`` is the option for a file with a line for each slot, if that of ``place`` takes
    each host of it once. ``pmi_library`` is the variable by which it finds the library of ``srun``, and the
    ranks find each other. ``own_plugin`` is another plugin of srun, the default of clusters with modules of a
    pattern.
    ``restarts_measured``: its jobs were restarted in place by a test.
    """

    title: str
    command: str
    place: tuple[str, ...]
    export: tuple[str, ...]
    version: str
    ranks: RankVariables
    srun: str = "none"
    knows_slurm: bool = True
    shows_values: bool = False
    unbound: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    runtime: tuple[str, ...] = ("mpi",)
    dialects: tuple[str, ...] = ()
    by_scheduler: bool = False
    network: tuple[str, ...] = ()
    over_components: tuple[str, ...] = ()
    overcommit: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    modules: str = ""
    settings: tuple[str, ...] = ()
    passes_all: bool = False
    own_sessions: bool = False
    commands: tuple[str, ...] = ()
    more_ranks: Mapping[str, str] = MappingProxyType({})
    own_options: tuple[str, str] | None = None
    own_plugin: tuple[str, str] | None = None
    slots: str = ""
    pmi_library: str = ""
    restarts_measured: bool = True


# Settings by which the mpirun of an MPI does not bind its ranks to cores.
BINDS_NONE = (
    r"(?i)I_MPI_PIN=(0|off|no|disable)|MV2_ENABLE_AFFINITY=0"
    r"|(OMPI|PRTE)_MCA_hwloc_(base|default)_binding_policy=none"
)
# The variables of a rank that srun sets by its --mpi: src/plugins/mpi of Slurm.
SRUN_VARIABLES = {"pmi2": ("PMI_RANK", "PMI_SIZE")}
_HYDRA = RankVariables("$PMI_RANK", "$PMI_SIZE", "$MPI_LOCALRANKID", "$MPI_LOCALNRANKS")
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
        RankVariables(
            "$OMPI_COMM_WORLD_RANK",
            "$OMPI_COMM_WORLD_SIZE",
            "$OMPI_COMM_WORLD_LOCAL_RANK",
            "$OMPI_COMM_WORLD_LOCAL_SIZE",
        ),
        mixed=("-np {ranks}", '--hostfile "$JOBGEN_RUN_DIR/hostfile"', "--map-by slot --bind-to none"),
        srun="pmix",
        knows_slurm=False,
        runtime=("mpi", "openmpi"),
        network=("OMPI_MCA_btl_tcp_if_include={names}",),
        over_components=(
            *("OMPI_MCA_ras=^slurm", "PRTE_MCA_ras=^slurm", "OMPI_MCA_plm=rsh", "PRTE_MCA_plm=ssh"),
        ),
        overcommit=("--oversubscribe",),
        marks=("-mca", "--mca", "-gmca", "--gmca", "-x", "-npernode", "--npernode", "-am", "--am"),
        settings=("OMPI_",),
        modules=r"open-?mpi|ompi|hpcx|nvmpi|(?:foss|fosscuda)[-/]20\d\d[ab]|gompic?|gomkl|goolfc?|iompi|iomkl",
    ),
    # https://github.com/pmodels/mpich/blob/main/doc/wiki/how_to/Using_the_Hydra_Process_Manager.md
    "mpich": MpiFlavour(
        "MPICH",
        "mpirun",
        ("-n {ranks} -ppn {ranks_per_node}", '-f "$JOBGEN_RUN_DIR/hosts"'),
        ('-genv {name} "${name}"',),
        "HYDRA",
        _HYDRA,
        srun="pmi2",
        shows_values=True,
        unbound=("-n {ranks} -ppn {ranks_per_node} -bind-to none", '-f "$JOBGEN_RUN_DIR/hosts"'),
        mixed=("-n {ranks} -bind-to none", '-f "$JOBGEN_RUN_DIR/machines"'),
        runtime=("mpi", "mpich"),
        network=("HYDRA_IFACE={first}", "FI_TCP_IFACE={first}"),
        marks=("-genv", "-genvall", "-genvlist", "-env", "-ppn", "-f", "-perhost", "-rmk"),
        settings=("MPICH_", "MV2_"),
        # Cray MPICH, MPICH, MVAPICH2, and HPE MPT, which all take Slurm's pmi2.
        commands=("aprun", "mpiexec.hydra", "mpirun_rsh", "mpiexec_mpt"),
        more_ranks={
            "ALPS_APP_PE": "rank",
            "PMI_LOCAL_RANK": "local_rank",
            "MV2_COMM_WORLD_RANK": "rank",
            "MV2_COMM_WORLD_SIZE": "size",
            "MV2_COMM_WORLD_LOCAL_RANK": "local_rank",
        },
        modules="mpich|mvapich|parastationmpi|(?:g|i|nv)?psmpi|intel-para|gmvolf|mpt|hpe-?mpi|sgi-?mpi|mpi-(?:hpe|sgi)"
        "|prgenv-(?:amd|aocc|cray|gnu|intel|nvhpc|nvidia|pathscale|pgi)",  # which load Cray MPICH
        own_plugin=("cray_shasta", r"cray-mpich|prgenv-\w+"),
        own_options=("HPE MPT", "mpt|hpe-?mpi|sgi-?mpi|mpi-(?:hpe|sgi)"),
        passes_all=True,
        own_sessions=True,
    ),
    # https://www.intel.com/content/www/us/en/docs/mpi-library/developer-reference-linux/
    "intel": MpiFlavour(
        "Intel MPI",
        "mpirun",
        ("-n {ranks} -ppn {ranks_per_node}", '-f "$JOBGEN_RUN_DIR/hosts"'),
        ('-genv {name} "${name}"',),
        "Intel",
        _HYDRA,
        srun="pmi2",
        shows_values=True,
        unbound=("-n {ranks} -ppn {ranks_per_node} -genv I_MPI_PIN off", '-f "$JOBGEN_RUN_DIR/hosts"'),
        runtime=("mpi", "intel"),
        network=("I_MPI_HYDRA_IFACE={first}", "FI_TCP_IFACE={first}"),
        settings=("I_MPI_",),
        commands=("mpiexec.hydra",),
        slots="-machinefile",  # -f starts a rank on each host in turn
        pmi_library="I_MPI_PMI_LIBRARY",  # https://slurm.schedmd.com/mpi_guide.html#intel_mpi
        modules=r"i(?:ntel-?)?mpi|intel-oneapi-mpi|intel[\d._]*/mpi|mpi/intel|mpi/20\d\d\.\d|oneapi/(?:mpi|setvars)|mpivars"
        r"|iimpi|gimpi|gimkl|ictce|(?:intel|intelcuda)[-/]20\d\d[ab]|parallel[-_]studio",
        passes_all=True,
        own_sessions=True,
        restarts_measured=False,
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
        RankVariables("$PALS_RANKID", "${PMI_SIZE:-$JOBGEN_WORLD_SIZE}", "$PALS_LOCAL_RANKID"),
        dialects=("pbspro",),
        by_scheduler=True,
        marks=("--ppn", "-ppn", "--depth", "-d", "--cpu-bind", "--env", "--envall"),
        settings=("MPICH_",),
        modules=r"cray-mpich|prgenv-\w+",
        more_ranks={"PMI_RANK": "rank", "PMI_LOCAL_RANK": "local_rank"},
        passes_all=True,
        shows_values=True,
        restarts_measured=False,
        unbound=("-n {ranks} --ppn {ranks_per_node} --cpu-bind none", '--hostfile "$JOBGEN_RUN_DIR/hosts"'),
    ),
}
