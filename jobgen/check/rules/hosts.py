"""Rules about the list of hosts: how it is counted and sorted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import Node, uses
from jobgen.check.rule import WARNING, Rule
from jobgen.check.script import Hit, Script
from jobgen.check.shell_commands import Command

_LISTS = (
    "PBS_NODEFILE",
    "SLURM_JOB_NODELIST",
    "SLURM_NODELIST",
    "PE_HOSTFILE",
    "LSB_DJOB_HOSTFILE",
    "PBS_GPUFILE",
)


def _pipeline(command: Command) -> Node:
    """Return the pipeline of a command, or the command with its redirections."""
    node = command.node
    for above in node.above():
        if above.type not in ("redirected_statement", "pipeline"):
            break
        node = above
    return node


def _names(node: Node) -> list[str]:
    return [word.text for word in node.all("command_name")]


def nodefile_count(script: Script) -> Iterator[Hit]:
    """Yield a hit if the lines of the node file are counted as nodes: they are slots."""
    for name, value, node in script.assignments:
        # The name of the variable shows what it counts.
        if not re.search(r"node|host|nnod", name, re.I) or re.search(
            r"proc|rank|slot|file|per|gpu|core", name, re.I
        ):
            continue
        inside = _names(value)
        if "wc" not in inside or not uses(value, "PBS_NODEFILE") or {"sort", "uniq", "awk"} & set(inside):
            continue
        each = script.request.lines_per_node
        if each != 1:
            yield Hit(
                node.line,
                "$PBS_NODEFILE has one line a slot"
                + (f", here {each} for each node" if each else "")
                + ": this is not the number of nodes",
                'count each host once: sort -u "$PBS_NODEFILE" | wc -l',
            )


def sorted_nodefile(script: Script) -> Iterator[Hit]:
    for command in script.named("sort"):
        whole = _pipeline(command)
        if (not uses(whole, *_LISTS) and "scontrol" not in whole.text) or {"wc", "grep", "tail"} & set(
            _names(whole)
        ):
            continue
        unique = "-u" in command.literals or "uniq" in _names(whole)
        # The order matters in a file, in an array, and if the first host is taken.
        written = whole.type == "redirected_statement" and any(True for _ in whole.all(">"))
        kept = written or (
            whole.under("command_substitution") and (whole.under("array") or "head" in _names(whole))
        )
        if unique and kept and not _inside_count(whole):
            yield Hit(
                command.line,
                "sort changes the order of the hosts: the first is no longer the one that runs this script",
                "keep the order: awk '!seen[$1]++' \"$PBS_NODEFILE\"",
            )


def _inside_count(node: Node) -> bool:
    """Return whether only the number of hosts is used, as in ``$(... | wc -l)``."""
    return any(above.type == "command_substitution" and "wc" in _names(above) for above in node.above())


RULES = (
    Rule("nodefile-count", WARNING, "Slots counted as nodes", nodefile_count),
    Rule("sorted-hosts", WARNING, "Hosts in another order", sorted_nodefile),
)
