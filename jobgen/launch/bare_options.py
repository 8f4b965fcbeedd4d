"""The options of launchers that take no value, or only one that is joined to them with =."""

# Open MPI's mpirun (orterun(1), schizo_ompi.c), which reads them with one dash and with two.
_OPEN_MPI = (
    *("display-allocation", "display-devel-map", "display-topo", "display-map", "timestamp-output", "xml"),
    *("tag-output", "report-bindings", "quiet", "version", "nooversubscribe", "nolocal", "no-local", "novm"),
    *("bynode", "byslot", "bycore", "bysocket", "pernode", "bind-to-core", "bind-to-socket", "bind-to-none"),
    *("leave-session-attached", "debug-daemons", "do-not-launch", "do-not-resolve", "use-hwthread-cpus"),
    *("enable-recovery", "disable-recovery", "continuous", "index-argv-by-rank", "preload-binary"),
    *("noprefix", "tv", "report-state-on-timeout", "get-stack-traces", "merge-stderr-to-stdout"),
    *("show-progress", "loadbalance"),
)
# Then those of MPICH's and Intel MPI's mpiexec (hydra) and of PALS.
MPI = (
    *(dashes + name for name in _OPEN_MPI for dashes in ("-", "--")),
    *("-s", "-V", "-h", "-verbose", "-info", "-print-rank-map", "-prepend-rank", "-genvall", "-genvnone"),
    "-l",
    *("-envall", "-envnone", "-disable-x", "-enable-x", "-disable-auto-cleanup", "-print-all-exitcodes"),
    *("-disable-hostname-propagation", "-check_mpi", "-rr", "-localonly", "--label", "--line-buffer"),
    *("-trace", "-trace-imbalance", "-trace-pt2pt", "-trace-collectives", "-ordered-output", "-aps", "-mps"),
    *("--no-transfer", "--exclusive", "--envall", "--envnone", "--genvall", "--verbose"),
    "--bypass-app-transfer",  # of aprun
)
# args.c of pyxis
_PYXIS = ("mount-home", "remap-root", "entrypoint", "entrypoint-log", "writable", "readonly")
# no_argument and optional_argument in src/common/slurm_opt.c
SRUN = (
    *(f"--{no}container-{name}" for name in _PYXIS for no in ("", "no-")),
    *("--contiguous", "--disable-status", "-X", "-H", "--hold", "-I", "--immediate", "-l", "--label"),
    *("--multi-prog", "-Z", "--no-allocate", "-k", "--no-kill", "-O", "--overcommit", "-s"),
    *("--oversubscribe", "-E", "--preserve-env", "--pty", "--quit-on-interrupt", "--reboot", "--bcast"),
    *("--spread-job", "--test-only", "--use-min-nodes", "-V", "--version", "--x11", "--interactive"),
    *("--whole", "--send-libs", "--propagate", "--compress", "--resv-ports", "--nice", "--get-user-env"),
    *("-h", "--help", "--usage", "--share", "--debugger-test", "--external-launcher", "--oom-kill-step"),
    "--stepmgr",
)
# deepspeed/launcher/runner.py
DEEPSPEED = (
    *("--force-multi", "--no-local-rank", "--no-ssh", "--no-ssh-check", "--save-pid"),
    *("--bind-cores-to-rank", "--elastic-training"),
)
# torch/distributed/run.py and launch.py
TORCHRUN = ("--use-env", "--virtual-local-rank", "--run-path")
# accelerate/commands/launch.py
ACCELERATE = (
    *("--cpu", "--tpu", "--use-deepspeed", "--use-fsdp", "--use-megatron-lm", "--use-xpu", "--ipex"),
    *("--quiet", "-q", "--debug", "--same-network", "--use-mps-device", "--tpu-use-cluster"),
    *("--use-parallelism-config", "--enable-cpu-affinity"),
)
