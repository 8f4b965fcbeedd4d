"""Parts of a script that its scheduler or bash reads otherwise than a reader expects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.convert.result import Remark
from jobgen.script.command_kinds import PRINT
from jobgen.script.dialects.base import Dialect
from jobgen.script.directives import apart
from jobgen.script.script import Script


def unreadable(script: Script, source: Dialect) -> Iterator[Remark]:
    """Yield remarks on what the scheduler or bash reads otherwise than a reader expects."""
    for option in script.options:
        if option.missing:
            why = f"has no value: {source.command} refuses the script, or uses the next words as the value"
            yield Remark(option.line, option.given, why)
    for number in apart(script.lines, script.directives):
        why = f"{source.command} does not join it with the line above: it is a command"
        yield Remark(number, script.lines[number - 1].strip(), why)
    comments = script.lines[: script.directives.first_command or None]
    buffers = (at for at, line in enumerate(comments, 1) if re.match("#(DW|BB) ", line))
    if source.scheduler.node_step and (at := next(buffers, None)):
        why = f"is a directive for the burst buffer of {source.title}, and a comment in the new job"
        yield Remark(at, script.line(at).strip()[:60], why)
    errors = (node for node in script.tree.all("ERROR") if node.text.strip("\\ \n"))
    if wrong := next(errors, None):
        why = "cannot be read: check the commands from here on"
        yield Remark(wrong.line, script.lines[wrong.line - 1].strip()[:60], why)
    if b"\r\n" in script.source:
        why = "are removed: bash reads them as letters of the words"
        yield Remark(1, "carriage returns", why, lost=False)


def own_name(script: Script) -> Iterator[Remark]:
    """Yield a remark on each command that names the file of the script."""
    for command in script.commands:
        names = (word.text.strip("'\"").rpartition("/")[2] for word in command.arguments)
        if script.name and command.name not in PRINT and script.name in names:
            why = "is the file of this script, and not that of the new one"
            yield Remark(command.line, script.name, why, lost=False)


def in_directory(script: Script, source: Dialect) -> Iterator[Remark]:
    """Yield a remark on each program that srun finds in the working directory, and a shell does not."""
    step = source.scheduler.node_step
    launches = [one for one in script.launches if one.kind == step and one.program]
    starts = {one.command.node.start for one in launches}
    words = (word for one in script.commands if one.node.start not in starts for word in one.arguments)
    files = {word.text.strip("'\"").rpartition("/")[2] for word in words}
    for launch in launches:
        name = script.constants.value(launch.program[0]) or "/"
        made = name in files or re.search(r"\.(out|x|exe|bin|sh|bash|pl|jl)$", name)
        if "/" not in name and made:
            why = f"{step} finds it in the working directory, too: write ./{name} if it is there"
            yield Remark(launch.line, name, why, lost=False)
