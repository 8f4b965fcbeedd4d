"""The address of the rendezvous that a script makes from the name of its first host, or from an interface."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.convert.to_job_file.builder import JobFile
from jobgen.script.constants import certain
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions, literal

_NAME = r"([A-Za-z][\w.-]*)"
_INTERFACE = (
    rf"\bip\s+(?:-\S+\s+)*a(?:ddr|ddress)?\s+(?:show|list|ls)\s+(?:dev\s+)?{_NAME}|\bifconfig\s+{_NAME}"
)
_HOST = r"(?i)hostname|NODEFILE|NODENAME|MASTER_ADDR"  # what the name of a host is made from


def master_addr(file: JobFile, script: Script) -> None:
    """Set the option to the text around the name of the first host, or to the interface that is read.

    On one node the ranks reach each other by its name, which other clusters have, too.
    """
    if file.values.get("nodes", 1) == 1:
        return
    before = after = interface = ""
    line = 0
    for name, value, assignment in script.assignments:
        if name != "MASTER_ADDR" or not certain(assignment):
            continue
        parts, line = list(_parts(value)), assignment.line
        if "MASTER_ADDR" not in value.text:
            before = after = interface = ""
        unknown = [at for at, one in enumerate(parts) if not isinstance(one, str)]
        if len(unknown) == 1 and re.search(_HOST, _source(script, value)):
            before = "".join(map(str, parts[: unknown[0]])) + before
            after += "".join(map(str, parts[unknown[0] + 1 :]))
        if match := re.search(_INTERFACE, value.text):
            interface = f"interface:{match[1] or match[2]}"
    text = interface or (f"{before}{{host}}{after}" if before or after else "")
    if text and file.accepts("master_addr", text):
        file.add("master_addr", text, line)


def _parts(value: Node) -> Iterator[str | Node]:
    """Yield the parts of a word: text, and nodes that only the job can expand."""
    if value.type in ("string", "concatenation"):
        for child in value.children:
            if child.type != '"':
                yield from _parts(child)
    else:
        text = literal(value)
        yield value if text is None else text


def _source(script: Script, value: Node) -> str:
    """Return the text of a value and of the variables that it reads."""
    read = (script.constants.node(name) for name, _ in expansions(value))
    return " ".join([value.text, *(one.text for one in read if one is not None)])
