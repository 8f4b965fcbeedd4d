"""Rules about numbers that repeat the request of a job, and variables that have no such number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from jobgen.check.ranks.environment import only_printed
from jobgen.check.rule import ERROR, NOTE, WARNING, rule, rule_once
from jobgen.rendering.runtime import MARK
from jobgen.script.launches import Launch
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node, expansions, is_plain


@rule_once(
    "repeated-count",
    NOTE,
    "A number that repeats the request",
    """The launcher gets a number that the request already has. If only one of the two is changed, too
    few or too many ranks start. The scheduler has the numbers in variables, and srun takes them
    by itself. (A script that starts its ranks with three or more numbers measures how a program scales: it is silent, and one that reads the scheduler's number besides its own.)""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    mpirun -np 16 /opt/site/solver
    """,
    good={"mpirun -np 16 /opt/site/solver": 'mpirun -np "$SLURM_NTASKS" /opt/site/solver'},
)
def repeated_count(script: Script) -> Iterator[Hit]:
    request = script.request
    if not script.is_batch or len(request.chunks) > 1 or request.nodes is None:
        return
    if any(line.startswith(MARK) for line in script.lines):
        return  # a script of jobgen compares its request with the nodes that it gets
    if len({one.number(*one.row.line.ranks) for one in script.launches} - {None}) >= _SERIES:
        return
    total = request.ranks or (request.nodes * request.ranks_per_node if request.ranks_per_node else None)
    for launch in script.launches:
        if launch.outer is not None:
            continue
        line = launch.row.line
        for names, number in ((line.ranks, total), (line.nodes, request.nodes)):
            count = launch.number(*names)
            if count is not None and count > 1 and count == number and _by_hand(script, launch, names):
                reason = f"{launch.title} gets {count}, a number that the directives have, too: they may differ after a change"
                fix = _fix(script, launch, names is line.nodes)
                yield Hit(launch.line, reason, fix, place=launch.place(*names))


_SERIES = 3  # numbers of ranks


def _by_hand(script: Script, launch: Launch, names: tuple[str, ...]) -> bool:
    """Return whether the number is text of the script, and not a variable of the scheduler."""
    todo: list[Node] = [launch.nodes[name] for name in names if name in launch.nodes][:1]
    while todo:
        word = todo.pop()
        if any(word.all("command_substitution")):
            return False  # a command that counts
        for name in word.all("variable_name"):
            value = script.constants.node(name.text)
            if value is None or name.text in _compared(script) or _is_share(script, launch, names):
                return False
            todo.append(value)
    return True


def _is_share(script: Script, launch: Launch, names: tuple[str, ...]) -> bool:
    """Return whether a script with a number of its own reads that of the scheduler, too: it is a part of it."""
    meanings = {"nodes"} if names == launch.row.line.nodes else {"ranks", "slots"}
    variables = script.dialect.job_variables
    return any(variables.get(name) in meanings for name, _ in script.expansions)


@lru_cache(maxsize=4)
def _compared(script: Script) -> set[str]:
    """Return the variables in tests that have one of the scheduler, too."""
    tests = ({other for other, _ in expansions(node)} for node in script.tree.all("test_command"))
    return {name for names in tests if names & script.dialect.job_variables.keys() for name in names}


def _fix(script: Script, launch: Launch, nodes: bool) -> str:
    if launch.row.by_scheduler:
        return f"leave it out: {launch.title} takes it from the request"
    variables, counts = script.dialect.job_variables, script.dialect.counts
    meanings = ("nodes",) if nodes else ("ranks", "slots")
    own = [f'"${name}"' for meaning in meanings for name, one in variables.items() if one == meaning]
    own += [counts[meaning] for meaning in meanings if meaning in counts]
    return f"write {own[0]}" if own else "compute it from the request"


# Slurm sets them only where the option is given, not where another one requests the same (measured with 22.05).
_BY_OPTION = {
    "SLURM_GPUS_PER_NODE": "--gpus-per-node",
    "SLURM_GPUS_PER_TASK": "--gpus-per-task",
    "SLURM_GPUS": "--gpus",
    "SLURM_NTASKS_PER_NODE": "--ntasks-per-node",
    "SLURM_CPUS_PER_TASK": "--cpus-per-task",
}


@rule_once(
    "absent-count",
    WARNING,
    "A number that Slurm does not set",
    """Slurm sets `SLURM_GPUS_PER_NODE`, `SLURM_NTASKS_PER_NODE` or `SLURM_CPUS_PER_TASK` only if the job has the option of this
    name: with `--gres=gpu:4` the first of them is not set. The launcher then gets an empty number. `SLURM_GPUS_ON_NODE` is
    set by each of these options.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=1
    #SBATCH --gres=gpu:4
    #SBATCH --time=01:00:00
    set -euo pipefail
    torchrun --standalone --nproc-per-node="$SLURM_GPUS_PER_NODE" train.py
    """,
    good={
        'torchrun --standalone --nproc-per-node="$SLURM_GPUS_PER_NODE" train.py': 'torchrun --standalone --nproc-per-node="$SLURM_GPUS_ON_NODE" train.py'
    },
    schedulers=("slurm",),
)
def absent_count(script: Script) -> Iterator[Hit]:
    given = {one.flag for one in (*script.options, *script.given)}
    if not script.is_batch or script.components or "export-file" in script.tree.text:
        return
    tested = {name for node in script.tree.all("test_command") for name, _ in expansions(node)}
    names = script.tree.all("variable_name")
    counted = ((one.text, one) for one in names if one.under("arithmetic_expansion"))
    for name, node in (*script.expansions, *counted):
        option = _BY_OPTION.get(name) if name not in tested and name not in script.values else None
        if option is None or option in given or not is_plain(node) or only_printed(node):
            continue
        other = _counterpart(script, option)
        if other:
            reason = f"${name} is not set: the job has {other}, and not {option}"
            yield Hit.at(node, reason, "use $SLURM_GPUS_ON_NODE" if "GPUS" in name else f"request {option}")


def _counterpart(script: Script, option: str) -> str:
    """Return the option that requests in another form what an option would; empty without one."""
    counts = {"--ntasks-per-node": ("--ntasks",), "--cpus-per-task": ("--cpus-per-gpu",)}
    others = counts.get(option, ("--gres", "--gpus-per-node", "--gpus", "--gpus-per-task"))
    found = [(key, script.heeded[key].value) for key in others if key in script.heeded]
    return next((f"{key}={value}" for key, value in found if key != "--gres" or "gpu" in value), "")


@rule_once(
    "node-total",
    WARNING,
    "A number of one node as the number of all ranks",
    """`NCPUS` of PBS Pro, `PBS_NUM_PPN` of Torque, and `SLURM_CPUS_ON_NODE`, `SLURM_NTASKS_PER_NODE` and `SLURM_GPUS_ON_NODE` are
    numbers of one node. As the number of all ranks in a job of several nodes they leave the other nodes idle.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=8
    #SBATCH --time=01:00:00
    set -euo pipefail
    mpirun -np "$SLURM_CPUS_ON_NODE" ./solver
    """,
    good={'mpirun -np "$SLURM_CPUS_ON_NODE" ./solver': 'mpirun -np "$SLURM_NTASKS" ./solver'},
)
def node_total(script: Script) -> Iterator[Hit]:
    for launch in script.launches if script.request.several and script.in_job else ():
        word = launch.place(*launch.row.line.ranks)
        placed = launch.remote or launch.has(*_PLACED, *launch.row.line.nodes)
        if word is None or placed or not script.only(launch):
            continue
        origin = script.constants.origin(word)
        value = origin.text.rpartition("=")[2].strip("\"'")
        name = value.strip("${}")
        if name in _OF_NODE and value in (f"${name}", f"${{{name}}}") and not launch.command.background:
            reason = f"${name} is a number of one node, and {launch.title} gets it as that of all ranks on {script.request.nodes} nodes"
            yield Hit.at(word, reason, _fix(script, launch, nodes=False))


_OF_NODE = (
    "NCPUS", "PBS_NUM_PPN", "SLURM_CPUS_ON_NODE", "SLURM_NTASKS_PER_NODE", "SLURM_GPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE",
)  # fmt: skip
_PLACED = ("-H", "--host", "-host", "-w", "--nodelist", "--ntasks-per-node", "-r", "--relative")


@rule(
    "compressed-number",
    ERROR,
    "A compressed list as a number",
    """`SLURM_TASKS_PER_NODE` and `SLURM_JOB_CPUS_PER_NODE` are lists of all nodes: `4(x2)` on two nodes. bash refuses
    that as a number. `SLURM_NTASKS_PER_NODE` and `SLURM_CPUS_ON_NODE` are numbers. `SLURM_GPUS_PER_NODE` is the text
    of the option: `a100:4` with `--gpus-per-node=a100:4`. `SLURM_GPUS_ON_NODE` is a number.""",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    export WORLD_SIZE=$((SLURM_NNODES * SLURM_TASKS_PER_NODE))
    srun python3 train.py
    """,
    good={
        "export WORLD_SIZE=$((SLURM_NNODES * SLURM_TASKS_PER_NODE))": "export WORLD_SIZE=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))"
    },
    schedulers=("slurm",),
)
def compressed_number(script: Script) -> Iterator[Hit]:
    yield from _typed_numbers(script)
    if not script.in_job or not script.request.several:
        return
    for node in script.tree.all("arithmetic_expansion", "compound_statement", "variable_assignment"):
        match = re.search(_LISTS, node.text)
        number = node.type == "arithmetic_expansion" or node.text.startswith("((")
        threads = re.fullmatch(rf"(\w+_NUM_THREADS|WORLD_SIZE)=[\"']?\$\{{?{_LISTS}\}}?[\"']?", node.text)
        if match and (number or threads) and match[1] not in script.values:
            each = script.request.ranks_per_node or 1
            shown = f"{each}(x{script.request.nodes})" if match[1].startswith("SLURM_TASKS") else "32(x2)"
            reason = f"${match[1]} is a list of all nodes, such as {shown}, and no number"
            reason += ": bash refuses it" if number else ""
            yield Hit.at(node, reason, f"use ${_NUMBERS[match[1]]}", None if number else WARNING)
            return


def _typed_numbers(script: Script) -> Iterator[Hit]:
    """Yield the numbers of GPUs with a type that a launcher gets, or that bash counts with."""
    given = {name: script.heeded[flag].value for name, flag in _BY_OPTION.items() if flag in script.heeded}
    typed = {name: value for name, value in given.items() if ":" in value and name not in script.values}
    lines = ((one, one.row.line) for one in script.launches)
    places = [one.place(*line.local_ranks, *line.ranks) for one, line in lines]
    for node in (*filter(None, places), *script.tree.all("arithmetic_expansion")) if typed else ():
        for one in script.constants.origin(node).all("variable_name"):
            name, cut = one.text, one.parent is not None and re.search(r"[#%:/]", one.parent.text[2:])
            if name in typed and not cut:
                reason = f"${name} is {typed[name]}, the text of the option, and no number"
                yield Hit.at(node, reason, "use $SLURM_GPUS_ON_NODE, or leave the type to --constraint")
                return


_NUMBERS = {"SLURM_TASKS_PER_NODE": "SLURM_NTASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE": "SLURM_CPUS_ON_NODE"}
_LISTS = rf"\b({'|'.join(_NUMBERS)})\b(?![%\[:#/])"
