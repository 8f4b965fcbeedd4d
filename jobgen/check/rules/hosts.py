"""Rules about the host list."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import Node, literal, uses
from jobgen.check.rule import WARNING, rule
from jobgen.check.script import Hit, Script
from jobgen.check.shell_commands import Command


@rule(
    "hand-written-hosts",
    WARNING,
    "Hosts written by hand",
    """The scheduler selects the hosts of a job. A hand-written list names the hosts of an earlier job,
    which now belong to other users.""",
    bad=r"""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    printf 'node01 slots=4\nnode02 slots=4\n' > "hostfile.$SLURM_JOB_ID"
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    scontrol show hostnames | sed 's/$/ slots=4/' > "hostfile.$SLURM_JOB_ID"
    """,
)
def hand_written(script: Script) -> Iterator[Hit]:
    for command in script.named("echo", "printf"):
        for word in command.arguments:
            if re.match(r"[A-Za-z][\w.-]*\d[\w.-]*\s+slots=\d+", literal(word) or ""):
                yield Hit(command.line, _BY_HAND, _BY_HAND_FIX)
                return
    for node in script.tree.all("heredoc_body"):
        if re.search(r"(?m)^[A-Za-z][\w.-]*\d[\w.-]*\s+slots=\d+", node.text):
            yield Hit(node.line, _BY_HAND, _BY_HAND_FIX)


_BY_HAND = "the hosts are written by hand: the scheduler gives the job others"

_BY_HAND_FIX = "make the file from $PBS_NODEFILE, or from scontrol show hostnames"

_LISTS = (
    "PBS_NODEFILE",
    "SLURM_JOB_NODELIST",
    "SLURM_NODELIST",
    "PE_HOSTFILE",
    "LSB_DJOB_HOSTFILE",
    "PBS_GPUFILE",
)


def _pipeline(command: Command) -> Node:
    """Return the pipeline of a command, or the command with its redirections."""
    node = command.node
    for above in node.above():
        if above.type not in ("redirected_statement", "pipeline"):
            break
        node = above
    return node


def _names(node: Node) -> list[str]:
    return [word.text for word in node.all("command_name")]


@rule(
    "nodefile-count",
    WARNING,
    "Slots counted as nodes",
    """`$PBS_NODEFILE` has one line for each slot (`mpiprocs`, or `ppn`), not for each node. Nine of 45
    public scripts that were looked at take `wc -l` for the number of nodes.""",
    fix='count each host once: sort -u "$PBS_NODEFILE" | wc -l',
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    nnodes=$(wc -l < "$PBS_NODEFILE")
    echo "$nnodes nodes"
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    nnodes=$(sort -u "$PBS_NODEFILE" | wc -l)
    echo "$nnodes nodes"
    """,
)
def nodefile_count(script: Script) -> Iterator[Hit]:
    for name, value, node in script.assignments:
        # The name of the variable shows what it counts.
        if not re.search(r"node|host|nnod", name, re.I) or re.search(
            r"proc|rank|slot|file|per|gpu|core", name, re.I
        ):
            continue
        inside = _names(value)
        if "wc" not in inside or not uses(value, "PBS_NODEFILE") or {"sort", "uniq", "awk"} & set(inside):
            continue
        each = script.request.lines_per_node
        if each != 1:
            yield Hit(
                node.line,
                "$PBS_NODEFILE has one line a slot"
                + (f", here {each} for each node" if each else "")
                + ": this is not the number of nodes",
            )


@rule(
    "sorted-hosts",
    WARNING,
    "Hosts in another order",
    """The first line of the node file is the host that runs the script. `sort -u` may put another host
    first, which is then used as the master, and it changes the placement of ranks. Remove duplicates
    without changing the order.""",
    message="sort changes the order of the hosts: the first is no longer the one that runs this script",
    fix="keep the order: awk '!seen[$1]++' \"$PBS_NODEFILE\"",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    sort -u "$PBS_NODEFILE" > "hosts.$PBS_JOBID"
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    awk '!seen[$1]++' "$PBS_NODEFILE" > "hosts.$PBS_JOBID"
    """,
)
def sorted_nodefile(script: Script) -> Iterator[Hit]:
    for command in script.named("sort"):
        whole = _pipeline(command)
        if (not uses(whole, *_LISTS) and "scontrol" not in whole.text) or {"wc", "grep", "tail"} & set(
            _names(whole)
        ):
            continue
        unique = "-u" in command.literals or "uniq" in _names(whole)
        # The order matters in a file, in an array, and if the first host is taken.
        written = whole.type == "redirected_statement" and any(True for _ in whole.all(">"))
        kept = written or (
            whole.under("command_substitution") and (whole.under("array") or "head" in _names(whole))
        )
        if unique and kept and not _inside_count(whole):
            yield Hit(command.line)


def _inside_count(node: Node) -> bool:
    """Return whether only the number of hosts is used, as in ``$(... | wc -l)``."""
    return any(above.type == "command_substitution" and "wc" in _names(above) for above in node.above())
