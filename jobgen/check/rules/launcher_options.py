"""Rules about launchers: on which nodes they start, and how often."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from jobgen.check.ranks.model import TRIFLES, RankGroup, code, is_work, kind_of, ranks
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.check.rules.conda import is_in_front_of_modules
from jobgen.check.rules.node_ranks import RENDEZVOUS, is_numbered
from jobgen.launch.launchers import MPI_FLAVOURS
from jobgen.launch.wrappers import remote_start
from jobgen.script.commands import Command, commands
from jobgen.script.launches import Launch
from jobgen.script.mpi_of_script import named_mpi
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, literal, parse


@rule(
    "first-node-only",
    ERROR,
    "A launcher on the first node only",
    """A batch script runs only on the first node of the job. torchrun and accelerate start ranks only on
    their own node: without srun, mpirun or ssh the other nodes stay idle, and the first one waits for
    them until the time limit. A step that has ended before, such as `srun hostname`, starts nothing there. (If it
    is started for one node this is only a warning.)""",
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
    good={
        "# jobgen: disable=repeated-count": "",
        'torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py': 'srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py',
    },
)
def first_node_only(script: Script) -> Iterator[Hit]:
    if not script.is_batch or not script.request.several:
        return
    yield from _without_hosts(script)
    yield from _on_this_host(script)
    for one in () if reaches_others(script) else ranks(script):
        launch = one.inner
        if launch is None or one.outer is not launch:
            continue
        by_hostfile = launch.has("--no-ssh")  # deepspeed counts its nodes
        if launch.row.line.reaches_nodes and not by_hostfile:
            continue
        if launch.command.background or not script.starts(launch) or depends_on_size(launch.command.node):
            continue
        count = None if by_hostfile else 1
        count = launch.number(*launch.row.line.nodes) if launch.has(*launch.row.line.nodes) else count
        if count == 1 and any(other.outer and other.outer.row.line.reaches_nodes for other in ranks(script)):
            continue  # another run takes all nodes
        own = f"ranks 0 to {one.each - 1}" if one.each and one.each > 1 else "the ranks of this node"
        waiting = f"{own} wait forever for those of the other {others(script)}, where nothing starts them"
        effect = "the other nodes stay idle" if count == 1 else waiting
        reason = f"a batch script runs {launch.title} on the first node only: {effect}"
        fix = f"start it with {script.dialect.once_a_node}"
        if count == 1:
            size = f"{launch.row.line.nodes[0]}={script.request.nodes or 'N'}"
            fix = f"request one node, or {fix}, with {size} and the address and port of the first node"
        elif launch.kind in RENDEZVOUS and not is_numbered(launch):
            fix = f"{fix}, and {RENDEZVOUS[launch.kind]}"
        yield Hit(launch.line, reason, fix, WARNING if count == 1 else None)
        return


_LOCAL_HOSTS = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?")


def _without_hosts(script: Script) -> Iterator[Hit]:
    """Yield the calls of horovodrun that name no host but the first one."""
    for command in script.named("horovodrun"):
        words = [script.constants.value(word) for word in command.words]
        given = [after for word, after in pairwise([*words, None]) if word in ("-H", "--hosts")]
        other = any(re.match(r"--?host(s=|-?file|-discovery)", word or "") or word is None for word in words)
        local = all(_LOCAL_HOSTS.fullmatch(one or "") for one in given)
        if local and not other:
            reason = f"horovodrun starts all ranks on the first node only, unless it gets the other hosts: {idle_others(script)}"
            fix = f"add --hostfile, or start the ranks with {script.dialect.scheduler.node_step or 'mpirun'} instead of horovodrun"
            yield Hit(command.line, reason, fix)


def _on_this_host(script: Script) -> Iterator[Hit]:
    """Yield an mpirun that gets no host but the first one."""
    for launch in script.launches:
        local = all(map(_LOCAL_HOSTS.fullmatch, launch.text("--host", "-host", "-H").split(",")))
        several = (launch.number(*launch.row.line.ranks) or 1) > 1
        if local and several and launch.row.of_mpi and launch.outer is None and script.only(launch):
            reason = f"{launch.title} starts all ranks on the first node: {idle_others(script)}"
            yield Hit(launch.line, reason, "leave --host out", WARNING)


def others(script: Script) -> str:
    count = (script.request.nodes or 2) - 1
    return f"{count} nodes" if count > 1 else "node"


def idle_others(script: Script) -> str:
    return f"the other {others(script)} stay{'s' if script.request.nodes == 2 else ''} idle"


@rule(
    "no-launcher",
    WARNING,
    "A program that nothing starts on the other nodes",
    """A batch script runs only once, on the first node, whatever number of tasks it requests: `srun`, `mpirun`
    or a launcher of the framework starts the ranks. A plain `python train.py` is one process; the other nodes
    are charged, and idle. (It is a note if the program may start processes itself, and an error if the Python file beside the script uses Lightning, which reads the
    number of tasks, and waits for them.)""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    python3 train.py
    """,
    good={"python3 train.py": "srun python3 train.py"},
)
def no_launcher(script: Script) -> Iterator[Hit]:
    request = script.request
    if not script.is_batch or reaches_others(script) or any(is_work(script, one) for one in script.launches):
        return
    alone = (one for one in ranks(script) if not one.chain)
    found = [one for one in alone if not one.command.node.under("command_substitution")]
    last = found[-1] if found else None  # what stands before it prepares
    if last is None or depends_on_size(last.command.node) or last.command.node.under("function_definition"):
        return
    tasks = request.ranks or (request.nodes or 1) * (request.ranks_per_node or 1)
    waits = "lightning" in last.program.frameworks and tasks > 1 and not script.is_pbs
    if (not request.several and not waits) or _starts_others(script, last):
        return
    waiting = f"as rank 0 it waits forever for the other {tasks - 1} tasks, which nothing starts"
    effect = waiting if waits else idle_others(script)
    # A training leaves the start of its ranks to others.
    named = re.search(r"train|tune|sft|fit", last.program.file, re.I)
    trains = last.program.source is not None or bool(last.program.frameworks) or named is not None
    step = script.dialect.scheduler.node_step or "mpirun"
    effect += "" if trains else ", unless it starts processes there itself"
    fix = f"start it with {step}, once for each rank, or request one node"
    level = ERROR if waits and last.program.source is not None else None if trains else NOTE
    yield Hit(last.line, f"this runs once, on the first node: {effect}", fix, level)


_DISTRIBUTES = re.compile(
    r"ray|dask|spark|parsl|flux|nextflow|snakemake|submit|cluster|launch|distribut|horovod|scoop|mpi|deephyper",
    re.I,
)
_OF_STARTER = re.compile("SMARTSIM_|RADICAL_|DEEPHYPER_|RAY_|DASK_|PARSL_")  # its variables


_STARTERS = ("subprocess", "submitit", "ray", "dask", "dask_mpi", "distributed", "parsl", "mpi4py")
_STARTS = re.compile(r"\b(srun|mpirun|mpiexec|ibrun|aprun|jsrun)\b")


def _starts_others(script: Script, one: RankGroup) -> bool:
    """Return whether a program may start processes on other nodes itself, or is no program of a training."""
    source, words = one.program.source, " ".join(word or "$" for word in one.program.words)
    if source is not None:
        return source.imports(*_STARTERS)
    texts = script.tree.all("string_content", "raw_string")
    distributes = any(map(_DISTRIBUTES.search, (words, *(command.name for command in script.commands))))
    distributes |= any(map(_OF_STARTER.match, script.values))
    return not one.program.file or distributes or any(_STARTS.search(node.text) for node in texts)


_REMOTE = (
    "ssh", "pdsh", "pbsdsh", "clush", "parallel", "pbs_tmrsh", "ray", "dask", "dask-scheduler", "blaunch",
    "flux",
)  # fmt: skip


def reaches_others(script: Script) -> bool:
    """Return whether something else may start processes on the other nodes: a remote shell that does more than
    prepare or report, a step that runs beside the rest of the script, the script itself, or a file that is not
    read."""
    if any(not _prepares(script, command) for command in script.named(*_REMOTE)):
        return True
    for launch in script.launches:
        if not launch.row.line.module_options and launch.outer is None:
            text = " ".join(word.text for word in launch.program)
            if launch.command.background or "$0" in text or "BASH_SOURCE" in text or not launch.program:
                return True
    return False


def _prepares(script: Script, command: Command) -> bool:
    """Return whether a command on other nodes only prepares or reports something, and has then ended."""
    texts = [script.constants.value(word) for word in command.words]
    at = remote_start(texts, 0)
    names = {one.name for one in commands(parse(" ".join(text or "?" for text in texts[at:]).encode()))}
    return at > 0 and bool(names) and names <= TRIFLES


def depends_on_size(node: Node) -> bool:
    """Return whether a condition around a command asks for the number of nodes or for the rank."""
    conditions = (above.get("condition") for above in node.above() if above.type == "if_statement")
    asks = re.compile(r"NODE|HOST|RANK|PROC|TASKS", re.I).search
    return any(one is not None and asks(one.text) for one in conditions)


@rule_once(
    "standalone-nodes",
    WARNING,
    "A training of its own on every node",
    """torchrun with `--standalone`, with `--nnodes=1`, or without `--nnodes`, and accelerate with `--num_machines=1`, know their own node only. Started on each node of a
    job it trains once a node: the ranks of different nodes never exchange gradients, and all of them write the
    same checkpoints.""",
    fix="give it --nnodes, --rdzv-backend=c10d, --rdzv-id and --rdzv-endpoint",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --standalone --nproc-per-node=4 train.py
    """,
    good={
        "srun torchrun --standalone --nproc-per-node=4 train.py": 'srun torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py'
    },
)
def standalone_nodes(script: Script) -> Iterator[Hit]:
    if "PET_" in script.tree.text or not script.in_job:
        return
    for one in ranks(script):
        launch, outer = one.inner, one.outer
        if launch is None or outer is None or outer is launch or (one.nodes or 1) < 2:
            continue
        words = " ".join(word.text for word in (*outer.whole, *launch.program))
        one_node = launch.number(*launch.row.line.nodes) == 1 and one.tasks == 1
        own = launch.row.once_a_node and (one_node or not launch.row.line.config_file) and not launch.unknown
        alone = launch.has("--standalone") or one_node or not launch.has(*launch.row.line.nodes, *_JOINS)
        own = own and alone
        if own and not re.search(r"NODEID|PROCID|NODENAME|RANK|hostname|ARGS|OPT", words):
            effect = "each starts a training of its own, which does not know the others"
            reason = f"{outer.title} starts {launch.title} on each of the {one.nodes} nodes, and {effect}"
            yield Hit(launch.line, reason, _JOINED.get(launch.kind, ""))


_JOINS = ("--rdzv-endpoint", "--hostfile", "-H", "--node-rank", "--no-ssh", "--host")
_JOINED = {
    "deepspeed": "start it once with a hostfile, or on each node with --no_ssh, --node_rank, --master_addr and a hostfile",
    "colossalai": "start it once, with --hostfile",
    "accelerate": "give it --num_machines, --machine_rank of each node and --main_process_ip, and the ranks of all nodes",
}


@rule_once(
    "identical-tasks",
    WARNING,
    "The same run in every task",
    """`srun` and `mpirun` start the program once for each task of the job. One that knows nothing of ranks does the
    same work in each, and all of them write the same files. The Python file beside the script is read, and only
    one that imports nothing unknown is reported, beside commands that copy, unpack or install files.""",
    fix="start one task, or let each take its part of the work",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 bad.py
    """,
    good={"srun python3 bad.py": "srun python3 good.py"},
    files={
        "bad.py": 'import torch\n\ntorch.save(torch.nn.Linear(8, 8), "model.pt")\n',
        "good.py": 'import os\nimport torch\n\nrank = os.environ["SLURM_PROCID"]\ntorch.save(torch.nn.Linear(8, 8), f"model{rank}.pt")\n',
    },
)
def identical_tasks(script: Script) -> Iterator[Hit]:
    for one in ranks(script):
        outer = one.outer
        if outer is None or not outer.row.line.reaches_nodes or outer.unknown:
            continue
        several = (one.tasks or 1) > 1
        effect = f"{one.tasks} times on each node, and all write the same files at the same time"
        first = _first(one.text) if one.text is not None and several else None
        if first is not None and _writes(first.name, first.literals):
            reason = f"{outer.title} starts {first.name} {first.literals[0]} {effect}"
            yield Hit(one.line, reason, "start it once, in the script")
        words = " ".join(word.text for word in outer.whole)
        if _OF_TASK.search(words):
            continue
        name = os.path.basename(one.program.words[0] or "") if one.program.words and one.text is None else ""
        if several and _writes(name, one.program.arguments[1:]):
            fix = "start it once on each node, or once in the script"
            if outer.row.by_scheduler:
                fix = f"write {script.dialect.once_a_node}"
            yield Hit(one.line, f"{outer.title} starts {name} {effect}", fix)
        if one.program.is_single and one.total and one.total > 1:
            effect = "nothing tells these runs apart: each does the same, and writes the same files"
            yield Hit(one.line, f"{outer.title} starts {one.program.file} {one.total} times, and {effect}")


_OF_TASK = re.compile(r"PROCID|LOCALID|NODEID|RANK|multi-prog|TASK_PID|\$\$")  # it differs in each task


def _first(text: Node) -> Command | None:
    """Return the command with which the code in a text begins, if it is the same in each task."""
    tree = code(text)
    first = next(commands(tree), None)
    begins = first is not None and tree.text.lstrip().startswith(first.node.text)
    return first if first is not None and begins and not _OF_TASK.search(first.node.text) else None


def _writes(name: str, arguments: Sequence[str]) -> bool:
    """Return whether a command writes files that its arguments name, the same in each process."""
    if name == "tar":
        extracts = re.compile(r"-[a-zA-Z]*x|--(extract|get)\b").match
        return any(map(extracts, ("-" + "".join(arguments[:1]), *arguments)))
    if name in ("pip", "pip3", "conda", "mamba", "git", "uv", "poetry", "pixi"):
        words = arguments[1:] if arguments[:1] == ("pip",) else arguments
        return bool(words) and words[0] in ("install", "create", "clone", "pull", "sync", "venv")
    return name in ("cp", "rsync", "unzip", "rclone", "wget", "conda-unpack")


@rule(
    "nested-tasks",
    ERROR,
    "Launchers inside each other",
    """torchrun, accelerate and deepspeed are started once on each node and start the ranks there. `srun`
    with a task for each GPU starts them once for each GPU, also with `--ntasks-per-node=1`: the number of tasks of the
    job comes first, unless the step has `--ntasks`, too (measured). `pbsdsh` starts them once for each line of `$PBS_NODEFILE`:
    `mpiprocs` (PBS Pro) or `ppn` (Torque) times on a node.""",
    fix="start one of them on each node",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py
    """,
    good={"#SBATCH --ntasks-per-node=4": "#SBATCH --ntasks-per-node=1"},
)
def nested_tasks(script: Script) -> Iterator[Hit]:
    for one in ranks(script):
        outer, launch = one.outer, one.inner
        if outer is None or launch is None or launch is outer or not launch.row.once_a_node or outer.unknown:
            continue
        named, hosts = outer.has("-n", "--ntasks", "--ntasks-per-node"), launch.has("--hostfile", "-H")
        tasks = one.tasks if named or not outer.row.by_scheduler else script.request.ranks_per_node
        if outer.row.line.reaches_nodes and tasks and tasks > 1 and _starts_several(launch):
            fix = f"start one process on each node: {outer.title} --map-by ppr:1:node --bind-to none"
            fix = f"write {script.dialect.once_a_node}" if outer.row.by_scheduler else fix
            yield _nested(launch, kind_of(script, outer), tasks, fix)
        elif launch.row.remote_shell and (one.nodes or 1) > 1 and hosts and not launch.has(*_OWN_NODE):
            starts = f"{outer.title} starts {launch.title} on each of the {one.nodes} nodes, and each starts the ranks of all nodes by its hostfile"
            yield Hit(launch.line, starts, f"leave {outer.title} out, or add --no_ssh and --node_rank")
    lines = script.request.lines_per_node or 1
    for launch in script.launches if lines > 1 else ():
        once = any(re.search(r"\bpbsdsh(\s+-[vos])*\s+-[unhc]", text) for text in _starting(script, launch))
        if launch.remote == "pbsdsh" and launch.row.once_a_node and _starts_several(launch) and not once:
            fix = "start one on each node: pbsdsh -u on Torque, mpiprocs=1 on PBS Pro"
            yield _nested(launch, "pbsdsh", lines, fix)


_OWN_NODE = ("--no-ssh", "--node-rank", "--include", "-i")


def _starting(script: Script, launch: Launch) -> Iterator[str]:
    """Yield the text of the command of a launch, and those of the commands that start its script."""
    yield launch.command.node.text
    starter = script.starter
    while starter is not None:
        yield starter.call.command.node.text
        starter = starter.script.starter


def _starts_several(launch: Launch) -> bool:
    each = launch.number(*launch.row.line.local_ranks)
    return each is None or each > 1


def _nested(launch: Launch, outer: str, tasks: int, fix: str) -> Hit:
    starts = f"{outer} starts {tasks} tasks on each node, and in each of them {launch.title} starts its ranks"
    return Hit(launch.line, starts, fix)


_OWN_OPTIONS = {*MPI_FLAVOURS["openmpi"].marks, *MPI_FLAVOURS["mpich"].marks}


@rule(
    "mpi-options",
    WARNING,
    "An option of another MPI",
    """The mpirun of Open MPI has `-x`, `--mca` and `-npernode`, that of MPICH and Intel MPI `-genv`, `-ppn` and `-f`.
    Each refuses those of the other and starts nothing. The module that the script loads last shows whose mpirun it
    is (Open MPI 5.0, MPICH 5.0 and Intel MPI 2021.18 were tried). It is a note behind `conda activate`: the environment
    may have an mpirun of its own.""",
    fix="write the option of the MPI of the module, or load the other module",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=4
    #PBS -l place=scatter
    #PBS -l walltime=01:00:00
    set -euo pipefail
    cd "$PBS_O_WORKDIR"
    module load intel-oneapi-mpi/2021
    export OMP_NUM_THREADS=8
    mpirun -x OMP_NUM_THREADS ./a.out
    """,
    good={"mpirun -x OMP_NUM_THREADS ./a.out": "mpirun -genv OMP_NUM_THREADS 8 ./a.out"},
)
def mpi_options(script: Script) -> Iterator[Hit]:
    for launch in script.launches:
        plain = {"mpirun", "mpiexec"} & {os.path.basename(literal(word) or "") for word in launch.whole}
        if launch.remote or not plain or launch.options.keys().isdisjoint(_OWN_OPTIONS):
            continue
        own = named_mpi(script, at=launch.command.node.start)
        other = {"openmpi": "mpich", "mpich": "openmpi", "intel": "openmpi"}.get(own or "")
        found = [name for name in launch.options if other and name in MPI_FLAVOURS[other].marks]
        if own and found:
            title = MPI_FLAVOURS[own].title
            why = f"{found[0]} is no option of {title}, whose module is loaded: its mpirun refuses it"
            conda = is_in_front_of_modules(script, launch.command.node.start)
            why += ", unless that of the environment comes first" if conda else ""
            yield Hit(launch.line, why, place=launch.place(found[0]), level=NOTE if conda else None)


@rule_once(
    "pdsh-rsh",
    NOTE,
    "pdsh by rsh",
    """pdsh uses rsh unless it was built for another command, or `PDSH_RCMD_TYPE` names one. Where no rsh
    runs it fails on every host, **with status 0**.""",
    message="pdsh may use rsh, unless PDSH_RCMD_TYPE names another command: without rsh it fails, with status 0",
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
