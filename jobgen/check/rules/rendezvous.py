"""Rules about the rendezvous: its port, and the rank of each node."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.ranks.addresses import ports
from jobgen.check.ranks.launcher_config import launches
from jobgen.check.ranks.model import RankGroup, beside, ranks
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.launch.wrappers import command_start
from jobgen.schedulers.request import GPUS_OF_NODE
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LOOPS, expansions, literal

_NODE_RANK = ("--node-rank", "--machine-rank")


@rule_once(
    "mpi-discovery",
    WARNING,
    "DeepSpeed under mpirun without its variables",
    """Unless RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are all set,
    `deepspeed.init_distributed` queries mpi4py. It then uses the first address of the first host, which
    may be on the wrong network, and the port 29500, which other jobs use, too.""",
    message="without RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT DeepSpeed queries mpi4py, "
    "and all jobs use port 29500",
    fix="export all five in each rank, from OMPI_COMM_WORLD_RANK and the like",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    mpirun python3 train.py --deepspeed_config ds.json
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(scontrol show hostnames | awk 'NR == 1')
    export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
    mpirun -x MASTER_ADDR -x MASTER_PORT bash -c '
      export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK
      exec python3 train.py --deepspeed_config ds.json'
    """,
)
def mpi_discovery(script: Script) -> Iterator[Hit]:
    exported = {name for name, _, _ in script.assignments}
    for one in ranks(script):
        launch = one.outer
        if launch is None or not launch.row.of_mpi or one.inner is not launch:
            continue
        words = [script.constants.value(word) or word.text for word in launch.program]
        first = next(iter(words[command_start(words) :]), "")
        python = os.path.basename(first).startswith("python")
        of_deepspeed = any("--deepspeed" in word for word in words) or {"deepspeed"} & one.program.frameworks
        if python and of_deepspeed and "RANK" not in exported:
            yield Hit(launch.line)


@rule(
    "colossalai-ranks",
    ERROR,
    "colossalai run without a number of ranks",
    """`colossalai run` calls torchrun, but does not start without `--nproc_per_node`.""",
    message="colossalai run requires --nproc_per_node",
    fix="add --nproc_per_node N",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    colossalai run train.py
    """,
    good={"colossalai run train.py": "colossalai run --nproc_per_node 4 train.py"},
)
def colossalai_ranks(script: Script) -> Iterator[Hit]:
    for launch in script.launched("colossalai"):
        if not launch.has("--nproc-per-node", "--help") and not launch.unknown:
            yield Hit(launch.line)


@rule(
    "fixed-node-rank",
    ERROR,
    "The same node rank on all nodes",
    """Each node needs a different node rank. With the same `--node_rank` on all nodes the rendezvous fails
    or hangs. (Backends such as c10d number the nodes themselves, and do not read it.)""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --nnodes=2 --node-rank=0 --nproc-per-node=4 --master-addr="$(hostname)" train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(hostname)
    export MASTER_ADDR
    srun bash -c 'exec torchrun --nnodes=2 --node-rank="$SLURM_NODEID" --nproc-per-node=4 --master-addr="$MASTER_ADDR" train.py'
    """,
)
def fixed_node_rank(script: Script) -> Iterator[Hit]:
    for launch in script.launches:
        rank = launch.number(*_NODE_RANK)
        line = launch.row.line
        far = line.reaches_nodes and not launch.has("--no-ssh")  # deepspeed starts all nodes itself
        of_job = None if far or line.config_file else script.request.nodes
        nodes = launch.number(*line.nodes) or of_job or 1
        if rank is None or nodes < 2 or not script.only(launch) or not script.in_job:
            continue
        if launch.has("--rdzv-backend") and launch.text("--rdzv-backend") != "static":
            continue  # others number the nodes themselves: torch/distributed/run.py
        around = launch.command.node
        if script.starter is not None and script.starter.call.remote:
            around = script.starter.call.command.node
        if launch.remote in _ONE_HOST and not around.under(*LOOPS):
            continue
        if not script.starts(launch):  # see first-node-only
            own = "SLURM_NODEID" if script.dialect.scheduler.node_step else "OMPI_COMM_WORLD_RANK of mpirun"
            fix = f"use a variable that is expanded on each node, such as {own}"
            each = launch.number(*line.local_ranks)
            starts = "each starts the same ranks"
            if each:
                starts = f"each starts ranks {rank * each} to {rank * each + each - 1} of {nodes * each}"
            waits = (
                f"the node rank is {rank} on all nodes: {starts}, and waits forever for those of the others"
            )
            yield Hit(launch.line, waits, fix)


_ONE_HOST = ("ssh", "rsh", "pbs_tmrsh")

# The ports of tutorials and defaults, which other jobs use, too.
_USUAL_PORTS = {
    *(*range(29400, 29411), *range(29500, 29511)),
    *(6000, 6001, 1234, 12345, 12355, 8888, 9901, 10000, 12340, 60000),
}
_GPUS_OF_MANY = 4
_MANY_NODES = 8
_PORT_OF_JOB = "compute it from the job id: MASTER_PORT=$((20000 + JOBID % 10000"


@rule(
    "fixed-port",
    WARNING,
    "A fixed port",
    """Two jobs on one node with the same port connect to each other, or the second one cannot start. 29500
    is the default; 16 of 45 public scripts set a fixed port. (For a port that no tutorial uses this is only a note, unless the job is an array, and so it is for a job of several nodes with four GPUs each, or without a
    number of cores in PBS, which usually are whole nodes, and none from eight nodes on; a job with eight GPUs, or eight ranks of a launcher, on each node shares no node, and has no finding; nor has one at a
    site that gives whole nodes, such as JSC, ALCF, NCAR and TACC.)""",
    fix=f"{_PORT_OF_JOB}))",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    export MASTER_PORT=29500
    srun python3 train.py
    """,
    good={"export MASTER_PORT=29500": "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))"},
)
def fixed_port(script: Script) -> Iterator[Hit]:
    found = [(node.line, literal(value)) for name, value, node in script.assignments if name == "MASTER_PORT"]
    used = launches(script)
    if (script.launches and not used) or _are_ranks(script):
        return  # nothing opens it, or the tasks of an array share it
    for launch in used:
        found += [
            (launch.line, launch.options.get(name)) for name in ("--master-port", "--main-process-port")
        ]
        node = launch.nodes.get("--rdzv-endpoint")
        if node is not None and (match := re.search(r":(\d{4,5})$", script.constants.text(node))):
            found.append((launch.line, match[1]))
    if any((launch.number(*launch.row.line.local_ranks) or 0) >= GPUS_OF_NODE for launch in used):
        return
    seen: set[str] = set()
    chunks, many = script.request.chunks, (script.request.gpus_per_node or 0) >= _GPUS_OF_MANY
    many |= bool(chunks) and all({"ncpus", "ppn"}.isdisjoint(chunk) for chunk in chunks)
    whole = script.request.several and many  # nodes
    if whole and (script.request.nodes or 0) >= _MANY_NODES:
        return
    array, fix = script.request.array or "%1", ""
    of_array = not whole and not re.search(r"%1$", array)  # one task at a time
    if of_array and script.is_pbs:  # the tasks of its arrays have one number
        fix = f"{_PORT_OF_JOB} + {script.dialect.variable('array_index')}))"
    for line, port in found:
        shared = script.in_job and not script.has_whole_nodes
        if shared and port and port.isdigit() and port != "0" and port not in seen:
            seen.add(port)
            second, first = ("task of the array", "one") if of_array else ("job", "job")
            reason = f"the port {port} is fixed: a second {second} on the same node connects to this {first}, or cannot start"
            known = of_array or (int(port) in _USUAL_PORTS and not whole)
            yield Hit(line, reason, fix, None if known else NOTE)
    for line in _ports_of_array(script) if of_array and script.in_job else ():
        reason = "all tasks of the array get this port, from the number of the array: a second one on the same node connects to the first, or cannot start"
        yield Hit(line, reason, fix)


def _are_ranks(script: Script) -> bool:
    """Return whether the tasks of an array are the ranks of one training, which share the port: the index of the task
    chooses the rank."""
    index = script.dialect.variable("array_index") or " "
    for name, value, node in script.assignments:
        branch = node.around("if_statement", "case_statement")
        chooses = branch is not None and index in branch.text.partition("\n")[0]
        if name in ("RANK", "NODE_RANK", "GROUP_RANK") and (chooses or index in value.text):
            return True
    return any(
        index in one.nodes[name].text for one in script.launches for name in _NODE_RANK if name in one.nodes
    )


def _ports_of_array(script: Script) -> Iterator[int]:
    """Yield the lines of the ports that the number of an array determines, without the index of the task."""
    own, index = script.dialect, script.dialect.variable("array_index") or ""
    numbers = list(filter(None, (own.job_number, own.variable("array_job"))))
    for one in ports(script):
        values = (value.text for name, _ in expansions(one.node) for value in script.values.get(name, ()))
        text = " ".join([one.node.text, *values])
        if any(number in text for number in numbers) and index not in text and "RANDOM" not in text:
            yield one.line


@rule_once(
    "shared-port",
    ERROR,
    "Two launchers at the same time with one port",
    """Each launcher opens its port on the node. The second one in the background finds it in use, and ends: "The server
    socket has failed to listen". Without a port both take 29500. `--standalone` lets torchrun choose a free one.""",
    fix="give each a port of its own, or write torchrun --standalone",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    CUDA_VISIBLE_DEVICES=0 torchrun --nproc-per-node=1 train.py --fold 1 &
    one=$!
    CUDA_VISIBLE_DEVICES=1 torchrun --nproc-per-node=1 train.py --fold 2 &
    wait "$one"
    wait "$!"
    """,
    good={
        "CUDA_VISIBLE_DEVICES=0 torchrun --nproc-per-node=1 train.py --fold 1 &": "CUDA_VISIBLE_DEVICES=0 torchrun --standalone --nproc-per-node=1 train.py --fold 1 &",
        "CUDA_VISIBLE_DEVICES=1 torchrun --nproc-per-node=1 train.py --fold 2 &": "CUDA_VISIBLE_DEVICES=1 torchrun --standalone --nproc-per-node=1 train.py --fold 2 &",
    },
)
def shared_port(script: Script) -> Iterator[Hit]:
    one_node = script.request.nodes == 1
    for together in (
        beside(script, steps=one_node, calls=True) if not any(script.named("ssh", "pdsh", "pbsdsh")) else ()
    ):
        first: dict[str, int] = {}
        for one in together:
            port = _port(script, one)
            if port and port in first:
                where = f"that of line {first[port]}" if first[port] != one.line else "itself"
                reason = f"this runs beside {where} with the same port, {port}: the second one finds it in use, and ends"
                yield Hit(one.line, reason)
            first[port] = one.line


def _port(script: Script, one: RankGroup) -> str:
    """Return the port that a launcher opens on the first node; empty if it is free, or may differ each time."""
    launch = one.inner
    if launch is None or not launch.row.once_a_node or launch.unknown or (one.chain[1:] and not one.is_step):
        return ""
    option = next((name for name, key in launch.row.line.same.items() if key == "master_port"), "")
    alone = launch.row.line.config_file and (launch.number("--num-processes") or 1) < 2
    chosen = launch.has("--standalone", "--rdzv-backend", "--rdzv-conf", "--rdzv-id")
    other = launch.has(*_NODE_RANK) and launch.number(*_NODE_RANK) != 0  # the first node has the port
    if launch.remote or not option or alone or chosen or other or "PET_" in script.tree.text:
        return ""
    node = launch.nodes.get(option)
    if node is None:
        return "" if launch.has(option) else "29500"
    names = {name for name, _ in expansions(node)}
    read = names | {
        inner for name in names for value in script.values.get(name, ()) for inner, _ in expansions(value)
    }
    if any(re.fullmatch(r"[@*]|\d+", name) for name in read):  # of a function
        return launch.options.get(option) or ""
    varies = any(name in script.loop_variables or len(script.values.get(name, ())) > 1 for name in names)
    text = (node.text if names else script.constants.text(node)).strip("\"'").rpartition("=")[2]
    return "" if varies or "RANDOM" in text or "$((" in text or "$(" in text or text == "0" else text
