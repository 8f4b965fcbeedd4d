"""Rules about containers: the files of the node that they have."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.ranks.containers import Container, containers
from jobgen.check.ranks.model import RankGroup, forms, ranks
from jobgen.check.rule import WARNING, rule_once
from jobgen.check.rules.launcher_options import idle_others
from jobgen.launch.containers import RUNTIMES
from jobgen.launch.wrappers import wrappers
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script

# File systems of clusters, which no image has.
_SHARED = re.compile(
    r"/(home|scratch|pscratch|lustre|gpfs|work|project|projects|users|global|beegfs|nfs|cfs|ceph|flash|leonardo\w*)/"
    r"|~/|\$\{?(HOME|SCRATCH|PSCRATCH|WORK|PROJECT|PWD|SLURM_SUBMIT_DIR|PBS_O_WORKDIR)\}?/"
)
_HERE = re.compile(r"^(\$\{?(PWD|SLURM_SUBMIT_DIR|PBS_O_WORKDIR)\}?|\$\(pwd\)|`pwd`)(?=/|$)")
_BINDS = re.compile(r"slurm|munge|/usr/bin/srun|-host|hostfile|machinefile|plm|ssh|launcher|\s-H\s")
_OF_SITE = re.compile(r"--(scratch|home|global|cfs|volumes-from|mount-\w+|container-mount-home)\b")


@rule_once(
    "container-files",
    WARNING,
    "A program that the container does not have",
    """docker and podman mount no directory of the node unless an option names it, and so does pyxis
    (`srun --container-image`): a program on a file system of the cluster is not there. Python ends with "can't open file".
    (Files that may be in the image are not reported.)""",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun podman-hpc run --rm --gpu pytorch:2.5 torchrun --standalone --nproc-per-node=4 /scratch/me/train.py
    """,
    good={
        "srun podman-hpc run --rm --gpu pytorch:2.5 torchrun --standalone --nproc-per-node=4 /scratch/me/train.py": "srun podman-hpc run --rm --gpu -v /scratch/me:/scratch/me pytorch:2.5 torchrun --standalone --nproc-per-node=4 /scratch/me/train.py"
    },
)
def container_files(script: Script) -> Iterator[Hit]:
    for one in ranks(script):
        file = _file(script, one)
        for container in (*_of_step(one), *containers(script, one)) if file else ():
            if not container.is_known or not container.is_new or container.passes_files:
                continue
            if any(_OF_SITE.match(word or "") for word in container.words):
                continue
            mounts = container.mounts
            unknown = any("$" in mount and not _HERE.match(mount) for mount in mounts)
            if not unknown and not any(_is_below(file, mount) for mount in mounts):
                only = f"only {', '.join(mounts)}" if mounts else "no directory"
                folder, option = os.path.dirname(file), "--container-mounts=" if container.of_step else "-v "
                reason = f"{container.name} mounts {only}: its container has no {file}"
                yield Hit(one.line, reason, f"add {option}{folder}:{folder}")


def _file(script: Script, one: RankGroup) -> str:
    """Return the file of a program that is certainly on a file system of the cluster; empty if it may be in
    an image."""
    nodes = one.inner.program if one.inner is not None else one.command.words
    texts = [script.constants.value(word) or word.unquoted for word in nodes]
    file = one.program.file or next((text for text in texts if re.search(r"\.(py|sh)$", text)), "")
    return file if _SHARED.match(file) else ""


def _of_step(one: RankGroup) -> Iterator[Container]:
    """Yield the container that srun itself starts, through pyxis."""
    outer = one.outer
    if outer is not None and outer.has(RUNTIMES["pyxis"].image_option) and not outer.unknown:
        mounts = outer.options.get("--container-mounts")
        if mounts is None and outer.has("--container-mounts"):
            return
        words = [word for mount in (mounts or "").split(",") if mount for word in ("-v", mount)]
        home = ["--container-mount-home"] * outer.has("--container-mount-home")
        yield Container(outer.kind, (*words, *home), of_step=True)


_OF_SYSTEM = re.compile(r"/(etc|opt|usr|tmp|var|dev|proc|sys|run|bin|lib\w*|data\w*|local\w*)(/|$)")


def _is_below(file: str, mount: str) -> bool:
    file, mount = (_HERE.sub(".", one).rstrip("/") for one in (file, mount))
    if file.startswith(".") and mount.startswith("/") and not _OF_SYSTEM.match(mount):
        return True  # the directory of the submission may be below it
    return file == mount or file.startswith(mount + "/") or mount in ("", "/")


@rule_once(
    "launcher-in-container",
    WARNING,
    "A launcher inside a container",
    """The launcher that is called in a container is that of the image. Its mpirun finds neither `srun` nor ssh there, and
    starts all ranks on the first node, or none; `srun` is seldom in an image at all. Outside, the launcher starts a
    container for each rank: `srun apptainer exec IMAGE PROGRAM`.""",
    fix="call the launcher outside: LAUNCHER apptainer exec IMAGE PROGRAM",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    apptainer exec solver.sif mpirun -np "$SLURM_NTASKS" solver
    """,
    good={
        'apptainer exec solver.sif mpirun -np "$SLURM_NTASKS" solver': "srun --mpi=pmix apptainer exec solver.sif solver"
    },
)
def launcher_in_container(script: Script) -> Iterator[Hit]:
    if not script.request.several or not script.is_batch:
        return
    for launch in script.launches:
        if launch.outer is not None or launch.remote or not (launch.row.of_mpi or launch.row.by_scheduler):
            continue
        words = forms(script, launch.whole)
        around = [one for one, start, _ in wrappers(words) if one.container]
        if around and not _BINDS.search(launch.command.node.text):
            where = f"{launch.title} of the image starts in the container on the first node"
            yield Hit(launch.line, f"{where}, and reaches no other one: {idle_others(script)}, or it fails")


@rule_once(
    "container-shm",
    WARNING,
    "Little shared memory in a container",
    """docker and podman give a container 64 MB in `/dev/shm`, whatever the node has. The processes of a data loader pass
    their batches through it, and NCCL the data of the ranks of a node: they end with "Bus error", or with "No space
    left on device".""",
    fix="add --ipc=host, or --shm-size=32g",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    docker run --rm --gpus all -v "$PWD:/work" -w /work pytorch:2.5 torchrun --standalone --nproc-per-node=4 train.py
    """,
    good={
        'docker run --rm --gpus all -v "$PWD:/work" -w /work pytorch:2.5 torchrun --standalone --nproc-per-node=4 train.py': 'docker run --rm --gpus all --ipc=host -v "$PWD:/work" -w /work pytorch:2.5 torchrun --standalone --nproc-per-node=4 train.py'
    },
)
def container_shm(script: Script) -> Iterator[Hit]:
    for one in ranks(script):
        several = one.sets_ranks and (one.each or 0) > 1
        if not (several or (one.program.workers or 0) > 0):
            continue
        for container in containers(script, one):
            given = container.values("--ipc", "--shm-size") or "/dev/shm" in container.mounts
            if container.name in _OWN_SHM and container.is_known and container.is_new and not given:
                use = f"the {one.each} ranks of a node" if several else f"{one.program.workers} data loaders"
                yield Hit(one.line, f"{container.name} gives the container 64 MB of shared memory for {use}")


_OWN_SHM = ("docker", "podman")


@rule_once(
    "container-network",
    WARNING,
    "A container that other nodes do not reach",
    """docker and podman give a container a network of its own. The ranks in it connect to other nodes, but no other node
    reaches their ports: a launcher on several nodes waits for the others until it times out.""",
    fix="add --network=host",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    HEAD=$(scontrol show hostnames | head -n 1)
    srun docker run --rm --gpus all --ipc=host -v "$PWD:/work" -w /work pytorch:2.5 torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint="$HEAD:$((20000 + SLURM_JOB_ID % 10000))" train.py
    """,
    good={
        'srun docker run --rm --gpus all --ipc=host -v "$PWD:/work" -w /work pytorch:2.5 torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint="$HEAD:$((20000 + SLURM_JOB_ID % 10000))" train.py': 'srun docker run --rm --gpus all --ipc=host --network=host -v "$PWD:/work" -w /work pytorch:2.5 torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint="$HEAD:$((20000 + SLURM_JOB_ID % 10000))" train.py'
    },
)
def container_network(script: Script) -> Iterator[Hit]:
    for one in ranks(script):
        names = one.inner.row.line.nodes if one.inner is not None and one.sets_ranks else ()
        several = one.inner is not None and any(_is_several(script, one.inner, name) for name in names)
        for container in containers(script, one) if several else ():
            open_ = container.values("--network", "--net", "-p", "--publish", "-P", "--publish-all")
            if container.name in _OWN_NETWORK and container.is_known and container.is_new and not open_:
                reason = f"{container.name} gives the container a network of its own: other nodes do not reach its ranks"
                yield Hit(one.line, reason)


def _is_several(script: Script, launch: Launch, option: str) -> bool:
    """Return whether an option of a launcher has a number of nodes above one, also that of the job by its variable."""
    count = launch.number(option)
    return count > 1 if count is not None else launch.has(option) and bool(script.request.several)


_OWN_NETWORK = ("docker", "podman")  # podman-hpc has that of its site
