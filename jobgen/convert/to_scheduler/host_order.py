"""Lists of hosts that a script sorts: schedulers list the hosts of a job in different orders."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from jobgen.convert.result import Remark, hint, shown
from jobgen.script.commands import Command
from jobgen.script.dialects.base import Dialect
from jobgen.script.script import Script
from jobgen.script.syntax import Node, uses

_AROUND = ("pipeline", "redirected_statement")


def remarks(script: Script, lists: Collection[Node], target: Dialect) -> Iterator[Remark]:
    """Yield a remark on each ``sort`` that reads the hosts which one of these commands lists."""
    if script.request.nodes == 1:
        return
    names = {name for name, value, _ in script.assignments if any(one in value for one in lists)}
    around = (above for one in lists for above in one.above() if above.type == "redirected_statement")
    files = {_path(script, file) for one in around for sign, file in _redirections(one) if ">" in sign}
    why = (
        f"{script.dialect.title} lists the hosts in the order of their names, {target.title} in that of the "
    )
    why += "allocation: the first of the sorted list may be another one than that of the script"
    for command in script.named("sort"):
        whole = _statement(command)
        read = {_path(script, one) for one in _inputs(script, whole)}
        hosts = any(one in whole for one in lists) or read & files or uses(whole, *names)
        later = (one for one in script.commands if command.node.end <= one.node.start < whole.end)
        counted = any(one.name == "wc" or (one.name == "grep" and "-c" in one.literals) for one in later)
        if lists and hosts and not counted:
            yield hint(command.line, shown(whole), why)


def _redirections(statement: Node) -> Iterator[tuple[str, Node]]:
    """Yield the sign and the file of each redirection of a statement."""
    for one in statement.children:
        if one.type == "file_redirect" and (file := one.get("destination")) is not None:
            yield one.text[: file.start - one.start].strip(), file


def _statement(command: Command) -> Node:
    """Return the pipeline of a command with its redirections, or else the command."""
    node = command.node
    while node.parent is not None and node.parent.type in _AROUND:
        node = node.parent
    return node


def _inputs(script: Script, whole: Node) -> Iterator[Node]:
    """Yield the arguments and the input files of the commands in a pipeline."""
    for command in script.commands:
        if whole.start <= command.node.start < whole.end:
            yield from command.arguments
    for one in (whole, *whole.all("redirected_statement")):
        yield from (file for sign, file in _redirections(one) if sign.endswith("<"))


def _path(script: Script, word: Node) -> str:
    return script.constants.value(word) or re.sub(r"\$\{(\w+)\}", r"$\1", word.text.strip("\"'"))
