"""Translation of the scheduler's variables in the body: renamed if possible, otherwise set at the top."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import Node, parse
from jobgen.check.script import Script
from jobgen.convert.remark import Definition, Edit, Remark

_TO_SLURM = {
    "PBS_O_WORKDIR": "SLURM_SUBMIT_DIR",
    "PBS_JOBID": "SLURM_JOB_ID",
    "PBS_JOBNAME": "SLURM_JOB_NAME",
    "PBS_ARRAY_INDEX": "SLURM_ARRAY_TASK_ID",
    "PBS_ARRAYID": "SLURM_ARRAY_TASK_ID",
    "PBS_ARRAY_ID": "SLURM_ARRAY_JOB_ID",
    "PBS_QUEUE": "SLURM_JOB_PARTITION",
    "PBS_O_HOST": "SLURM_SUBMIT_HOST",
    "PBS_NP": "SLURM_NTASKS",
    "PBS_NUM_NODES": "SLURM_JOB_NUM_NODES",
    "PBS_NUM_PPN": "SLURM_NTASKS_PER_NODE",
    "PBS_O_HOME": "HOME",
    "PBS_O_LOGNAME": "LOGNAME",
    "NCPUS": "SLURM_CPUS_ON_NODE",
}
_TO_PBS = {
    "SLURM_SUBMIT_DIR": "PBS_O_WORKDIR",
    "SLURM_JOB_ID": "PBS_JOBID",
    "SLURM_JOBID": "PBS_JOBID",
    "SLURM_JOB_NAME": "PBS_JOBNAME",
    "SLURM_ARRAY_TASK_ID": "PBS_ARRAY_INDEX",
    "SLURM_JOB_PARTITION": "PBS_QUEUE",
    "SLURM_SUBMIT_HOST": "PBS_O_HOST",
}
# Variables of each rank under mpirun (Open MPI).
_RANKS = {"SLURM_PROCID": "OMPI_COMM_WORLD_RANK", "SLURM_LOCALID": "OMPI_COMM_WORLD_LOCAL_RANK"}
_COUNT_NODES = '$(sort -u "$PBS_NODEFILE" | wc -l)'
_COUNT_SLOTS = '$(wc -l < "$PBS_NODEFILE")'


def names(source: str, target: str) -> dict[str, str]:
    """Return the new names of the variables."""
    if target == "slurm":
        return _TO_SLURM
    if source == "slurm":
        index = {"SLURM_ARRAY_TASK_ID": "PBS_ARRAYID"} if target == "torque" else {}
        return {**_TO_PBS, **_RANKS, **index}
    if target == "torque":
        return {"PBS_ARRAY_INDEX": "PBS_ARRAYID"}
    return {"PBS_ARRAYID": "PBS_ARRAY_INDEX"}


def definitions(script: Script, target: str) -> dict[str, str]:
    """Return the variables without a new name that can be set at the top of the script, with their values."""
    asked = script.request
    if target == "slurm":
        return {}
    if script.scheduler != "slurm":  # from one PBS to the other: Torque sets these by itself
        slots = str(asked.lines_per_node or 1)
        found = {"PBS_NP": _COUNT_SLOTS, "PBS_NUM_NODES": _COUNT_NODES, "PBS_NUM_PPN": slots}
        return found if target == "pbspro" else {}
    ranks = asked.ranks_per_node or 1
    found = {
        "SLURM_NNODES": _COUNT_NODES,
        "SLURM_JOB_NUM_NODES": _COUNT_NODES,
        "SLURM_NTASKS": str(asked.ranks or 1),
        "SLURM_NPROCS": str(asked.ranks or 1),
        "SLURM_NTASKS_PER_NODE": str(ranks),
        "SLURM_CPUS_PER_TASK": str(asked.cpus_per_rank or 1),
        "SLURM_CPUS_ON_NODE": str((asked.cpus_per_rank or 1) * ranks),
    }
    if asked.gpus_per_node:
        found |= dict.fromkeys(("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"), str(asked.gpus_per_node))
    return found


def translate(script: Script, target: str, gone: list[Node]) -> Iterator[Edit | Remark | Definition]:
    """Yield an edit for each renamed variable, a definition for those without a new name, and remarks.

    ``gone`` are nodes that another edit replaces as a whole.
    """
    other = names(script.scheduler, target)
    defined = definitions(script, target)
    own = {name for name, _, _ in script.assignments}
    seen: set[str] = set()
    for node, offset in _variables(script.tree, 0):
        name = node.text
        if name in own or any(_inside(node, offset, one) for one in gone):
            continue
        if name in other:
            start, end = node.start + offset, node.end + offset
            yield Edit(start, end, _spelt(node, other[name]))
        elif name in defined:
            if name not in seen:
                yield Definition(name, defined[name])
            seen.add(name)
        elif _foreign(name, target) and name not in seen:
            seen.add(name)
            yield Remark(node.line, f"${name}", "has no counterpart")


def _foreign(name: str, target: str) -> bool:
    if target == "slurm":
        return name.startswith("PBS_") and name != "PBS_NODEFILE"
    torques = ("PBS_GPUFILE",) if target == "pbspro" else ()
    return name.startswith("SLURM_") or name in torques


def _spelt(node: Node, name: str) -> str:
    """Return the name; in arithmetic, a job id of PBS is reduced to its number."""
    arithmetic = any(
        above.type in ("arithmetic_expansion", "compound_statement") and "((" in above.text[:3]
        for above in node.above()
    )
    bare = node.parent is not None and node.parent.type not in ("simple_expansion", "expansion")
    if name == "PBS_JOBID" and arithmetic and bare:
        return "${PBS_JOBID%%[!0-9]*}"
    return name


def _variables(root: Node, offset: int) -> Iterator[tuple[Node, int]]:
    """Yield each name that is read, also in the text of ``bash -c '...'``, and the offset of that text."""
    for node in root.all("variable_name", "raw_string", "string_content"):
        if node.type == "string_content":
            yield from ((one, offset) for one in _escaped(node))
            continue
        if node.type == "raw_string":
            command = next((above for above in node.above() if above.type == "command"), None)
            if command is not None and any(
                re.fullmatch(r"-[a-z]*c", child.text) for child in command.children
            ):
                yield from _variables(parse(node.text[1:-1].encode(), node.line), offset + node.start + 1)
        elif node.field != "name" or node.parent is None or node.parent.type != "variable_assignment":
            yield node, offset


def _escaped(node: Node) -> Iterator[Node]:
    """Yield the names after ``\\$`` in a string, which the shell that gets the string expands."""
    at = node.text.find("\\$")
    while at >= 0:
        start = node.start + len(node.text[: at + 2].encode())
        start += node.text[at + 2 :].startswith("{")
        end = start
        while end < node.end and (node.source[end : end + 1].isalnum() or node.source[end : end + 1] == b"_"):
            end += 1
        yield Node("variable_name", None, start, end, node.line, node.source, None)
        at = node.text.find("\\$", at + 2)


def inner_names(word: Node) -> set[str]:
    """Return the variables in the text of a quoted word that another shell expands."""
    if word.type == "raw_string":
        return {node.text for node, _ in _variables(parse(word.text[1:-1].encode()), 0)}
    return {one.text for node in word.all("string_content") for one in _escaped(node)}


def _inside(node: Node, offset: int, one: Node) -> bool:
    return one.start <= node.start + offset < one.end
