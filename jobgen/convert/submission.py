"""The arguments and the indices of an array that a script expects from its submission."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.check.bash import Node, expansions
from jobgen.check.script import Script
from jobgen.check.shell_commands import Command
from jobgen.convert import own_names
from jobgen.convert.remark import Remark
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.wanted import Wanted


def remarks(script: Script, source: Scheduler, target: Scheduler, wanted: Wanted) -> Iterator[Remark]:
    """Yield remarks on arguments and on an array that no directive names; note the latter in ``wanted``."""
    if found := _argument(script) if source.passes_arguments and target.argument_rule else None:
        line, text = found
        why = f"{target.command} of {target.title} takes no arguments of the script: {target.argument_rule}"
        yield Remark(line, text, why, lost=not target.passes_arguments)
    if script.request.array is None and (read := _index(script, source)):
        wanted.index_later = True
        how = f"{target.command} {target.array_form.format('FIRST-LAST')}"
        why = f"no directive makes an array: for one, submit with {how}"
        yield Remark(read[0], f"${read[1]}", why, lost=False)


def _argument(script: Script) -> tuple[int, str] | None:
    """Return the line and the text of the first argument of the script that it reads; None without one."""
    if any(_outside(command.node) and "--" in command.literals for command in script.named("set")):
        return None  # the script sets them itself
    found = [
        (node.line, node.text)
        for name, node in expansions(script.tree)
        if re.fullmatch(r"[1-9]\d*|[@*#]", name) and _outside(node)
    ]
    found += [(one.line, _first_line(one)) for one in script.named("getopts", "shift") if _outside(one.node)]
    return min(found, default=None)


def _first_line(command: Command) -> str:
    return command.node.text.split("\n")[0][:60]


def _outside(node: Node) -> bool:
    """Return whether a node is in no function, whose arguments are its own."""
    return not node.under("function_definition")


def _index(script: Script, source: Scheduler) -> tuple[int, str] | None:
    """Return the line and the name of the first variable of the array's index in the body; None without."""
    names = [name for name, meaning in source.job_variables.items() if meaning == "array_index"]
    own = own_names.kept(script)
    start = script.directives.first_command or len(script.lines) + 1
    for number, line in enumerate(script.lines[start - 1 :], start):
        for name in names:
            if name not in own and not line.lstrip().startswith("#") and re.search(rf"\b{name}\b", line):
                return number, name
    return None
