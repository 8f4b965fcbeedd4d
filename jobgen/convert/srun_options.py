"""The options of srun, with their meaning for another launcher.

Which option takes a value: src/common/slurm_opt.c and src/srun/libsrun/opt.c of Slurm.
"""

from __future__ import annotations

from jobgen.schedulers.slurm import SLURM

_LONG = """
accel-bind= bcast? bcast-exclude? compress? cpu-bind= debugger-test disable-status epilog= exact
external-launcher? gpu-bind= het-group= immediate? interactive jobid= kill-on-bad-exit? label mem-bind=
mpi= msg-timeout= multi-prog no-allocate overlap pack-group= preserve-env prolog= pty? quit-on-interrupt
relative= send-libs? slurmd-debug= task-epilog= task-prolog= threads= treewidth= unbuffered wait= whole
x11? share
"""
LONG = {**SLURM.grammar.long_options, **{name.rstrip("=?"): name[-1] for name in _LONG.split()}}
SHORT = {
    **{short[1:]: long for short, long in SLURM.grammar.short_options.items()},
    "E": "--preserve-env", "K": "--kill-on-bad-exit", "l": "--label", "r": "--relative", "T": "--threads",
    "u": "--unbuffered", "X": "--disable-status", "Z": "--no-allocate", "I": "--immediate",
    "V": "--version", "h": "--help",
}  # fmt: skip

# Options that change nothing about the ranks of a step.
_NEUTRAL = """
account acctg-freq comment compress cpus-per-task debugger-test disable-status exact exclusive
immediate interactive job-name jobid kill-on-bad-exit mail-type mail-user mem mem-per-cpu mem-per-gpu mpi
msg-timeout no-kill overlap oversubscribe share partition preserve-env profile qos quiet quit-on-interrupt
reservation resv-ports slurmd-debug threads treewidth unbuffered use-min-nodes verbose wait wckey whole
"""
_DEVICES = (
    "gpus gpus-per-node gpus-per-task gpus-per-socket gres gpu-bind ntasks-per-gpu cpus-per-gpu tres-per-task"
)
_OTHER = {
    "ntasks": "ranks", "nodes": "nodes", "ntasks-per-node": "each", "export": "export", "cpu-bind": "bind",
    "output": "output", "error": "error",
    "input": "input", "nodelist": "hosts", "chdir": "chdir", "label": "label", "overcommit": "overcommit",
    # Without a counterpart for the whole line.
    "multi-prog": "refused", "het-group": "refused", "pack-group": "refused", "pty": "refused",
}  # fmt: skip
MEANINGS = {
    **dict.fromkeys(_NEUTRAL.split(), "neutral"), **dict.fromkeys(_DEVICES.split(), "device"), **_OTHER,
}  # fmt: skip
# Of --cpu-bind: the words of mpirun's --bind-to.
BINDINGS = {
    "none": "none", "no": "none", "cores": "core", "sockets": "socket", "ldoms": "numa",
    "threads": "hwthread", "rank": "core", "v": "", "verbose": "", "q": "", "quiet": "",
}  # fmt: skip
