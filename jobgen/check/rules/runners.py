"""Rules about the runners with which the deepspeed launcher starts ranks."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.rule import ERROR, WARNING, rule
from jobgen.check.rules.deepspeed import run_by
from jobgen.script.script import Hit, Script


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
        yield Hit(
            launch.line,
            "--launcher slurm calls srun without cores, splits variables at commas and sets no "
            "rank variables" + (f"; it drops {', '.join(lost)}" if lost else ""),
            level=ERROR if lost else None,
        )


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
    WARNING,
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
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    hostfile=hostfile.$SLURM_JOB_ID
    scontrol show hostnames | sed 's/$/ slots=4/' > "$hostfile"
    deepspeed --hostfile "$hostfile" --launcher openmpi --launcher_args "--mca btl_tcp_if_include ib0 -x UCX_TLS=all" train.py
    """,
)
def openmpi_runner(script: Script) -> Iterator[Hit]:
    for launch in run_by(script, "openmpi"):
        if not launch.has("--launcher-args") and not launch.unknown:
            yield Hit(launch.line)
