"""Rules about the network, and about ssh between nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import Node, literal
from jobgen.check.rule import NOTE, WARNING, rule
from jobgen.check.script import Hit, Script
from jobgen.errors import shown

_NIC_VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")

_DOWNLOADS = {
    "pip": ("install", "download"), "pip3": ("install", "download"), "conda": ("install", "create", "update"),
    "mamba": ("install", "create"), "git": ("clone", "pull", "fetch"), "wget": (), "curl": (),
    "huggingface-cli": ("download",), "hf": ("download",), "apt-get": ("install",), "apt": ("install",),
    "uv": ("pip", "sync"),
}  # fmt: skip


@rule(
    "fixed-interface",
    WARNING,
    "A network interface by its name",
    """Interface names differ between clusters, and sometimes between nodes of one cluster. With a wrong
    name NCCL hangs at the first collective. It is safer to exclude wrong interfaces than to name the
    right one. (The names of fast networks, such as `ib0` and `hsn0`, are only a note.)""",
    fix="leave it out, or exclude what is wrong: ^lo,docker",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    export NCCL_SOCKET_IFNAME=eth0
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py
    """,
)
def interface(script: Script) -> Iterator[Hit]:
    for name, value, node in script.assignments:
        text = literal(value) or ""
        if name in _NIC_VARIABLES and text:
            local = re.search(r"\b(eth\d|eno\d|ens\d|enp\d|em\d|docker\d|lo\b)", text)
            yield Hit(
                node.line,
                f"the interface {shown(text)} is written by hand: a node that calls it otherwise hangs "
                "at the first collective",
                level=None if local and not text.startswith("^") else NOTE,
            )


@rule(
    "download-in-job",
    WARNING,
    "Downloads inside the job",
    """Compute nodes often have no internet access. Where they have, the GPUs wait for the download in every
    job.""",
    fix="do it on the login node, before the job",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    pip install deepspeed
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py
    """,
)
def download(script: Script) -> Iterator[Hit]:
    if not script.is_batch:
        return
    for command in script.commands:
        verbs = _DOWNLOADS.get(command.name)
        words = command.literals
        if command.name in ("python", "python3") and words[:2] == ["-m", "pip"]:
            verbs, words = ("install", "download"), words[2:]
        if verbs is None or "--no-index" in words or (verbs and not set(words) & set(verbs)):
            continue
        if not verbs and not any(
            word.text.strip("\"'").startswith(("http", "ftp")) for word in command.arguments
        ):
            continue
        yield Hit(
            command.line,
            f"{command.name} needs the internet, which many compute nodes do not have, on time that the "
            "GPUs wait",
        )
        return


def _is_ssh(node: Node) -> bool:
    return not node.under("function_definition")


@rule(
    "ssh-between-nodes",
    NOTE,
    "ssh to another node",
    """Many clusters do not allow ssh between the nodes of a job. Where it works, the scheduler does not
    know the processes that it starts. Use `srun` on Slurm, `pbs_tmrsh` on PBS Pro, `pbsdsh` on Torque.""",
    message="many clusters allow no ssh between nodes, and what it starts outlives the job",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    for host in $(scontrol show hostnames); do
      ssh "$host" /opt/site/prepare
    done
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --ntasks-per-node=1 /opt/site/prepare
    """,
)
def ssh_nodes(script: Script) -> Iterator[Hit]:
    for command in script.named("ssh"):
        if (
            script.is_batch
            and any(word.type != "word" for word in command.arguments)
            and _is_ssh(command.node)
        ):
            way = script.dialect.node_step or "pbs_tmrsh or pbsdsh"
            yield Hit(command.line, fix=f"start it with {way}")
            return


@rule(
    "ssh-eats-list",
    WARNING,
    "A command that reads its loop's input",
    """ssh, srun and mpirun read their standard input, which in such a loop is the list of hosts: the first
    iteration reads the rest of it, and the loop ends.""",
    fix="give it no input: < /dev/null",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=64
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    while read -r host; do
      pbs_tmrsh "$host" /opt/site/prepare
    done < "$PBS_NODEFILE"
    """,
    good="""
    #!/bin/bash
    #PBS -l select=2:ncpus=64
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    while read -r host; do
      pbs_tmrsh "$host" /opt/site/prepare < /dev/null
    done < "$PBS_NODEFILE"
    """,
)
def ssh_stdin(script: Script) -> Iterator[Hit]:
    for command in script.named("ssh", "srun", "mpirun", "mpiexec", "pbs_tmrsh"):
        loop = next((above for above in command.node.above() if above.type == "while_statement"), None)
        if loop is None or command.background or {"-n", "--input=none", "-nf", "-fn"} & set(command.literals):
            continue
        reads = any(node.text == "read" for node in loop.all("command_name"))
        own = command.node.parent
        if reads and not (own is not None and own.type == "redirected_statement" and "<" in own.text):
            yield Hit(
                command.line,
                f"{command.name} reads the rest of the list that the loop reads: only the first host "
                "gets its turn",
            )
