"""Rules about srun."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.ranks.environment import OF_MPI
from jobgen.check.ranks.model import is_work
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.schedulers.versions import Span
from jobgen.script import code_files
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script
from jobgen.script.submitted import expanded_texts
from jobgen.script.syntax import LATER, Node, expansions, exported, is_plain

# Variables of a task; the batch script has those of the first task.
_TASK = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID")

_TRIFLES = (
    "hostname", "nvidia-smi", "npu-smi", "rocm-smi", "true", "echo", "date", "env", "mkdir", "ls", "cat",
    "rm", "nvidia-cuda-mps-control",
)  # fmt: skip

_OTHER_START = r"\b(?:upcxx|upc|gasnet|chapel)\b"  # modules of programs that find their ranks without MPI
_MPI = {
    **dict.fromkeys(("openmpi", "hpcx"), "pmix"),
    **dict.fromkeys(("mpich", "mvapich", "intel-mpi", "impi"), "pmi2"),
}


def _steps(script: Script) -> Iterator[Launch]:
    return script.launched(script.dialect.scheduler.node_step or "")


_LOST = Span(since="22.05", before="23.11")  # CHANGELOG/slurm-23.11.md


@rule_once(
    "srun-cpus",
    NOTE,
    "--cpus-per-task for sbatch, but not for srun",
    """In Slurm 22.05 and 23.02 `srun` does not inherit `--cpus-per-task` from the job: each task is bound to
    one core, and data loaders are slow. Other versions read `SLURM_CPUS_PER_TASK`, which sbatch sets
    (`CHANGELOG/slurm-23.11.md`). The option repeated on `srun`, or in `SRUN_CPUS_PER_TASK`, is right for all.
    (It is a warning if `--scheduler-version`, the site or a module of the script names one of these versions.)""",
    message="in Slurm 22.05 and 23.02 srun does not take --cpus-per-task from the job: there each task gets one core",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --cpus-per-task=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 train.py
    """,
    good={"srun python3 train.py": "srun --cpus-per-task=8 python3 train.py"},
    schedulers=("slurm",),
)
def srun_cpus(script: Script) -> Iterator[Hit]:
    given = any(script.options_of("--cpus-per-task")) and script.request.cpus_per_rank not in (None, 1)
    if not given or {"SRUN_CPUS_PER_TASK", "SLURM_CPU_BIND"} & script.values.keys():
        return
    module = re.search(r"\bslurm/\D{0,9}(\d\d\.\d\d)", _module_words(script))
    version = script.version or (module[1] if module else None)
    if not _LOST.holds(version):
        return
    sruns = list(_steps(script))
    if any(launch.has("-c", "--cpus-per-task") for launch in sruns):
        return  # the option is known; the other calls are helpers
    for launch in sruns:
        bound = launch.has("--cpu-bind", "--exact", "--overlap")
        program = (script.constants.value(launch.program[0]) or "") if launch.program else ""
        trifle = os.path.basename(program) in _TRIFLES
        if bound or launch.unknown or trifle or not is_work(script, launch):
            continue
        fix = f"write srun --cpus-per-task={script.request.cpus_per_rank}, or export SRUN_CPUS_PER_TASK"
        yield Hit(launch.line, fix=fix, level=WARNING if version else None)


def _module_words(script: Script) -> str:
    return " ".join(word for command in script.own_running("module", "ml") for word in command.literals)


@rule(
    "export-commas",
    WARNING,
    "Commas in --export",
    """`--export` splits at every comma: of `X=1,2` only `X=1` is exported.""",
    message="--export splits at every comma: the text after it is read as another variable",
    fix="export the variables in the body of the script, and leave --export=ALL",
    bad="""
    #!/bin/bash
    #SBATCH --export=ALL,CUDA_ORDER=0,1,2
    #SBATCH --time=01:00:00
    hostname
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    export CUDA_ORDER=0,1,2
    hostname
    """,
)
def export_list(script: Script) -> Iterator[Hit]:
    found = [(option.line, option.value) for option in script.options_of("--export")]
    found += [(launch.line, launch.text("--export")) for launch in _steps(script)]
    for line, value in found:
        parts = value.split(",")
        bad = [part for part in parts if part and not re.match(r"[A-Za-z_]\w*(=|$)", part, re.ASCII)]
        # A part in small letters behind one with = is no name of a variable.
        if bad or any(
            "=" in before and "=" not in after and after.islower() for before, after in pairwise(parts)
        ):
            yield Hit(line, "" if "," in value else f"--export={value} is no list of variables")


@rule(
    "early-expansion",
    ERROR,
    "A task's variable, expanded before the tasks start",
    """`SLURM_PROCID`, `SLURM_LOCALID` and `SLURM_NODEID` differ from task to task. The shell of the batch
    script expands them once, before `srun` starts the tasks: all tasks get the values of the first one,
    and each runs as rank 0. The variables of an MPI, such as `OMPI_COMM_WORLD_RANK` and `PMI_RANK`, are not set
    there at all. In a here-document without quotes for `sbatch` or `qsub` the shell that submits the job expands the
    variables, before the job sets them. (An exported variable that the command of `srun` does not name is a warning: the program
    may not read it; Lightning reads Slurm's own variables.)""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --nnodes=2 --nproc-per-node=4 --node-rank="$SLURM_NODEID" --master-addr="$(hostname)" train.py
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
    srun bash -c 'exec torchrun --nnodes=2 --nproc-per-node=4 --node-rank="$SLURM_NODEID" --master-addr="$MASTER_ADDR" train.py'
    """,
)
def early_expansion(script: Script) -> Iterator[Hit]:
    if not script.in_job:
        yield from _of_submission(script)
    if not script.is_batch:
        return
    yield from _of_mpi(script)
    yield from _of_document(script)
    in_sruns = [launch.command.node for launch in _steps(script)]
    used = _used(script, in_sruns)
    request = script.request
    single = {"SLURM_NODEID"} if request.nodes == 1 else set()
    single |= set(_TASK) if request.ranks == 1 else set()
    # torchrun takes the node rank from the command line only without a dynamic rendezvous.
    # pyxis sets RANK and LOCAL_RANK in the containers of PyTorch.
    pyxis = "--container-image" in script.tree.text
    dynamic = any(launch.options.get("--rdzv-backend") not in (None, "static") for launch in script.launches)
    files = {file.text for command in script.commands for file in command.files()}
    for name, node in script.expansions:
        if name not in _TASK or name in single or node.under("heredoc_body"):
            continue
        words = (one for one in (node, *node.above()) if one.type in ("expansion", "string", "concatenation"))
        if not node.under("file_redirect") and any(word.text in files for word in words):
            continue  # the name of a file that the script writes
        around = list(node.above())  # and the commands whose output a statement redirects
        around += [one for above in around if above.type == "redirected_statement" for one in above.children]
        inside = any(one in in_sruns for one in around)
        assigned = node.around("variable_assignment")
        read = assigned is not None and assigned.name in used
        passed = assigned is not None and exported(assigned) and bool(in_sruns)
        if inside or ((read or passed) and not node.under("function_definition")):
            reason = f"${name} is expanded once, before srun starts the tasks: all tasks get the first one's"
            fix = f"expand it in each task: srun bash -c '... ${name} ...', in single quotes"
            level = NOTE if _in_file_name(node) or dynamic else _level(assigned, inside or read, pyxis)
            yield Hit.at(node, reason, fix, level)


def _of_document(script: Script) -> Iterator[Hit]:
    """Yield the variables of a task in a here-document without quotes, whose text srun starts as code."""
    starts = [one for one in script.launched("srun") if one.number("-n", "--ntasks") != 1]
    words = {code_files.name(word, script.constants) for one in starts for word in one.program}
    files = words & code_files.written(script.commands, script.constants).keys()
    for command in script.commands if files else ():
        if (target := code_files.target(command)) is None:
            continue
        above = command.node.parent
        bodies = above.all("heredoc_body") if above is not None else ()
        if code_files.name(target[0], script.constants) not in files:
            continue
        for name, node in (one for body in bodies for one in expansions(body)):
            if name in _TASK and not (name == "SLURM_NODEID" and script.request.nodes == 1):
                reason = f"${name} is expanded when the file is written: all tasks get the first one's"
                yield Hit.at(node, reason, "put the word behind << in quotes: <<'END'")
                return


def _of_submission(script: Script) -> Iterator[Hit]:
    """Yield the variables in a text for sbatch or qsub that only the job sets: its scheduler, or the text."""
    bodies = expanded_texts(script)
    if not bodies:
        return
    outside = _outside(script, bodies)
    named = set(re.findall(r"(?<![$\w{])[A-Za-z_]\w*", outside))  # what the script itself may set
    of_job = {*_TASK, *(name for one in DIALECTS.values() for name in one.job_variables)}
    if of_job & set(re.findall(r"\$\{?(\w+)", outside)):
        of_job = set()  # perhaps a job runs the script
    for body in bodies:
        sets = {} if _OPEN.search(outside) else _sets(body)
        lines, seen = body.text.split("\n"), named.copy()
        for name, node in expansions(body):
            at = node.line - body.line
            text = lines[at].lstrip()
            in_job = name in of_job or sets.get(name, at) < at
            if name in seen or not in_job or not is_plain(node) or text.startswith("#"):
                continue
            inside = node.under("command_substitution")
            if not inside and _OWN_LIST.search(text):
                continue  # without an argument scontrol takes the nodes of its job
            seen.add(name)
            who = "the scheduler sets it in the job" if name in of_job else "the job sets it"
            reason = f"${name} is expanded when the text is submitted, before {who}"
            printed = re.match(r"(?:echo|printf)\b[^|>]*$", text)
            fix = f"write \\${name}" + " in \\$(...)" * inside
            yield Hit.at(node, reason, fix, NOTE if printed else None)


_OWN_LIST = re.compile(r"scontrol show hostnames? +\$\{?SLURM_(?:JOB_)?NODELIST\}?(?:[\s)|]|$)")
_OPEN = re.compile(r"(?m)^\s*(?:source|\.|eval)\s")  # what may set any variable


def _outside(script: Script, bodies: list[Node]) -> str:
    """Return the text of a script without some here-documents."""
    ends = [0, *(body.end for body in bodies)]
    starts = [*(body.start for body in bodies), len(script.tree.source)]
    parts = (script.tree.source[end:start] for end, start in zip(ends, starts, strict=True))
    return b"\n".join(parts).decode("utf-8", "replace")


def _sets(body: Node) -> dict[str, int]:
    """Return the variables that the text of a job sets by itself, and the first line that does so."""
    found: dict[str, int] = {}
    outer: set[str] = set()
    for at, line in enumerate(body.text.split("\n")):
        for match in _SETS.finditer(line):
            name = match[1] or match[2]
            found.setdefault(name, at)
            outer |= {name} if re.search(rf"(?<!\\)\$\{{?{name}\b", line[match.end() :]) else set()
    return {name: at for name, at in found.items() if name not in outer}


_SETS = re.compile(r"(?:^|;|&&)\s*(?:(?:export|local|readonly)\s+)?([A-Za-z_]\w*)=|\bfor\s+(\w+)\s+in\b")


def _of_mpi(script: Script) -> Iterator[Hit]:
    """Yield the variables of an MPI's ranks in the commands that start these ranks, and in exports."""
    starts = {id(one.command.node) for one in script.launches if one.row.line.reaches_nodes}
    if not starts or re.search(r"\$0\b|BASH_SOURCE", script.tree.text):
        return  # the script starts itself in the ranks
    for name, node in script.expansions:
        if not OF_MPI.fullmatch(name) or name in script.values or not is_plain(node):
            continue
        above = list(node.above())
        assigned = next((one for one in above if one.type == "variable_assignment"), None)
        elsewhere = any(one.type in ("heredoc_body", "function_definition", *LATER) for one in above)
        passed = assigned is not None and exported(assigned)
        if not elsewhere and (passed or any(id(one) in starts for one in above)):
            reason = f"${name} is a variable of the ranks: in the script, which expands it, it is not set"
            yield Hit.at(node, reason, f"expand it in each rank: bash -c '... ${name} ...', in single quotes")


# Variables of the nodes that torchrun reads.
_READ = ("GROUP_RANK", "PET_NODE_RANK")


def _level(assigned: Node | None, read: bool, pyxis: bool) -> str | None:
    """Return warning for an exported variable that the program perhaps never reads, or that is set again."""
    name = "" if assigned is None else assigned.text.partition("=")[0]
    return None if read or (name in _READ and not pyxis) else WARNING


def _used(script: Script, commands: list[Node]) -> set[str]:
    """Return the variables in some commands, and those in their values."""
    found: set[str] = set()
    todo = list(commands)
    while todo:
        for name in set(re.findall(r"\$\{?(\w+)", todo.pop().text)) - found:
            found.add(name)
            todo += script.values.get(name, ())
    return found


def _in_file_name(node: Node) -> bool:
    """Return whether letters are joined to the expansion, as in ``log_$SLURM_PROCID``."""
    before, after = node.source[node.start - 1 : node.start], node.source[node.end : node.end + 1]
    return before in (b"_", b"-", b".") or after in (b".", b"_")


@rule_once(
    "mpi-plugin",
    NOTE,
    "srun's --mpi for another MPI",
    """Ranks under `srun` connect through a plug-in: usually PMIx for Open MPI, PMI-2 for MPICH and its
    derivatives. With a plug-in that the MPI was built without, each rank has a world size of 1, and N
    identical runs overwrite each other. (Launchers of torch, which need no MPI, are not reported.)""",
    bad="""
    #!/bin/bash
    #SBATCH --ntasks=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    module load openmpi/4.1
    srun --mpi=pmi2 /opt/site/solver
    """,
    good={"srun --mpi=pmi2 /opt/site/solver": "srun --mpi=pmix /opt/site/solver"},
    schedulers=("slurm",),
)
def mpi_plugin(script: Script) -> Iterator[Hit]:
    loaded = _module_words(script).lower()
    modules = [pair for pair in _MPI.items() if re.search(rf"(^|[\s/]){pair[0]}\b", loaded)]
    if re.search(_OTHER_START, loaded):
        return
    torch = {id(launch.outer) for launch in script.launches if launch.row.once_a_node}
    for launch in _steps(script) if modules else ():
        if id(launch) in torch:
            continue
        plugin = launch.text("--mpi")
        for module, pattern in modules:
            usual = ("", pattern.rstrip("2"), "none", "cray_shasta", "cray_shast")
            if plugin.rstrip("_v0123456789") not in usual:
                reason = f"--mpi={plugin} is not the usual plug-in of {module}: if it was built without this one, each rank gets a world size of 1"
                yield Hit(launch.line, reason, f"write --mpi={pattern}")
