"""Translation of the scheduler's variables in the body: renamed if possible, otherwise set at the top."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import Node, parse
from jobgen.check.script import Script
from jobgen.convert.remark import Definition, Edit, Remark
from jobgen.launchers import DEFAULT_MPI, LAUNCHERS, MPI_FLAVOURS
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.request import Request
from jobgen.schedulers.table import SCHEDULERS


def _meanings(source: Scheduler) -> dict[str, str]:
    """Return the variables of a scheduler and its dialects, with their meanings."""
    known = (one.job_variables for one in SCHEDULERS.values() if one.family == source.family)
    return {name: meaning for variables in known for name, meaning in variables.items()}


def rank_names(source: Scheduler, target: Scheduler) -> dict[str, str]:
    """Return the new names of each rank's variables, if mpirun replaces the launcher of the scheduler."""
    if source.node_step not in LAUNCHERS or target.node_step:
        return {}
    old, new = LAUNCHERS[source.node_step].ranks, MPI_FLAVOURS[DEFAULT_MPI].ranks
    return {old.rank[1:]: new.rank[1:], old.local_rank[1:]: new.local_rank[1:]} if old else {}


def names(source: Scheduler, target: Scheduler) -> dict[str, str]:
    """Return the new names of the variables."""
    found = {
        name: new
        for name, meaning in _meanings(source).items()
        if name not in target.job_variables and (new := target.variable(meaning))
    }
    return {**found, **rank_names(source, target)}


def definitions(asked: Request, source: Scheduler, target: Scheduler) -> dict[str, str]:
    """Return the variables without a new name that can be set at the top of the script, with their values."""
    ranks, cpus = asked.ranks_per_node or 1, asked.cpus_per_rank or 1
    values = {
        **target.counts,
        "slots_per_node": str(asked.lines_per_node or 1),
        "ranks": str(asked.ranks or 1),
        "ranks_per_node": str(ranks),
        "cpus_per_rank": str(cpus),
        "cpus_per_node": str(cpus * ranks),
    }
    if asked.gpus_per_node:
        values["gpus_per_node"] = str(asked.gpus_per_node)
    new = {*names(source, target), *target.job_variables}
    known = _meanings(source).items()
    return {name: values[meaning] for name, meaning in known if meaning in values and name not in new}


def translate(
    script: Script, source: Scheduler, target: Scheduler, gone: list[Node]
) -> Iterator[Edit | Remark | Definition]:
    """Yield an edit for each renamed variable, a definition for those without a new name, and remarks.

    ``gone`` are nodes that another edit replaces as a whole.
    """
    other = names(source, target)
    defined = definitions(script.request, source, target)
    own = {name for name, _, _ in script.assignments}
    seen: set[str] = set()
    for node, offset in _variables(script.tree, 0):
        name = node.text
        if name in own or any(_inside(node, offset, one) for one in gone):
            continue
        if name in other:
            start, end = node.start + offset, node.end + offset
            yield Edit(start, end, _spelt(node, other[name], target))
        elif name in defined:
            if name not in seen:
                yield Definition(name, defined[name])
            seen.add(name)
        elif _foreign(name, target) and name not in seen:
            seen.add(name)
            yield Remark(node.line, f"${name}", "has no counterpart")


def _foreign(name: str, target: Scheduler) -> bool:
    """Return whether only other schedulers set a variable; the script itself sets their node file."""
    others = [one for one in SCHEDULERS.values() if one.family != target.family and one.variable_prefix]
    found = any(name.startswith(one.variable_prefix) for one in others)
    files = {one.variable("node_file") for one in others}
    written = name in files and target.write_node_file(name, 1)
    return name in target.unset_variables or (found and not written)


def _spelt(node: Node, name: str, target: Scheduler) -> str:
    """Return the name; in arithmetic, a job id that is not a number is reduced to one."""
    arithmetic = any(
        above.type in ("arithmetic_expansion", "compound_statement") and "((" in above.text[:3]
        for above in node.above()
    )
    bare = node.parent is not None and node.parent.type not in ("simple_expansion", "expansion")
    if target.job_number and name == target.variable("job_id") and arithmetic and bare:
        return target.job_number
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
