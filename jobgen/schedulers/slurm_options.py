"""The options of sbatch: src/common/slurm_opt.c, and CHANGELOG/ for their versions."""

from __future__ import annotations

from jobgen.schedulers.versions import Span

_LONG = """
account= acctg-freq= array= batch= bb= bbf= begin= chdir= cluster= cluster-constraint= clusters= comment=
constraint= container= container-id= contiguous core-spec= cores-per-socket= cpu-freq= cpus-per-gpu=
cpus-per-task= deadline= delay-boot= dependency= distribution= error= exclude= exclusive? export=
export-file= extra= extra-node-info= get-user-env? gid= gpu-bind= gpu-freq= gpus= gpus-per-node=
gpus-per-socket= gpus-per-task= gres= gres-flags= help hint= hold ignore-pbs input= job-name=
kill-on-invalid-dep= licenses= mail-type= mail-user= mcs-label= mem= mem-bind= mem-per-cpu= mem-per-gpu=
mincpus= network= nice? no-kill? no-requeue nodefile= nodelist= nodes= ntasks= ntasks-per-core=
ntasks-per-gpu= ntasks-per-node= ntasks-per-socket= ntasks-per-tres= oom-kill-step? open-mode= output=
overcommit oversubscribe parsable partition= power= prefer= priority= profile= propagate? qos= quiet
reboot requeue reservation= resv-ports? segment= share shared signal= sockets-per-node= spread-job
stepmgr switches= tasks-per-node= test-only thread-spec= threads-per-core= time= time-min= tmp=
tres-bind= tres-per-task= uid= usage use-min-nodes verbose version wait wait-all-nodes= warn
wckey= workdir= wrap=
"""
# "=" if an option takes a value, "?" if it may take one.
LONG_OPTIONS = {name.rstrip("=?"): name[-1] if name[-1] in "=?" else "" for name in _LONG.split()}
SHORT_OPTIONS = {
    "-A": "--account", "-a": "--array", "-b": "--begin", "-D": "--chdir", "-C": "--constraint",
    "-c": "--cpus-per-task", "-d": "--dependency", "-m": "--distribution", "-e": "--error",
    "-x": "--exclude", "-B": "--extra-node-info", "-G": "--gpus", "-i": "--input", "-J": "--job-name",
    "-L": "--licenses", "-M": "--clusters", "-w": "--nodelist", "-F": "--nodefile", "-N": "--nodes",
    "-n": "--ntasks", "-o": "--output", "-p": "--partition", "-q": "--qos", "-t": "--time",
    "-k": "--no-kill", "-H": "--hold", "-O": "--overcommit", "-s": "--oversubscribe", "-W": "--wait",
    "-Q": "--quiet", "-v": "--verbose", "-S": "--core-spec", "-h": "--help", "-V": "--version",
    "--tasks-per-node": "--ntasks-per-node", "--workdir": "--chdir", "--cluster": "--clusters",
}  # fmt: skip
# The versions that have an option. sbatch of 22.05 has none of share, shared and warn; 19.05 removed workdir.
SPANS = {
    **dict.fromkeys(("--share", "--shared", "--warn"), Span(before="22.05")),
    "--power": Span(before="24.05"),
    "--workdir": Span(before="19.05"),
    **dict.fromkeys(("--prefer",), Span(since="22.05")),
    **dict.fromkeys(
        ("--container-id", "--extra", "--tres-bind", "--tres-per-task"), Span(since="23.02")
    ),
    **dict.fromkeys(("--segment", "--stepmgr", "--resv-ports"), Span(since="24.05")),
    "--container": Span(since="21.08"),
    "--export-file": Span(before="23.11"),
    "--oom-kill-step": Span(since="24.11"),
    **dict.fromkeys(("--ntasks-per-gpu", "--ntasks-per-tres"), Span(since="20.11")),
    **dict.fromkeys(
        ("--cpus-per-gpu", "--gpu-bind", "--gpu-freq", "--gpus", "--gpus-per-node", "--gpus-per-socket",
         "--gpus-per-task", "--mem-per-gpu"),
        Span(since="19.05"),
    ),
}  # fmt: skip
# Options of srun and salloc that sbatch does not have.
_STEPS = """
accel-bind bcast bell cpu-bind cpu_bind disable-status epilog exact immediate jobid join
kill-on-bad-exit kill-command label mpi msg-timeout multi-prog no-allocate no-bell no-shell
overlap prolog pty quit-on-interrupt relative send-libs slurmd-debug task-epilog task-prolog
tree-width unbuffered
"""
OF_STEPS = frozenset(_STEPS.split())
