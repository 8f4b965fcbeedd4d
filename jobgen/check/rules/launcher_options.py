"""Rules about launchers: their options compared with the resources of the job."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.script.script import Hit, Script


@rule(
    "nodes-mismatch",
    ERROR,
    "A launcher with another number of nodes than the job",
    """The request and the launch command have different numbers of nodes. The launcher waits for nodes that
    the job does not have, or leaves some idle.""",
    fix="use the number that the scheduler sets in a variable",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=16
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --nnodes=32 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=16
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py
    """,
)
def nodes_mismatch(script: Script) -> Iterator[Hit]:
    request = script.request
    if not request.nodes or not script.is_batch or len(request.chunks) > 1:
        return
    for launch in script.launches:
        count = launch.number(*launch.row.line.nodes)
        if count is None or count == request.nodes or launch.has("--standalone"):
            continue
        if count > request.nodes:
            yield Hit(launch.line, f"{launch.kind} gets {count} nodes, but the job requests {request.nodes}")
        elif script.only(launch) and launch.row.once_a_node and launch.outer is None and count == 1:
            yield Hit(
                launch.line,
                f"{launch.kind} gets 1 node, but the job requests {request.nodes}",
                level=WARNING,
            )


@rule(
    "ranks-mismatch",
    WARNING,
    "A launcher with more or fewer ranks than the job's GPUs or slots",
    """The launcher starts more ranks than the job has GPUs on a node or slots in all, or leaves GPUs idle.
    Open MPI refuses more ranks than slots, other MPIs share the cores; `srun` counts the cores of the
    allocation, not its tasks. A rank without a GPU fails when it opens its device.""",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    torchrun --standalone --nproc-per-node=8 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    torchrun --standalone --nproc-per-node=4 train.py
    """,
)
def ranks_mismatch(script: Script) -> Iterator[Hit]:
    request = script.request
    if not script.is_batch or len(request.chunks) > 1:
        return
    for launch in script.launches:
        each = launch.number(*launch.row.line.local_ranks)
        gpus = None if request.exclusive else request.gpus_per_node  # an exclusive node gives all that it has
        if each and gpus and each != gpus and (each > gpus or script.only(launch)):
            more = each > gpus
            yield Hit(
                launch.line,
                f"{launch.title} starts {each} ranks on a node of {gpus} GPUs"
                + ("" if more else f": {gpus - each} stay idle"),
                f"write {gpus}, or request {each} GPUs",
            )
        total = launch.number(*launch.row.line.ranks)
        slots = _slots(script) if not launch.row.by_scheduler else _cores(script)
        if (
            total
            and slots
            and total > slots
            and not launch.has("--oversubscribe", "-oversubscribe", "--overcommit", "-O")
        ):
            yield Hit(
                launch.line,
                f"{launch.kind} gets {total} ranks, but the job requests {slots} slot{'s' if slots > 1 else ''}",
                "use the number that the scheduler sets in a variable",
            )


def _cores(script: Script) -> int | None:
    """Return the cores of the tasks that the job requests; None if it has whole nodes."""
    request = script.request
    return None if request.exclusive or not request.ranks else request.ranks * (request.cpus_per_rank or 1)


def _slots(script: Script) -> int | None:
    """Return how many ranks a launcher may start; None if the request does not determine it."""
    request = script.request
    if not request.chunks:
        return request.ranks
    if (
        request.nodes
        and request.ranks_per_node
        and request.chunks[0].get("ppn", request.chunks[0].get("mpiprocs"))
    ):
        return request.nodes * request.ranks_per_node
    return None


@rule(
    "first-node-only",
    ERROR,
    "A launcher on the first node only",
    """A batch script runs only on the first node of the job. torchrun and accelerate start ranks only on
    their own node: without srun, mpirun or ssh the other nodes stay idle, and the first one waits for
    them until the time limit. (If it is started for one node this is only a warning.)""",
    bad="""
    #!/bin/bash
    # jobgen: disable=repeated-count
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py
    """,
)
def first_node_only(script: Script) -> Iterator[Hit]:
    if not script.is_batch or not script.request.several:
        return
    if any(script.named("ssh", "pdsh", "pbsdsh", "clush", "parallel", "pbs_tmrsh")):
        return
    if any(not launch.row.line.module_options for launch in script.launches):
        return
    for launch in script.launches:
        if not launch.row.line.reaches_nodes and script.starts(launch) and not launch.command.background:
            if launch.has("--standalone"):
                continue
            step = script.dialect.scheduler.node_step
            way = f"{step} --ntasks-per-node=1" if step else "mpirun or pbs_tmrsh, once a node"
            count = launch.number(*launch.row.line.nodes) if launch.has(*launch.row.line.nodes) else 1
            yield Hit(
                launch.line,
                f"a batch script runs on the first node only: {launch.kind} waits forever for the other "
                "nodes, or leaves them idle",
                f"start it with {way}",
                WARNING if count == 1 else None,
            )
            return


@rule(
    "nested-tasks",
    ERROR,
    "Launchers inside each other",
    """torchrun, accelerate and deepspeed are started once on each node and start the ranks there. `srun`
    with a task for each GPU starts them once for each GPU.""",
    fix="write srun --ntasks-per-node=1",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py
    """,
)
def nested_tasks(script: Script) -> Iterator[Hit]:
    for launch in script.launches:
        outer = launch.outer
        if not launch.row.once_a_node or outer is None or not outer.row.by_scheduler or outer.unknown:
            continue
        tasks = outer.number("--ntasks-per-node")
        if tasks is None and not outer.has("-n", "--ntasks", "--ntasks-per-node"):
            tasks = script.request.ranks_per_node
        elif (
            tasks is None
            and outer.number("-n", "--ntasks")
            and (outer.number("-N", "--nodes") or script.request.nodes)
        ):
            nodes = outer.number("-N", "--nodes") or script.request.nodes or 1
            tasks = (outer.number("-n", "--ntasks") or 1) // nodes
        each = launch.number(*launch.row.line.local_ranks)
        if tasks and tasks > 1 and (each is None or each > 1):
            yield Hit(
                launch.line,
                f"{outer.kind} starts {tasks} tasks on each node, and in each of them {launch.kind} "
                "starts its ranks",
            )


@rule(
    "pdsh-rsh",
    WARNING,
    "pdsh by rsh",
    """pdsh uses rsh unless it was built for another command, or `PDSH_RCMD_TYPE` names one. Where no rsh
    runs it fails on every host, **with status 0**.""",
    message="pdsh uses rsh unless it was built or told otherwise: it then fails, and exits with status 0",
    fix="export PDSH_RCMD_TYPE=ssh",
    bad="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    pdsh -w "$SLURM_JOB_NODELIST" hostname
    """,
    good="""
    #!/bin/bash
    # jobgen: disable=ssh-between-nodes
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    export PDSH_RCMD_TYPE=ssh
    pdsh -w "$SLURM_JOB_NODELIST" hostname
    """,
)
def pdsh_rsh(script: Script) -> Iterator[Hit]:
    if any(name == "PDSH_RCMD_TYPE" for name, _, _ in script.assignments):
        return
    for command in script.named("pdsh"):
        words = command.literals
        if "-R" not in words and "-Rssh" not in words and not any(word.startswith("ssh:") for word in words):
            yield Hit(command.line)
            return
