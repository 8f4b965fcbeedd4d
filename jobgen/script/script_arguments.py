"""The arguments of a script that its commands read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jobgen.options import BY_KEY, CODE
from jobgen.schedulers.base import Scheduler
from jobgen.script.calls import new_arguments
from jobgen.script.commands import Command, commands
from jobgen.script.syntax import Node, expansions, parse
from jobgen.spec import Specification

_MAY_READ = re.compile(r"\$\{?[#!]?[1-9@*#]|\b(getopts|shift)\b")


def reads(tree: Node, found: Sequence[Command]) -> list[tuple[int, str]]:
    """Return the line and the text of each read of an argument.

    Functions have arguments of their own, and behind ``set`` there are others. ``found`` are the commands of
    the tree.
    """
    own = (one.node.end for one in found if _outside(one.node) and _sets(one))
    end = min(own, default=tree.end)
    places = [
        (node.start, node.line, node.text)
        for name, node in expansions(tree)
        if re.fullmatch(r"[1-9]\d*|[@*#]", name) and _outside(node)
    ]
    places += [
        (one.node.start, one.line, one.node.text.split("\n")[0][:60])
        for one in found
        if one.name in ("getopts", "shift") and _outside(one.node)
    ]
    return [(line, text) for start, line, text in sorted(places) if start < end]


def first_read(code: str) -> str:
    """Return the text of the first read of an argument in some code; empty without one."""
    if not _MAY_READ.search(code):
        return ""
    tree = parse(code.encode())
    return next((text for _, text in reads(tree, list(commands(tree)))), "")


def warnings(spec: Specification, scheduler: Scheduler) -> Iterator[str]:
    """Yield a warning on arguments that blocks of a job read, if the scheduler passes none."""
    if scheduler.behaviour.passes_arguments:
        return
    code = {BY_KEY[key].name: getattr(spec, key) for key in CODE}
    found = [f"{text} ({place})" for place, code_of in code.items() if (text := first_read(code_of or ""))]
    if found:
        why = f"{scheduler.title} passes no arguments to a script, and its code reads {', '.join(found)}"
        yield f"{why}: use a variable, and {scheduler.command} -v NAME=VALUE"


def _sets(command: Command) -> bool:
    """Return whether a command sets the arguments, also as ``eval set -- WORDS``."""
    by_eval = command.name == "eval" and "set" in [word.unquoted[:3] for word in command.arguments[:1]]
    return by_eval or new_arguments(command) is not None


def _outside(node: Node) -> bool:
    """Return whether a node is in no function, whose arguments are its own."""
    return not node.under("function_definition")
