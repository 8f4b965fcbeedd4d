"""The scripts that a script hands to sbatch or qsub in a here-document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.script.dialects.table import DIALECTS
from jobgen.script.script import Script
from jobgen.script.syntax import Node

_SUBMIT = {row.command for row in DIALECTS.values() if row.command}
# What the outer shell replaces in a here-document without quotes, before the scheduler reads it.
_REPLACED = re.compile(r"(?<!\\)(\$\{[^{}]*\}|\$\(\([^()]*\)\)|\$\([^()]*\)|\$\w+|`[^`]*`)")


def scripts(script: Script) -> Iterator[tuple[int, bytes, bool]]:
    """Yield the number of lines above each script, its text, and whether the command has options."""
    for command in script.commands:
        if command.name not in _SUBMIT:
            continue
        whole = command.node.parent
        body = next(whole.all("heredoc_body"), None) if whole is not None else None
        if body is not None:
            yield body.line - 1, _read(body).encode(), bool(command.arguments)


def _read(body: Node) -> str:
    """Return a here-document as the submit command reads it, with a word for each value that is not known."""
    begun = body.parent.text if body.parent is not None else ""
    text = re.sub(r"(?m)^\t+", "", body.text) if begun.startswith("<<-") else body.text
    if re.match(r"<<-?\s*['\"\\]", begun):
        return text
    lines = []
    for line in text.split("\n"):
        known = _REPLACED.sub("value", line)
        # A directive whose value is not known is left out, and a line that may be one.
        directive = line.lstrip().startswith("#") and "!" not in line
        alone = re.sub(r"\s#.*", "", known).strip() == "value"
        given = "##" if known != line and (directive or alone) else known
        lines.append(re.sub(r"\\([$`\\])", r"\1", given))
    return "\n".join(lines)
