"""Loops that read a list from their standard input, which commands in them may read, too."""

from __future__ import annotations

import re

from jobgen.script.syntax import Node

_READ = re.compile(r"(?:\w+=\S*\s+)?read\b(?!.*\s-[a-z]*u)")


def reads_list(loop: Node) -> bool:
    """Return whether the condition of a loop reads lines of the standard input, and may read several."""
    condition = loop.get("condition")
    reads = condition is not None and any(map(_READ.match, (one.text for one in condition.all("command"))))
    fed = loop.parent if loop.parent is not None and loop.parent.type == "pipeline" else None
    before = "" if fed is None else fed.text[: loop.start - fed.start]
    return reads and not re.search(r"\b(?:head|tail)\s+(?:-n\s*)?-?1(?:\s[^|;\n]*)?\|\s*$", before)
