"""Rules about the environment of the ranks: variables that never reach them, and threads, cores and caches."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Set

from jobgen.check.ranks.environment import RankEnvironment
from jobgen.check.ranks.model import (
    RankGroup,
    code,
    cores_of_option,
    cores_of_script,
    file_of_tasks,
    forms,
    is_work,
    ranks,
    trees_of_tasks,
)
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.errors import counted
from jobgen.launch.launchers import DEFAULT_MPI
from jobgen.launch.wrappers import wrappers
from jobgen.script import code_files
from jobgen.script.commands import Command, commands
from jobgen.script.mpi_of_script import recognized_mpi
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, assignments, expansions, is_plain, parse
from jobgen.values.parsers import number

# Variables that only libraries read, from the environment.
OF_LIBRARIES = re.compile(
    r"(NCCL|TORCH_NCCL|GLOO|UCX|FI|HCCL|OMPI_MCA|I_MPI|MPICH|KMP|HF|TOKENIZERS|TORCHINDUCTOR|TRITON)_[A-Z]\w*"
    r"|WANDB_(MODE|PROJECT|ENTITY|NAME|DIR|API_KEY|RUN_ID|RESUME|RUN_GROUP|DISABLED|CACHE_DIR|TAGS|NOTES)"
    r"|OMP_NUM_THREADS|MKL_NUM_THREADS|OMP_PROC_BIND|OMP_PLACES|CUDA_LAUNCH_BLOCKING|PYTHONUNBUFFERED|TF_CPP_MIN_LOG_LEVEL"
    r"|PYTORCH_CUDA_ALLOC_CONF|TORCH_DISTRIBUTED_DEBUG|CUDA_DEVICE_ORDER|TORCH_HOME|TRANSFORMERS_(CACHE|OFFLINE)"
)


@rule(
    "unexported-variable",
    WARNING,
    "A variable that no rank gets",
    """A variable that is only assigned is one of the shell: programs and ranks get those that `export` names.
    Without `MASTER_ADDR` and `MASTER_PORT` `init_process_group` fails in every rank, and a setting of NCCL or
    OpenMP has no effect. The code of `bash -c '...'`, and a script that a launcher starts, are programs, too. (It is an
    error if the Python file beside the script reads the variable, and a note if the variable changes only what is printed.)""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(scontrol show hostnames | awk 'NR == 1')
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    MASTER_ADDR=$(scontrol show hostnames | awk 'NR == 1')
    export MASTER_ADDR
    srun python3 train.py
    """,
)
def unexported(script: Script) -> Iterator[Hit]:
    yield from _of_code(script)
    environment = RankEnvironment.of(script)
    exported = {*script.dialect.job_variables, *["OMP_NUM_THREADS"] * script.dialect.sets_threads}
    names = [name for name in environment.assignments if name not in exported]  # before by the scheduler
    if not script.in_job or environment.is_open or not names:
        return
    of_libraries = {name for name in names if OF_LIBRARIES.fullmatch(name)}
    seen: set[str] = set()
    for one in ranks(script):
        source = one.program.source
        proof = source.needs if source is not None else frozenset()
        lost = (proof | needs(one)).intersection(names) | of_libraries
        for name in sorted(lost - seen):
            node = environment.assigned_only(name, one.start)
            if node is None or (name not in proof and name in environment.used):
                continue
            seen.add(name)
            of_libraries.discard(name)
            who = f"{one.program.file} reads it" if name in proof else "only programs read it"
            reason = f"{name} is assigned, but not exported: {one.name} does not get it, and {who}"
            mild = NOTE if _OF_OUTPUT.fullmatch(name) else None
            yield Hit.at(node, reason, f"write export {name}=...", ERROR if name in proof else mild)


_OF_OUTPUT = re.compile(r"PYTHONUNBUFFERED|PYTHONFAULTHANDLER|\w*_(?:DEBUG|LOG_LEVEL|VERBOSE)")


def _of_code(script: Script) -> Iterator[Hit]:
    """Yield the variables that the code of other shells reads, and that the script assigns without export."""
    environment = RankEnvironment.of(script)
    for one in ranks(script):
        text, outer = one.text, one.outer
        if text is not None and text.type == "raw_string" and outer is not None and not outer.remote:
            reader = f"the code that {outer.title} starts"
            whole = text.around("command")
            before = whole.text.replace(text.text, "") if whole is not None else ""
            given = {one[0] or one[1] for one in re.findall(r"(\w+)=|-x\s+(\w+)", before)}
            yield from _lost(environment, text.start, code(text), text, reader, given)
    files = code_files.written(script.commands, script.constants, literal=True)
    for launch in script.launches if files else ():
        word = file_of_tasks(script, launch) if launch.outer is None and not launch.remote else None
        file = files.get(code_files.name(word, script.constants)) if word is not None else None
        if word is not None and file is not None:
            tree, start = parse(file[0].encode(), file[1]), launch.command.node.start
            yield from _lost(environment, start, tree, None, f"{word.text}, which {launch.title} starts")
    if script.starter is not None and not script.starter.call.remote:
        above, call = script.starter
        reader = f"this script, which {above.name or 'another one'} starts"
        yield from _lost(RankEnvironment.of(above), call.file.start, script.tree, None, reader)


def _lost(
    environment: RankEnvironment,
    before: int,
    tree: Node,
    place: Node | None,
    reader: str,
    given: Set[str] = frozenset(),
) -> Iterator[Hit]:
    """Yield the variables that a tree reads without a default, and that nothing exports to it.

    ``given`` are those that its command sets.
    """
    if any(one.name in ("source", ".", "eval") for one in commands(tree)):
        return
    known = set_in(tree.text) | given
    for name, node in expansions(tree):
        assignment = environment.assigned_only(name, before) if is_plain(node) and name not in known else None
        if assignment is not None:
            known.add(name)
            reason = (
                f"${name} is empty in {reader}: it is assigned in line {assignment.line}, but not exported"
            )
            yield Hit.at(place or node, reason, f"write export {name}=...")


def set_in(text: str) -> set[str]:
    """Return the names of the variables that the code of a shell sets."""
    found = re.findall(r"(?<![\w$])([A-Za-z_]\w*)=|\b(?:for|read|local|declare)\s+(?:-\w+\s+)*(\w+)", text)
    return {name for names in found for name in names}


def needs(one: RankGroup) -> frozenset[str]:
    """Return the variables by which ranks find each other that have no launcher to set them; Lightning and
    Horovod find them themselves."""
    own_way, source = one.program.frameworks & {"lightning", "horovod"}, one.program.source
    if not one.chain or one.sets_ranks or one.total == 1 or own_way:
        return frozenset()
    reads_all = source is not None and "torch" in one.program.frameworks and "world_size=" not in source.text
    names = {"MASTER_ADDR", "MASTER_PORT", *({"RANK", "WORLD_SIZE"} if reads_all else ())}
    return frozenset(names - (source.sets if source is not None else frozenset()))


@rule(
    "export-none",
    WARNING,
    "Tasks of srun without the environment of the script",
    """A directive `--export` other than `ALL` also sets `SLURM_EXPORT_ENV` in the job, which `srun` reads: its
    tasks get the variables of Slurm, and those that the option names, but none that the script exports, and no
    loaded module.""",
    fix="write export SLURM_EXPORT_ENV=ALL in the script, or srun --export=ALL",
    bad="""
    #!/bin/bash
    #SBATCH --export=NONE
    #SBATCH --ntasks=4
    #SBATCH --time=01:00:00
    set -eo pipefail
    module load pytorch
    srun python3 train.py
    """,
    good="""
    #!/bin/bash
    #SBATCH --export=NONE
    #SBATCH --ntasks=4
    #SBATCH --time=01:00:00
    set -eo pipefail
    export SLURM_EXPORT_ENV=ALL
    module load pytorch
    srun python3 train.py
    """,
    schedulers=("slurm",),
)
def export_none(script: Script) -> Iterator[Hit]:
    environment, option = RankEnvironment.of(script), script.heeded.get("--export")
    for launch in script.launched("srun") if option is not None else ():
        passed = None if launch.has("--export") or launch.outer is not None else environment.passed(launch)
        if passed is None or option is None or not is_work(script, launch):
            continue
        start = launch.command.node.start
        lost = [name for at, name in environment.changes if at < start and name not in passed]
        if lost:
            names = f"{', '.join(lost[:3])}{' and so on' if len(lost) > 3 else ''}"
            reason = (
                f"--export={option.value} in line {option.line} holds for srun, too: its tasks get nothing of"
            )
            yield Hit(launch.line, f"{reason} {names}")
        return


@rule_once(
    "export-names",
    WARNING,
    "srun --export without ALL",
    """`srun --export=NAME` passes the named variables, and those of Slurm, and nothing else: `PATH`,
    `LD_LIBRARY_PATH` and all that modules set are missing in the tasks. `--export=NONE` passes none (it is reported below a
    command that loads a module or an environment). `--export=ALL,NAME=VALUE` adds to the
    environment.""",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --export=MASTER_PORT=20000 python3 train.py
    """,
    good={
        "srun --export=MASTER_PORT=20000 python3 train.py": "srun --export=ALL,MASTER_PORT=20000 python3 train.py"
    },
    schedulers=("slurm",),
)
def export_names(script: Script) -> Iterator[Hit]:
    environment = RankEnvironment.of(script)
    for launch in script.launched("srun"):
        passed = environment.passed(launch) if launch.has("--export") else None
        if passed is None or {"PATH", "LD_LIBRARY_PATH"} & passed or not is_work(script, launch):
            continue
        loads = any(" " in name for at, name in environment.changes if at < launch.command.node.start)
        own, fix = (
            "the variables in --export and those",
            f"write --export=ALL,{environment.export_of(launch)}",
        )
        if not passed:  # see unpassed-variable for the variables that the script exports
            own, fix = "the variables", "write --export=ALL"
        if passed or loads:
            reason = f"the tasks get {own} of Slurm only: PATH, LD_LIBRARY_PATH and all that modules set are missing"
            yield Hit(launch.line, reason, fix)


@rule_once(
    "too-many-threads",
    WARNING,
    "More threads than cores",
    """Each rank starts `OMP_NUM_THREADS` threads. With the cores of the whole node in it, and several ranks on
    the node, the threads wait for each other, and data preparation is many times slower. PBS Pro sets it to the
    `ompthreads` of the chunk, and without these to its `ncpus`, all cores of all ranks (a note, as are fewer than four threads for a core, and LAMMPS without `-sf omp`).""",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --cpus-per-task=32
    #SBATCH --time=01:00:00
    set -euo pipefail
    export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
    torchrun --standalone --nproc-per-node=4 train.py
    """,
    good={
        "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK": "export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 4))"
    },
)
def too_many_threads(script: Script) -> Iterator[Hit]:
    environment = RankEnvironment.of(script)
    if not script.request.cpus_per_rank:
        return
    of_chunk = script.dialect.sets_threads and "OMP_NUM_THREADS" not in script.tree.text
    chunk = script.request.chunks[0] if of_chunk and len(script.request.chunks) == 1 else {}
    for one in ranks(script):
        threads, name = _omp_threads(script, environment, one), "OMP_NUM_THREADS"
        by_ssh = any(launch.remote for launch in one.chain)
        of_pbs = threads is None and not by_ssh and (one.program.file or "ompthreads" in chunk)
        threads = threads or 0
        if of_pbs:
            threads = number(chunk.get("ompthreads") or chunk.get("ncpus")) or 0
            name = f"OMP_NUM_THREADS, which {script.dialect.title} sets"
        if (own := one.program.number("ntomp")) is not None:
            threads, name, of_pbs = own, "-ntomp", False
        trains = one.sets_ranks or one.program.file
        if not one.cores or not one.each or one.each < 2 or (not trains and one.outer is None):
            continue
        # Other programs than those of Python may use both threads of a core.
        if threads >= 2 * one.cores + (0 if trains else 1):
            reason = f"{one.each} ranks on a node start {threads} threads each ({name}), and each has {counted(one.cores, 'core')}"
            fix = f"export OMP_NUM_THREADS={one.cores}" if name != "-ntomp" else f"write -ntomp {one.cores}"
            mild = (
                threads < 4 * one.cores or (of_pbs and "ompthreads" not in chunk) or _is_serial(script, one)
            )
            yield Hit(one.line, reason, fix, NOTE if mild else None)


def _is_serial(script: Script, one: RankGroup) -> bool:
    """Return whether a program is LAMMPS without its styles for threads, which the input may choose."""
    name = os.path.basename(next(iter(one.program.words), None) or "")
    return re.match(r"lmp|lammps", name) is not None and "omp " not in script.tree.text


def _omp_threads(script: Script, environment: RankEnvironment, one: RankGroup) -> int | None:
    """Return the OMP_NUM_THREADS of a program, 0 if it is unknown; None if nothing sets it: the code of its task,
    ``--export`` or the script."""
    set_in = (row for tree in trees_of_tasks(script, one) for row in assignments(tree))
    own = [value for name, value, _ in set_in if name == "OMP_NUM_THREADS"]
    option = one.outer.text("--export") if one.outer is not None and one.is_step else ""
    if own or "OMP_NUM_THREADS=" not in option:
        value = own[0] if own else environment.in_effect("OMP_NUM_THREADS", one.start)
        return None if value is None else _threads(script, value)
    passed = re.search(r"\bOMP_NUM_THREADS=(\d+)(?![\w$])", option)
    return int(passed[1]) if passed else 0


@rule_once(
    "program-threads",
    WARNING,
    "A program with more threads than the cores of the request",
    """The number of threads or processes in the command is at least twice that of the cores that the directives
    request. Slurm, and PBS with cgroups, keep the program to its cores: the threads wait for each other.
    Elsewhere they take the cores of other jobs, and PBS may end the job for it.""",
    bad="""
    #!/bin/bash
    #SBATCH --cpus-per-task=2
    #SBATCH --time=01:00:00
    set -euo pipefail
    python3 fit.py --n_jobs 16
    """,
    good={
        "#SBATCH --cpus-per-task=2": "#SBATCH --cpus-per-task=16",
        "python3 fit.py --n_jobs 16": 'python3 fit.py --n_jobs "$SLURM_CPUS_PER_TASK"',
    },
)
def program_threads(script: Script) -> Iterator[Hit]:
    request = script.request
    # With GPUs the site may give more cores for each.
    known = request.cpus_per_rank or (request.ranks and not request.gpus_per_node and not request.gpus)
    if not script.in_job or not known:
        return
    groups = {one.start: one for one in ranks(script)}
    for command in script.commands:
        group = groups.get(command.node.start)
        if command.program in _MANAGERS or command.name.startswith("-"):
            continue
        cores = group.cores if group else cores_of_script(script)
        for option, threads, word in _threads_of(script, command):
            of_launcher = group is not None and group.sets_ranks and "proc" in option  # see ranks-mismatch
            if of_launcher or ("workers" in option and not request.cpus_per_rank):
                continue  # loader-cores
            if cores and threads >= 2 * cores and threads > cores + 1:
                reason = f"{option} starts {threads}, but the directives request {counted(cores, 'core')}"
                yield Hit.at(word, reason, f"write {cores}, or request {threads} cores")


# Programs that submit jobs of their own, or start ranks on many nodes.
_MANAGERS = ("snakemake", "nextflow", "parallel", "cromwell", "dask-mpi", "ray", "make", "sbatch", "qsub")
_THREADS = re.compile(
    r"--?((?:n|num)?[-_]?(?:threads|workers)|n[-_]?jobs|num[-_]proc(?:esses)?)(?:=(\d{1,4}))?"
)
# One of several jobs.
_INDEX = re.compile(r"--?(thread|worker|job|proc\w*|task)[-_]?(id|idx|index|rank|offset)\b")


def _threads_of(script: Script, command: Command) -> Iterator[tuple[str, int, Node]]:
    """Yield the options of a command that are plainly a number of threads, the numbers, and their words."""
    nodes = [one for word in command.words for one in script.words_of(word, command)]
    words = [script.constants.value(word) for word in nodes]
    if any(_INDEX.match(word or "") for word in words):
        return
    for at, word in enumerate(words):
        match = _THREADS.fullmatch(word or "")
        if match is not None and (value := match[2] or (*words, None)[at + 1]) is not None:
            place, threads = nodes[at if match[2] else at + 1], number(value, 4)
            own = re.search(r"CPUS|NCPUS|NTASKS|OMP_NUM|nproc", place.text)
            if threads is not None and not own:
                yield f"--{match[1]}" if match[0].startswith("--") else f"-{match[1]}", threads, place


@rule_once(
    "loader-cores",
    NOTE,
    "Data loaders with one core",
    """Without `--cpus-per-task`, or with 1, a task of Slurm has one core, unless the site gives whole nodes or more for each
    GPU: the program and all processes of its data loader share it, and the GPU waits for data.""",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py --num_workers 8
    """,
    good="""
    #!/bin/bash
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --cpus-per-task=9
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun --cpus-per-task=9 python3 train.py --num_workers 8
    """,
    schedulers=("slurm",),
)
def loader_cores(script: Script) -> Iterator[Hit]:
    given = script.request.cpus_per_rank
    if (given or 1) > 1 or not script.in_job:
        return
    for one in ranks(script):
        workers = one.program.workers
        if given:  # see program-threads for options
            workers = one.program.source.workers if one.program.source is not None else None
        of_task = one.each // one.tasks if one.each and one.tasks else 1  # ranks
        if workers and workers > 1 and one.cores in (0, 1):
            has = "the directives request one core for each task"
            has = has if given else "no option requests cores: each task has one, unless the site gives more"
            reason = f"{one.program.file or one.name} has {workers} processes for its data, but {has}"
            yield Hit(one.line, reason, f"write --cpus-per-task={(workers + 1) * of_task}")


@rule(
    "launcher-binding",
    WARNING,
    "A launcher that is bound to a part of the cores",
    """Unless an option says otherwise, Open MPI binds each process to one core if it starts one or two of them, and to a
    socket or a NUMA domain if it starts more. torchrun and the like start their ranks, and the ranks their threads
    and data loaders, on the cores of the process that mpirun has started: all of them share these. `taskset` and `numactl` in front of
    them do the same, and `srun --cpu-bind=map_cpu:...` binds each task to one core.""",
    fix="add --bind-to none",
    bad="""
    #!/bin/bash
    #PBS -l select=2:ncpus=32:mpiprocs=1:ngpus=4 -l place=scatter
    #PBS -l walltime=01:00:00
    # jobgen: disable=repeated-count
    set -euo pipefail
    module load openmpi
    export OMP_NUM_THREADS=8
    first=$(head -n 1 "$PBS_NODEFILE")
    mpirun -np 2 --map-by ppr:1:node torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$first:0" /opt/site/train.py
    """,
    good={
        'mpirun -np 2 --map-by ppr:1:node torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$first:0" /opt/site/train.py': 'mpirun -np 2 --map-by ppr:1:node --bind-to none torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$first:0" /opt/site/train.py'
    },
)
def launcher_binding(script: Script) -> Iterator[Hit]:
    if any(_BINDINGS.match(name) for name, _, _ in script.assignments):
        return
    environment = RankEnvironment.of(script)
    for one in ranks(script):
        outer = one.outer
        yield from _of_wrapper(script, one)
        yield from _of_map(one)
        if outer is None or not outer.row.of_mpi or outer.unknown or cores_of_option(outer):
            continue
        total = outer.number(*outer.row.line.ranks)
        node_launcher = one.inner is not outer and one.sets_ranks
        if not total or (total > 2 and not node_launcher):
            continue
        words = {script.constants.value(word) or word.text for word in outer.words}
        to_cores = _TO_CORES.fullmatch(outer.text("--map-by", "-map-by") or "slot")
        if not to_cores or any(map(_BINDS.search, words)) or recognized_mpi(script, words) != DEFAULT_MPI:
            continue
        value = environment.in_effect("OMP_NUM_THREADS", one.start)
        threads = _threads(script, value)
        several = f"{threads} threads" * (threads > 1 and _uses_threads(one))
        several = several if one.inner is outer else f"{one.name} and its ranks"
        if several and (cores_of_script(script) or 2) > total:
            part = "one core" if total < 3 else "a part of the cores of its node"
            yield Hit(one.line, f"{outer.title} binds each of its processes to {part}, which {several} share")
            return


def _uses_threads(one: RankGroup) -> bool:
    """Return whether a program may use the threads of OpenMP: of those of GROMACS only mdrun does."""
    words = one.program.arguments
    return not any(os.path.basename(word).startswith("gmx") for word in words[:1]) or "mdrun" in words


def _of_wrapper(script: Script, one: RankGroup) -> Iterator[Hit]:
    """Yield taskset and numactl in front of a launcher, if they keep it to a part of the cores of its node."""
    launch, has = one.inner, cores_of_script(script)
    several = launch is not None and launch.row.once_a_node and one.each and one.each > 1
    for nodes in (one.command.words, *(launch.program for launch in one.chain[:-1])) if several else ():
        words = forms(script, nodes)
        for _, start, end in wrappers(words):
            name = os.path.basename(words[start] or "")
            match = _CORES.search(" ".join(word or "$" for word in words[start:end]))
            cores = _listed_cores(match[1]) if match else 0
            if name in ("taskset", "numactl") and cores and has and has >= 2 * cores:
                reason = f"{name} keeps {one.name} and its {one.each} ranks to {cores} of the {has} cores of the job"
                yield Hit(one.line, reason, "leave it out, or bind each rank")
                return


_CORES = re.compile(r"(?:taskset -c|--cpu-list|numactl.* (?:-C|--physcpubind)[ =]) ?([\d,-]+)(?: |$)")


def _of_map(one: RankGroup) -> Iterator[Hit]:
    """Yield a step that binds each task to one core, where it has several."""
    bind = one.outer.options.get("--cpu-bind") if one.outer is not None and one.is_step else None
    cores = one.cores * one.each // one.tasks if one.cores and one.each and one.tasks else 0
    if re.match(r"(v,|verbose,)?map_cpu:[\dx,*-]+$", bind or "") and cores > 1:
        reason = f"--cpu-bind={bind} binds each task to one core, and it has {cores}"
        yield Hit(one.line, reason, "write mask_cpu with the cores of each task, or --cpu-bind=cores")


def _listed_cores(text: str) -> int:
    """Return the number of cores in ``0-3,8``."""
    parts = re.findall(r"(\d{1,4})(?:-(\d{1,4}))?", text)
    return sum(int(last or first) - int(first) + 1 for first, last in parts)


# Variables and options by which Open MPI binds its processes otherwise.
_TO_CORES = re.compile(r"(slot|node|core|ppr:\d+:node)(:.*)?")  # by these one or two are bound to cores
_BINDINGS = re.compile(r"(OMPI|PRTE)_MCA_(hwloc|rmaps)_")
_BINDS = re.compile(
    r"^-?-(bind|rankfile|rf|cpu-set|cpu-list|cpus-per|report-bindings)|(hwloc|rmaps)_base|^-rf$"
)


# All cores that the script has on its node.
_ALL_CORES = re.compile(r"\"?(\$\(nproc\)|`nproc`|\$\{?(SLURM_CPUS_ON_NODE|NCPUS)\}?)\"?")


def _threads(script: Script, value: Node | None) -> int:
    """Return the number of threads that a value is; 0 if it is unknown."""
    request = script.request
    if value is None:
        return 0
    if _ALL_CORES.fullmatch(value.text):
        return (request.cpus_per_rank or 0) * (request.ranks_per_node or 1)
    return number(script.constants.value(value), 5) or 0


_CACHES = re.compile(
    r"(HF_HOME|HF_HUB_CACHE|HF_DATASETS_CACHE|TRANSFORMERS_CACHE|TORCH_HOME|XDG_CACHE_HOME|PIP_CACHE_DIR"
    r"|APPTAINER_CACHEDIR|SINGULARITY_CACHEDIR|UV_CACHE_DIR|VLLM_CACHE_ROOT)"
    r"|(TRITON_CACHE_DIR|TORCHINDUCTOR_CACHE_DIR|TORCH_EXTENSIONS_DIR|NUMBA_CACHE_DIR|CUDA_CACHE_PATH)"
)


_AT_HOME = r"~/|\$HOME/|\$\{HOME\}/|/home/\$\{?USER\}?/"
_ELSEWHERE = r"scratch|work|data|project|group|store|shared|local"  # often links to other file systems


@rule_once(
    "home-cache",
    NOTE,
    "A cache in the home directory",
    """Models and data sets fill the quota of a home directory, which is not made for them. Caches of compilers
    (Triton, Inductor, PyTorch's extensions) that all ranks of a job write at the same time are slow on a shared
    file system, and ranks may read the files of others half-written: a local disk is the place for them.""",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=1
    #SBATCH --time=01:00:00
    set -euo pipefail
    export HF_HOME=$HOME/.cache/huggingface
    srun python3 train.py
    """,
    good={"export HF_HOME=$HOME/.cache/huggingface": "export HF_HOME=/scratch/$USER/huggingface"},
)
def home_cache(script: Script) -> Iterator[Hit]:
    for name, value, node in script.assignments:
        match = _CACHES.fullmatch(name)
        path = value.unquoted
        if match and script.in_job and re.match(_AT_HOME, path) and not re.search(_ELSEWHERE, path, re.I):
            why = "all ranks of all jobs compile into it" if match[2] else "it fills the quota"
            fix = "use a local disk: " + name + "=$(mktemp -d)" if match[2] else "use a directory for data"
            yield Hit.at(node, f"{name} is in the home directory: {why}", fix)
