"""Rules about the deepspeed launcher: its hostfile, its filters and its runners."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.ranks.model import HOSTFILES
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.check.rules.hostfile import hostfile_statements
from jobgen.errors import counted
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import expansions

_FIRST = 20  # hostfiles that are searched for in the text


def runner(launch: Launch) -> str:
    return (launch.options.get("--launcher") or "pdsh").lower()


def run_by(script: Script, *runners: str) -> Iterator[Launch]:
    """Yield the calls of deepspeed with one of these runners as ``--launcher``."""
    return (launch for launch in script.launched("deepspeed") if runner(launch) in runners)


@rule(
    "no-hostfile",
    ERROR,
    "deepspeed on several nodes without a hostfile",
    """deepspeed does not query the scheduler. Without a hostfile it prints a warning of one line and trains
    only on the first node, while the whole allocation is charged.""",
    fix='write a hostfile from the scheduler\'s host list, and add --hostfile "$hostfile"',
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed train.py --deepspeed_config ds.json
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    deepspeed --hostfile "$hostfile" train.py --deepspeed_config ds.json
    """,
)
def missing_hostfile(script: Script) -> Iterator[Hit]:
    if not script.is_batch or not script.request.several:
        return
    for launch in script.launched("deepspeed"):
        given = launch.unknown or launch.has("--hostfile", "-H", "--no-ssh", "--node-rank")
        if not given and script.starts(launch):
            reason = f"without a hostfile deepspeed prints a warning and uses only the first of the {script.request.nodes} nodes"
            yield Hit(launch.line, reason)


@rule(
    "ignored-launcher",
    WARNING,
    "--launcher without a hostfile",
    """Without a hostfile deepspeed starts the ranks on its own node, and ignores `--launcher` without a
    message.""",
    message="without a hostfile deepspeed ignores --launcher",
    fix="add --hostfile, or remove --launcher",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed --launcher pdsh train.py
    """,
    good={"deepspeed --launcher pdsh train.py": "deepspeed train.py"},
)
def ignored_launcher(script: Script) -> Iterator[Hit]:
    for launch in script.launched("deepspeed"):
        given = launch.unknown or launch.has("--hostfile", "-H")
        if launch.has("--launcher") and not given and not script.request.several:
            yield Hit(launch.line)


@rule(
    "deepspeed-filter",
    ERROR,
    "Filters with an MPI runner",
    """The runners for Open MPI, MPICH, Intel MPI and MVAPICH refuse `--include` and `--exclude`.""",
    fix="write a hostfile with only the hosts and slots to use",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    deepspeed --hostfile "$hostfile" --include node1:0,1 --launcher impi train.py
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=hostfile-slots
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=2/' > "$hostfile"
    deepspeed --hostfile "$hostfile" --launcher impi train.py
    """,
)
def filtered_runner(script: Script) -> Iterator[Hit]:
    for launch in run_by(script, "openmpi", "mpich", "impi", "mvapich"):
        if launch.has("--include", "--exclude", "-i", "-e"):
            yield Hit(launch.line, f"--launcher {runner(launch)} refuses --include and --exclude")


@rule(
    "filter-range",
    ERROR,
    "A filter that is refused",
    """DeepSpeed's filters list each slot, as in `host:0,1@host2:0`: ranges such as `0-3` are refused, and so is a slot that
    the node does not have. `srun` has no option `--include`.""",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed --include localhost:0-3 train.py
    """,
    good={"deepspeed --include localhost:0-3 train.py": "deepspeed --include localhost:0,1,2,3 train.py"},
)
def filter_range(script: Script) -> Iterator[Hit]:
    for launch in script.launched("deepspeed"):
        for name in ("--include", "--exclude"):
            if re.search(r":[\d,]*\d-\d", launch.options.get(name) or ""):
                yield Hit(launch.line, f"{name} does not support ranges", "list each slot: host:0,1,2,3")
        slots = [
            int(one)
            for one in re.findall(r"(?<=[:,])\d{1,2}(?=[,@]|$)", launch.options.get("--include") or "")
        ]
        gpus = None if script.request.exclusive else script.request.gpus_per_node
        counts = launch.has("--num-gpus", "--num-nodes", "--num-accelerators")
        if counts and launch.has("--include", "--exclude", "-i", "-e"):
            why = "deepspeed refuses --num_gpus and --num_nodes together with --include or --exclude"
            yield Hit(launch.line, why, "leave one of the two out")
        if slots and gpus and max(slots) >= gpus:
            reason = f"--include names slot {max(slots)}, but a node of the job has {counted(gpus, 'GPU')}, from 0: deepspeed refuses it"
            yield Hit(launch.line, reason, "write --num_gpus, or leave it out")
    for launch in script.launched("srun"):
        if launch.has("--include"):
            yield Hit(launch.line, "srun has no option --include, which is DeepSpeed's", "use --nodelist")


@rule_once(
    "absent-hostfile",
    WARNING,
    "A hostfile that nothing writes",
    """If its hostfile does not exist, deepspeed only prints a warning and trains on the first node, and mpirun
    ends. A file that is left from another job has the hosts of that job. The file is searched for in the
    directory of the script, and among the files that the script writes.""",
    fix="write it in this script, from the scheduler's host list",
    bad="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    deepspeed --hostfile hosts.of.yesterday train.py
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    deepspeed --hostfile "$hostfile" train.py
    """,
)
def absent_hostfile(script: Script) -> Iterator[Hit]:
    if any(script.named("bash", "sh", "source", ".", "python", "python3")):
        return  # they may make it
    named = {
        launch.options[key]: (key, launch)
        for launch in script.launched(*_HOSTFILE_OPTIONS)
        for key in _HOSTFILE_OPTIONS[launch.kind]
        if launch.has(key)
    }
    for name, (key, launch) in list(named.items())[:_FIRST]:
        local = name and (not launch.row.of_mpi or not name.startswith("/"))
        path = script.path(name) if name and local else None
        if not name or path is None or os.path.exists(path):
            continue
        last = os.path.basename(name)
        node = launch.command.node
        names = {one for one, _ in expansions(launch.nodes[key])}
        own = [node.text, *(value.text for one in names for value in script.values.get(one, ()))]
        elsewhere = any(
            one in names and not node.start <= use.start < node.end for one, use in script.expansions
        )
        if not elsewhere and script.tree.text.count(last) == sum(text.count(last) for text in own):
            effect = f"{launch.title} {'ends' if launch.row.of_mpi else 'uses this node only'}"
            reason = f"nothing makes {name}: without it {effect}, and one of another job has its hosts"
            yield Hit(launch.line, reason)


_HOSTFILE_OPTIONS = {"deepspeed": ("--hostfile", "-H"), "mpirun": HOSTFILES}


@rule_once(
    "hostfile-format",
    ERROR,
    "A hostfile that DeepSpeed cannot read",
    r"""DeepSpeed matches `^(\S+)\s+slots=(\d+)`: no blanks around the `=`, no `host:4`.""",
    message="a hostfile of DeepSpeed must have no blanks around the = of slots=",
    fix="write HOST slots=4",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    scontrol show hostnames | sed 's/$/ slots = 4/' > "hostfile.$SLURM_JOB_ID"
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    scontrol show hostnames | sed 's/$/ slots=4/' > "hostfile.$SLURM_JOB_ID"
    """,
)
def hostfile_format(script: Script) -> Iterator[Hit]:
    for node in script.tree.all("string_content", "raw_string", "heredoc_body", "word"):
        if _BLANKS.search(node.text):
            yield Hit(node.line)
    for node, text in hostfile_statements(script) if any(script.launched("deepspeed")) else ():
        if _BLANKS.search(text):
            yield Hit.at(node)


_BLANKS = re.compile(r"\bslots(\s+=\s*|=\s+)[\d$]")


@rule(
    "deepspeed-slurm",
    WARNING,
    "DeepSpeed's Slurm runner",
    """DeepSpeed's Slurm runner calls `srun` without `-c`: each rank has one core. It splits variables at
    commas, sets no rank variables, and drops `--module`, `--master_addr` and `--master_port` (an error
    if they are given).""",
    fix="start the ranks with srun, or deepspeed --no_ssh --node_rank once a node",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    deepspeed --hostfile "$hostfile" --launcher slurm train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --cpus-per-task=8 python3 train.py
    """,
)
def slurm_runner(script: Script) -> Iterator[Hit]:
    for launch in run_by(script, "slurm"):
        if script.request.nodes == 1 and not launch.has("--force-multi"):
            continue  # deepspeed starts the ranks itself
        lost = [name for name in ("--module", "--master-addr", "--master-port") if launch.has(name)]
        drops = f"; it drops {', '.join(lost)}" if lost else ""
        reason = f"--launcher slurm calls srun without cores, splits variables at commas and sets no rank variables{drops}"
        yield Hit(launch.line, reason, level=ERROR if lost else None)


@rule(
    "deepspeed-mpich",
    WARNING,
    "DeepSpeed's MPICH runner",
    """`deepspeed --launcher mpich` never returns the status of the training: the job succeeds although the
    training has failed.""",
    message="--launcher mpich never returns the status of the training: the job always succeeds",
    fix="start the ranks with mpirun, or test for a file that the training writes at its end",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    deepspeed --hostfile "$hostfile" --launcher mpich train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    scontrol show hostnames > "hosts.$SLURM_JOB_ID"
    mpirun -n 8 -ppn 4 -f "hosts.$SLURM_JOB_ID" python3 train.py
    """,
)
def mpich_runner(script: Script) -> Iterator[Hit]:
    for launch in run_by(script, "mpich"):
        yield Hit(launch.line)


@rule(
    "deepspeed-openmpi",
    NOTE,
    "DeepSpeed's Open MPI runner",
    """DeepSpeed's Open MPI runner sets `btl ^openib`, `UCX_TLS=tcp` and the interface `eth0`, unless
    `--launcher_args` overrides them: the fast network is not used, or no interface is found.""",
    message="--launcher openmpi sets eth0, UCX_TLS=tcp and no InfiniBand, unless --launcher_args overrides them",
    fix='set them: --launcher_args "--mca btl_tcp_if_include ib0 -x UCX_TLS=..."',
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    deepspeed --hostfile "$hostfile" --launcher openmpi train.py
    """,
    good={
        'deepspeed --hostfile "$hostfile" --launcher openmpi train.py': 'deepspeed --hostfile "$hostfile" --launcher openmpi --launcher_args "--mca btl_tcp_if_include ib0 -x UCX_TLS=all" train.py'
    },
)
def openmpi_runner(script: Script) -> Iterator[Hit]:
    for launch in run_by(script, "openmpi"):
        if not launch.has("--launcher-args") and not launch.unknown:
            yield Hit(launch.line)
