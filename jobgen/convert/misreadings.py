"""Parts of a script that its scheduler or bash reads otherwise than a reader expects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.convert.result import Remark
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
