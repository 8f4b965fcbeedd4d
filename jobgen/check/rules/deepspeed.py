"""Rules about DeepSpeed's launcher and its runners."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.check.bash import exported
from jobgen.check.launches import Launch
from jobgen.check.rule import ERROR, WARNING, Rule
from jobgen.check.script import Hit, Script

# Prefixes of the variables that DeepSpeed's pdsh runner exports.
_FORWARDED = ("MLFLOW", "PYTHON", "MV2", "UCX", "NCCL", "ASCEND", "HCCL", "LD_LIBRARY")
_SILENT = (
    "PATH",
    "MASTER_",
    "PDSH_",
    "DS_ENV_FILE",
    "CUDA_VISIBLE_DEVICES",
    "SLURM_",
    "PBS_",
    "RANK",
    "WORLD_SIZE",
    "DLTS_",
)


def _runner(launch: Launch) -> str:
    return (launch.options.get("--launcher") or "pdsh").lower() if launch.has("--launcher") else "pdsh"


def _run_by(script: Script, *runners: str) -> Iterator[Launch]:
    """Yield the calls of deepspeed with one of these runners as ``--launcher``."""
    return (launch for launch in script.launched("deepspeed") if _runner(launch) in runners)


def missing_hostfile(script: Script) -> Iterator[Hit]:
    if not script.is_batch or not script.request.several:
        return
    for launch in script.launched("deepspeed"):
        if not launch.has("--hostfile", "-H", "--no-ssh", "--node-rank") and launch.alone:
            yield Hit(
                launch.line,
                "without a hostfile deepspeed uses this node only, with no more than a warning; the "
                f"job has {script.request.nodes}",
                'make a hostfile from the scheduler\'s list and give it: --hostfile "$hostfile"',
            )


def ignored_launcher(script: Script) -> Iterator[Hit]:
    for launch in script.launched("deepspeed"):
        if launch.has("--launcher") and not launch.has("--hostfile", "-H") and not script.request.several:
            yield Hit(
                launch.line,
                "without a hostfile deepspeed ignores --launcher in silence",
                "give it a hostfile, or leave --launcher out",
            )


def slurm_runner(script: Script) -> Iterator[Hit]:
    for launch in script.launched("deepspeed"):
        if _runner(launch) == "slurm":
            lost = [name for name in ("--module", "--master-addr", "--master-port") if launch.has(name)]
            yield Hit(
                launch.line,
                "--launcher slurm calls srun without cores, splits variables at commas and sets no "
                "rank variables" + (f"; it drops {', '.join(lost)}" if lost else ""),
                "start the ranks with srun, or deepspeed --no_ssh --node_rank once a node",
                ERROR if lost else None,
            )


def mpich_runner(script: Script) -> Iterator[Hit]:
    for launch in _run_by(script, "mpich"):
        yield Hit(
            launch.line,
            "--launcher mpich never passes the status of the training on: the job always succeeds",
            "start the ranks with mpirun, or look for a file that the training writes at its end",
        )


def openmpi_runner(script: Script) -> Iterator[Hit]:
    for launch in _run_by(script, "openmpi"):
        if not launch.has("--launcher-args"):
            yield Hit(
                launch.line,
                "--launcher openmpi forces eth0, UCX_TLS=tcp and no InfiniBand, unless told otherwise",
                'say what you want: --launcher_args "--mca btl_tcp_if_include ib0 -x UCX_TLS=..."',
            )


def filtered_runner(script: Script) -> Iterator[Hit]:
    for launch in _run_by(script, "openmpi", "mpich", "impi", "mvapich"):
        if launch.has("--include", "--exclude", "-i", "-e"):
            yield Hit(
                launch.line,
                f"--launcher {_runner(launch)} refuses --include and --exclude",
                "write a hostfile of the hosts and slots that are wanted",
            )


def filter_range(script: Script) -> Iterator[Hit]:
    for launch in script.launched("deepspeed"):
        for name in ("--include", "--exclude"):
            if re.search(r":[\d,]*\d-\d", launch.options.get(name) or ""):
                yield Hit(launch.line, f"{name} knows no ranges", "write the slots one by one: host:0,1,2,3")
    for launch in script.launched("srun"):
        if launch.has("--include"):
            yield Hit(launch.line, "--include is DeepSpeed's: srun does not know it", "use --nodelist")


def unforwarded(script: Script) -> Iterator[Hit]:
    if (
        not script.request.several
        or "deepspeed_env" in script.tree.text
        or any(name == "DS_ENV_FILE" for name, _, _ in script.assignments)
    ):
        return
    for launch in script.launched("deepspeed"):
        if (
            _runner(launch) != "pdsh"
            or not launch.has("--hostfile", "-H")
            or launch.has("--no-ssh")
            or launch.outer
        ):
            continue
        lost = [
            name
            for name, _, node in script.assignments
            if exported(node)
            and node.parent is not None
            and node.parent.type == "declaration_command"
            and not name.startswith((*_FORWARDED, *_SILENT))
            and node.start < launch.command.node.start
        ]
        if lost:
            names = ", ".join(dict.fromkeys(lost))
            yield Hit(
                launch.line,
                f"deepspeed hands few variables on to the other nodes; these stay here: {names}",
                'write them as NAME=VALUE into a file of the job and export DS_ENV_FILE="$file"',
            )
            return


def shared_ds_env(script: Script) -> Iterator[Hit]:
    for node in script.tree.all("file_redirect"):
        target = node.get("destination")
        text = target.text.strip("\"'") if target is not None else ""
        if text.endswith("/.deepspeed_env") and text.startswith(("~", "$HOME", "${HOME}")):
            yield Hit(
                node.line,
                "~/.deepspeed_env is the same file for every job: two at a time mix their variables",
                "write a file of the job's own and name it in DS_ENV_FILE",
            )
            return


def absent_hostfile(script: Script) -> Iterator[Hit]:
    """Yield a hit for a hostfile that does not exist and that the script mentions nowhere else."""
    if any(script.named("bash", "sh", "source", ".", "python", "python3")):
        return  # they may make it
    for launch in script.launched("deepspeed"):
        name = launch.options.get("--hostfile") or launch.options.get("-H")
        path = script.path(name) if name else None
        if name is None or path is None or os.path.exists(path):
            continue
        last = os.path.basename(name)
        if script.tree.text.count(last) == launch.command.node.text.count(last):
            yield Hit(
                launch.line,
                f"nothing makes {name}, and without it deepspeed uses this node only, with no more than "
                "a warning",
                "make it from the scheduler's list of hosts, in this script",
            )


def mpi_discovery(script: Script) -> Iterator[Hit]:
    """Yield a hit if mpirun starts Python directly, so that DeepSpeed has to get its rank from mpi4py."""
    exported = {name for name, _, _ in script.assignments}
    for launch in script.launched("mpirun"):
        words = " ".join(word.text for word in launch.program)
        python = bool(launch.program) and launch.program[0].text.rpartition("/")[2].startswith("python")
        if python and "--deepspeed" in words and "RANK" not in exported:
            yield Hit(
                launch.line,
                "without RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT DeepSpeed asks mpi4py, "
                "and all jobs meet at the port 29500",
                "have each rank export all five, from OMPI_COMM_WORLD_RANK and the like",
            )
            return


def env_lines(script: Script) -> Iterator[Hit]:
    for node in script.tree.all("redirected_statement"):
        body = next(node.all("heredoc_body"), None)
        target = " ".join(part.text for part in node.all("file_redirect"))
        if body is None or ("deepspeed_env" not in target and "DS_ENV_FILE" not in target):
            continue
        lines = body.text.rstrip("\n").split("\n")
        if any(not line.strip() or line.lstrip().startswith("#") for line in lines):
            yield Hit(
                body.line,
                "a blank line or a comment in DeepSpeed's environment file crashes the launcher",
                "write NAME=VALUE lines only",
            )


def colossalai_ranks(script: Script) -> Iterator[Hit]:
    for launch in script.launched("colossalai"):
        if not launch.has("--nproc-per-node", "--help"):
            yield Hit(
                launch.line,
                "colossalai run needs the number of ranks: it has no default",
                "add --nproc_per_node N",
            )


RULES = (
    Rule("absent-hostfile", WARNING, "A hostfile that nothing makes", absent_hostfile),
    Rule("mpi-discovery", WARNING, "DeepSpeed under mpirun without its variables", mpi_discovery),
    Rule("deepspeed-env-lines", ERROR, "Comments in DeepSpeed's environment file", env_lines),
    Rule("colossalai-ranks", ERROR, "colossalai run without a number of ranks", colossalai_ranks),
    Rule("no-hostfile", ERROR, "deepspeed on several nodes without a hostfile", missing_hostfile),
    Rule("ignored-launcher", WARNING, "--launcher without a hostfile", ignored_launcher),
    Rule("deepspeed-slurm", WARNING, "DeepSpeed's Slurm runner", slurm_runner),
    Rule("deepspeed-mpich", WARNING, "DeepSpeed's MPICH runner", mpich_runner),
    Rule("deepspeed-openmpi", WARNING, "DeepSpeed's Open MPI runner", openmpi_runner),
    Rule("deepspeed-filter", ERROR, "Filters with an MPI runner", filtered_runner),
    Rule("filter-range", ERROR, "A filter that is none", filter_range),
    Rule("unforwarded", WARNING, "Variables that stay on the first node", unforwarded),
    Rule("shared-deepspeed-env", WARNING, "One .deepspeed_env for all jobs", shared_ds_env),
)
