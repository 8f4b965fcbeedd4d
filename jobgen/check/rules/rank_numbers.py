"""Rules about the numbers of the ranks: which number of a task each variable of a rank gets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from jobgen.check.ranks.environment import RankEnvironment
from jobgen.check.ranks.frameworks import FRAMEWORKS, Framework
from jobgen.check.ranks.model import RankGroup, TaskCode, code_of_tasks, ranks, step_of_script
from jobgen.check.rule import ERROR, WARNING, rule, rule_once
from jobgen.errors import counted
from jobgen.script.command_kinds import is_printed
from jobgen.script.commands import commands
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, assignments, expansions, is_plain
from jobgen.values.parsers import number as number_of

_RANK, _LOCAL, _NODE = "the rank in the job", "the rank on the node", "the number of the node"
_TASKS_OF_NODE, _NODES = "the number of ranks on a node", "the number of nodes"
# The variables that Slurm, Open MPI, MPICH, Intel MPI, MVAPICH and PALS set in each rank.
NUMBERS = {
    **dict.fromkeys(("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID"), _RANK),
    **dict.fromkeys(("SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_LOCAL_RANK"), _LOCAL),
    **dict.fromkeys(("MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "MV2_COMM_WORLD_LOCAL_RANK"), _LOCAL),
    **{"MV2_COMM_WORLD_RANK": _RANK, "SLURM_NODEID": _NODE, "PALS_NODEID": _NODE},
    **dict.fromkeys(
        ("SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE"), _TASKS_OF_NODE
    ),
    **dict.fromkeys(("MPI_LOCALNRANKS", "PALS_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"), _TASKS_OF_NODE),
    **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), _NODES),
}
# Those that only an MPI's own launcher sets, and those that srun sets, too, with one plug-in for an MPI.
_OF_MPI = re.compile(r"(OMPI|MV2)_COMM_WORLD_\w+|MPI_LOCAL(RANKID|NRANKS)|PBS_TASKNUM")
_OF_PLUGINS = {
    **dict.fromkeys(("PMI_RANK", "PMI_SIZE"), "pmi2"),
    **dict.fromkeys(("PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"), "cray_shasta"),
    "PMIX_RANK": "pmix",
}
_OF_TASKS = ("SLURM_PROCID", "SLURM_LOCALID")
_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
COPES = re.compile(r"device_count|VISIBLE_DEVICES")  # what a program does that finds its device itself
# The options of programs, and the variables of JAX, that mean the same as a variable of torch.
_MEANINGS = {
    **{"--node-rank": "NODE_RANK", "--machine-rank": "NODE_RANK", "--local-rank": "LOCAL_RANK"},
    **{"--process-id": "RANK", "--num-processes": "WORLD_SIZE"},
    **{"JAX_PROCESS_ID": "RANK", "JAX_NUM_PROCESSES": "WORLD_SIZE"},
}
_VALUE = re.compile(r"[\"']?\$\{?(\w+)(?::?-\w*)?\}?[\"']?")
_OWN_RANK = re.compile(r"\bRANK=|\.sh\b|\bsource\b|--export")  # a launch that may give each rank its number


@rule(
    "rank-number",
    ERROR,
    "A variable of a rank with another number",
    """`RANK` counts all ranks, `LOCAL_RANK` and the devices count those of a node, `WORLD_SIZE` is the number of all
    ranks, and the node rank that of the node. With `RANK=$SLURM_LOCALID` two nodes have the same ranks: the rendezvous
    hangs. With `LOCAL_RANK=$SLURM_PROCID` the ranks of the second node open devices that are not there. (This one is a
    warning: the program may take the number modulo that of the devices.) Each launcher has variables of its own: `srun`
    sets no `OMPI_COMM_WORLD_RANK`, and `PMI_RANK` only with `--mpi=pmi2`; `SLURM_PROCID` is the same in all ranks
    that `mpirun` starts on a node.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    export WORLD_SIZE=$SLURM_NTASKS
    srun bash -c 'export RANK=$SLURM_LOCALID LOCAL_RANK=$SLURM_LOCALID; exec python3 train.py'
    """,
    good={
        "srun bash -c 'export RANK=$SLURM_LOCALID LOCAL_RANK=$SLURM_LOCALID; exec python3 train.py'": "srun bash -c 'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID; exec python3 train.py'"
    },
)
def rank_number(script: Script) -> Iterator[Hit]:
    seen: set[tuple[int, str]] = set()
    for code in code_of_tasks(script):
        launcher_sets = code.group is not None and code.sets_ranks
        for meaning, name, variable, line in _variables(code.tree, launcher_sets):
            effect = _effect(meaning, NUMBERS.get(variable, ""), code.nodes, code.tasks)
            is_device = meaning in ("LOCAL_RANK", *_DEVICES)
            source = code.group.program.source if code.group is not None else None
            copes = is_device and source is not None and COPES.search(source.text)
            if effect and not copes and (line, name) not in seen:
                seen.add((line, name))
                reason = f"{name} is ${variable}, {NUMBERS[variable]}: {effect}"
                yield Hit(line, reason, f"use {_right(meaning, variable)}", WARNING if is_device else None)
        for node, each in _of_sum(script, code.tree):
            if code.nodes and code.nodes > 1 and code.tasks and each != code.tasks:
                effect = "some numbers are missing" if each > code.tasks else "some numbers are there twice"
                reason = f"RANK counts {each} ranks on a node, but {code.tasks} start there: {effect}"
                yield Hit(
                    node.line, f"{reason}, and the rendezvous hangs", f"use {_right('RANK', 'SLURM_PROCID')}"
                )
        yield from _of_modulus(script, code)
    yield from _of_another_launcher(script)
    yield from _same_rank(script)
    yield from _of_launcher(script)


def _of_another_launcher(script: Script) -> Iterator[Hit]:
    """Yield the variables in the code of a task that the launcher of this task does not set."""
    seen: set[str] = set()
    for code in code_of_tasks(script):
        outer = code.group.outer if code.group is not None else step_of_script(script)
        starts = code.group.chain if code.group is not None else script.launches
        if outer is None or any(one.row.of_mpi for one in starts if one is not outer):
            continue
        if _STARTS_MPI.search(code.tree.text):
            continue  # ranks of another launcher inside
        for name, node in expansions(code.tree):
            reason = _foreign(outer, name, code.tasks) if name not in seen and is_plain(node) else ""
            if not reason or name in script.values or node.under(*_TESTED) or is_printed(node):
                continue
            if re.search(rf"\b{name}(=|:?[-+])|-[nzv] [\"']?\$?\{{?{name}\b", script.tree.text):
                continue
            seen.add(name)
            line = node.line if code.group is None or node.source is script.tree.source else code.group.line
            fix = f"use {_right_of(name, outer.row.by_scheduler)}"
            yield Hit(line, reason, fix, WARNING if name in _OF_TASKS else None)


_STARTS_MPI = re.compile(r"\b(?:mpirun|mpiexec|orterun|prun|prterun|aprun|jsrun)\b")
_TESTED = ("if_statement", "case_statement", "test_command", "function_definition")


def _foreign(outer: Launch, name: str, tasks: int | None) -> str:
    """Return what is wrong with a variable in the processes of a launcher; empty if nothing certainly is."""
    if outer.row.by_scheduler:
        plugin = outer.text("--mpi").partition("_v")[0]
        lacks = plugin in ("none", "pmi2", "pmix") and _OF_PLUGINS.get(name, plugin) != plugin
        with_it = f" --mpi={plugin}" if lacks else ""
        return (
            f"${name} is empty: {outer.title}{with_it} does not set it"
            if lacks or _OF_MPI.fullmatch(name)
            else ""
        )
    if outer.row.of_mpi and name in _OF_TASKS and tasks and tasks > 1:
        return f"${name} is that of a task of srun: the {tasks} ranks that {outer.title} starts on a node have the same"
    return ""


def _right_of(name: str, by_scheduler: bool) -> str:
    """Return the variable with the same number that the launcher sets."""
    number = NUMBERS.get(name)
    if by_scheduler:
        sizes = "$SLURM_NTASKS" if name.endswith("_SIZE") else "$SLURM_PROCID"
        return {_LOCAL: "$SLURM_LOCALID", _TASKS_OF_NODE: "$SLURM_NTASKS_PER_NODE"}.get(number or "", sizes)
    own = "OMPI_COMM_WORLD_LOCAL_RANK" if number == _LOCAL else "OMPI_COMM_WORLD_RANK"
    return f"${own} with Open MPI"


def _of_launcher(script: Script) -> Iterator[Hit]:
    """Yield a program that takes its rank from the task of Slurm, in which another launcher starts several ranks."""
    for one in ranks(script):
        source, inner = one.program.source, one.inner
        if source is None or inner is None or inner.row.by_scheduler or script.is_pbs or (one.each or 0) < 2:
            continue
        own = source.needs | source.reads
        read = next((name for name in ("SLURM_PROCID", "SLURM_LOCALID") if name in own), "")
        own |= source.sets
        if "lightning" in one.program.frameworks and inner.row.of_mpi and not own:
            read = "SLURM_PROCID"
        others = any(re.match(r"(LOCAL_)?RANK$|OMPI_|PMI|MPI_|MV2_", name) for name in own)
        if read and not others:
            reads = one.program.file + ("" if read in own else ", by Lightning,")
            same = f"the {one.each} ranks that {inner.title} starts on a node have the same"
            fix = "start the program with srun, once for each rank, or let it read RANK and LOCAL_RANK"
            yield Hit(
                one.line, f"{reads} reads {read}, which is that of a task of srun: {same}", fix, WARNING
            )


def _of_sum(script: Script, tree: Node) -> Iterator[tuple[Node, int]]:
    """Yield each RANK that is the number of the node times a number plus the rank on the node, and this number."""
    for name, value, node in assignments(tree):
        match = _SUM.fullmatch(value.unquoted) if name == "RANK" else None
        found = script.constants.node(match[1]) if match and not match[1].isdigit() else None
        text = match[1] if match and found is None else script.constants.value(found) if found else ""
        if (each := number_of(text, 4)) is not None:
            yield node, each


def _of_modulus(script: Script, code: TaskCode) -> Iterator[Hit]:
    """Yield each local rank that is the rank in the job modulo another number than that of the tasks of a node."""
    request, tasks = script.request, code.tasks or 0
    gpus = request.gpus_per_node or (request.gpus or 0) // (request.nodes or 1)
    source = code.group.program.source if code.group is not None else None
    if tasks < 2 or not gpus or code.sets_ranks or (source is not None and COPES.search(source.text)):
        return
    for name, value, node in assignments(code.tree):
        match = _MODULUS.fullmatch(value.unquoted) if name in ("LOCAL_RANK", *_DEVICES) else None
        if match is None or NUMBERS[match[1]] != _RANK:
            continue
        found = script.constants.node(match[2])
        modulus = number_of(match[2] if found is None else script.constants.value(found), 4) or 0
        last = min(modulus, (code.nodes or 1) * tasks) - 1
        effect = ""
        if 0 < modulus < min(tasks, gpus):
            effect = f"ranks 0 and {modulus} of a node have the same one"
        elif modulus > tasks and last >= gpus:
            effect = f"it is {last} on a node of {counted(gpus, 'GPU')}, whose devices count from 0"
        if effect:
            reason = f"{name} is the rank modulo {modulus}, but {tasks} ranks start on a node: {effect}"
            yield Hit(node.line, reason, f"use {_right('LOCAL_RANK', match[1])}", WARNING)


_MODULUS = re.compile(rf"\$\(\( *\$?\{{?({'|'.join(NUMBERS)})\}}? *% *\$?\{{?(\w+)\}}? *\)\)", re.ASCII)
_NODEID = r"\$?\{?SLURM_NODEID\}?"
_SUM = re.compile(rf"\$\(\( *\(?{_NODEID} *\* *\$?\{{?(\w+)\}}?\)? *\+ *\$?\{{?SLURM_LOCALID\}}? *\)\)")


def _same_rank(script: Script) -> Iterator[Hit]:
    """Yield each exported RANK of the script that several ranks of one launch get."""
    environment = RankEnvironment.of(script)
    for one in ranks(script):
        total = (one.nodes or 0) * (one.tasks or 0)
        if one.outer is None or one.sets_ranks or total < 2 or not one.outer.row.line.reaches_nodes:
            continue
        value, source = environment.in_effect("RANK", one.start), one.program.source
        if value is None or _OWN_RANK.search(one.outer.command.node.text) or not environment.has_devices(one):
            continue
        if any(name in NUMBERS for name, _ in expansions(value)):
            continue  # early-expansion names it
        if source is None or not ("RANK" in source.sets or source.reads & NUMBERS.keys()):
            why = f"RANK is {value.text} for all {total} ranks that {one.outer.title} starts: the rendezvous hangs"
            rank = "SLURM_PROCID" if one.is_step else "OMPI_COMM_WORLD_RANK"
            yield Hit(value.line, why, f"set it in each rank: bash -c 'RANK=${rank} exec ...'")


class RankNumber(NamedTuple):
    """A number that a rank gets: the variable of torch that means the same, the name of its own, and the value."""

    meaning: str
    name: str
    value: Node

    @property
    def variable(self) -> str:
        """Return the variable that the value is; empty if it is anything else."""
        match = _VALUE.fullmatch(behind_name(self.value.text))
        return match[1] if match else ""

    @property
    def number(self) -> str:
        """Return what the number of the value counts; empty if it is unknown."""
        return NUMBERS.get(self.variable, "")


def behind_name(text: str) -> str:
    """Return the value in a word, which may begin with the name of an option."""
    return text.partition("=")[2] if text.startswith("--") else text


def settings(tree: Node) -> Iterator[RankNumber]:
    """Yield the variables that code assigns, and the numbers in the options of its programs."""
    yield from (RankNumber(_MEANINGS.get(name, name), name, value) for name, value, _ in assignments(tree))
    for command in commands(tree):
        found: dict[str, RankNumber] = {}
        for word, after in pairwise((*command.words, None)):
            option, equals, _ = word.text.partition("=") if word else ("", "", "")
            key = re.sub(r"^--[\w-]+\.", "--", option).replace("_", "-")
            value = word if equals else after
            if key in _MEANINGS and value is not None:
                found[key] = RankNumber(_MEANINGS[key], option, value)
        process, total = found.get("--process-id"), found.get("--num-processes")
        if process is None or process.number != _RANK:
            found.pop("--num-processes", None)  # of accelerate, or of a loader of data
            if total is None or not total.variable or total.number == _TASKS_OF_NODE:
                found.pop("--process-id", None)  # each node may be alone
        yield from found.values()


def _variables(tree: Node, launcher_sets: bool) -> Iterator[tuple[str, str, str, int]]:
    """Yield each setting of a rank that is one variable: its meaning, its name, the variable and the line.

    A launcher such as torchrun sets all but the node rank itself.
    """
    for one in settings(tree):
        if one.variable and (one.meaning == "NODE_RANK" or not launcher_sets):
            yield one.meaning, one.name, one.variable, one.value.line


def _effect(name: str, number: str, nodes: int | None, tasks: int | None) -> str:
    """Return what happens with a number in a variable; empty if it is right, or unknown."""
    several, shared = bool(nodes and nodes > 1), bool(tasks and tasks > 1)
    total = nodes * tasks if nodes and tasks else 0
    if name == "RANK" and number == _LOCAL and several:
        if not tasks:
            return f"the ranks of the {nodes} nodes have the same numbers, and the rendezvous hangs"
        return _hang(tasks, f"{nodes} times", total)
    if name == "RANK" and number == _NODE and shared:
        if not nodes:
            return f"the {tasks} ranks of a node have the same number, and the rendezvous hangs"
        return _hang(nodes, f"{tasks} times", total)
    if name == "WORLD_SIZE" and ((number == _NODES and shared) or (number == _TASKS_OF_NODE and several)):
        size = nodes if number == _NODES else tasks
        return f"that is {size}, but {total} ranks start" if total and size != total else ""
    if name == "NODE_RANK" and number == _LOCAL and several:
        return "each node believes to be the first one"
    if name in ("LOCAL_RANK", *_DEVICES) and number == _RANK and several:
        first = f"{tasks} and more" if tasks else "more than the devices"
        return f"on the second node it is {first}, and devices count from 0 on each node"
    if name in ("LOCAL_RANK", *_DEVICES) and number == _NODE and shared:
        return f"the {tasks} ranks of a node share one device"
    return ""


def _hang(there: int, times: str, total: int) -> str:
    """Return which ranks wait for which, if the first of them start several times."""
    first = "rank 0 starts" if there == 1 else f"ranks 0 to {there - 1} start"
    return (
        f"{first} {times}, and {'waits' if there == 1 else 'wait'} forever for ranks {there} to {total - 1}"
    )


def _right(name: str, variable: str) -> str:
    """Return the variable of the same launcher that has the right number."""
    if name == "WORLD_SIZE":
        counts = {"SLURM": "SLURM_NTASKS", "OMPI": "OMPI_COMM_WORLD_SIZE", "MV2": "MV2_COMM_WORLD_SIZE"}
        return "$" + counts.get(variable.partition("_")[0], "PMI_SIZE")
    number = {"RANK": _RANK, "NODE_RANK": _NODE}.get(name, _LOCAL)
    family = variable.partition("_")[0]
    own = (one for one, kind in NUMBERS.items() if kind == number and one.startswith(family))
    others = {_RANK: "PMI_RANK", _LOCAL: "PMI_LOCAL_RANK"}
    return "$" + next(own, others.get(number, "the number of the node"))


@rule_once(
    "no-rank-variables",
    WARNING,
    "Ranks that get no RANK and WORLD_SIZE",
    """`srun` and `mpirun` set variables of their own. torch.distributed reads `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and
    `MASTER_PORT`, accelerate and transformers read `LOCAL_RANK`, too: without them `init_process_group` fails, or each
    process trains alone, and all write the same files. (The Python file beside the script must show the framework.)""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun python3 tune.py
    """,
    good={
        "#SBATCH --ntasks-per-node=4": "#SBATCH --ntasks-per-node=1",
        "srun python3 tune.py": 'srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" tune.py',
    },
    files={"tune.py": "from transformers import Trainer\n\nTrainer().train()\n"},
)
def no_rank_variables(script: Script) -> Iterator[Hit]:
    environment = RankEnvironment.of(script)
    if environment.is_open or "--container-image" in script.tree.text or not script.is_batch:
        return  # pyxis sets them in the containers of PyTorch
    for one in ranks(script):
        row, outer = _framework(one), one.outer
        if row is None or outer is None or not outer.row.line.reaches_nodes or outer.unknown:
            continue
        if one.sets_ranks or not one.total or one.total == 1:
            continue
        where = f"{one.total} ranks, which {row.title} reads: {row.alone}"
        if not _sets_ranks(script, one):
            of_torch = row.title == "torch.distributed"
            names = "RANK and WORLD_SIZE" if of_torch else "RANK, WORLD_SIZE and LOCAL_RANK"
            start = f"{outer.title} bash -c 'RANK=... LOCAL_RANK=... WORLD_SIZE=... exec python ...'"
            fix = f"start it with torchrun once a node, or set them in each rank: {start}"
            yield Hit(one.line, f"{outer.title} sets no {names} in its {where}", fix)
        elif "LOCAL_RANK" in row.variables and _lacks_local_rank(script, one):
            reason = f"nothing sets LOCAL_RANK in the {where}"
            yield Hit(one.line, reason, f"set it beside RANK: {_LOCAL_RANK[outer.row.by_scheduler]}")


def _framework(one: RankGroup) -> Framework | None:
    """Return the framework of a program that needs variables which no scheduler and no MPI sets."""
    source, used = one.program.source, one.program.frameworks
    rows = [FRAMEWORKS[key] for key in sorted(used) if FRAMEWORKS[key].variables]
    own_way = any(FRAMEWORKS[key].reads_slurm or FRAMEWORKS[key].reads_mpi for key in used)
    if source is None or not rows or own_way or source.imports("mpi4py", "submitit", "ray", "idr_torch"):
        return None
    reads = any(re.match(r"SLURM_|OMPI_|PMI|PALS_|MPI_|MV2_", name) for name in source.reads)
    passes = re.search(r"[\"']mpi[\"']|\brank\s*=|mp\.spawn|\bspawn\(|tcp://|file://", source.text)
    return None if reads or passes else rows[0]


# The local rank in the code of a task: of srun, or of an MPI.
_LOCAL_RANK = {
    True: "LOCAL_RANK=$SLURM_LOCALID",
    False: "LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK with Open MPI",
}


def _lacks_local_rank(script: Script, one: RankGroup) -> bool:
    """Return whether the code of each task sets RANK, and neither it nor the script or program LOCAL_RANK."""
    text, source = one.text, one.program.source
    if text is None or source is None:
        return False
    sets = re.search(r"\bRANK=", text.text) is not None and not re.search(r"\bsource\b|\.sh\b", text.text)
    return sets and "LOCAL_RANK" not in script.tree.text + source.text


def _sets_ranks(script: Script, one: RankGroup) -> bool:
    """Return whether anything sets RANK: the script, the code of the task, or the program."""
    source = one.program.source
    names = {"RANK", "LOCAL_RANK", "WORLD_SIZE"}
    texts = " ".join(word.text for word in (one.outer.program if one.outer is not None else ()))
    return (
        bool({"RANK", "LOCAL_RANK"} & set(script.values))
        or re.search(r"\bRANK=|\.sh\b|\bsource\b", texts) is not None
        or (source is not None and bool(names & source.sets))
    )
