"""The variables of the scheduler that a script sets itself, in any case or only if they are missing."""

from __future__ import annotations

from jobgen.script.constants import certain
from jobgen.script.script import Script


def kept(script: Script) -> set[str]:
    """Return the variables that the script sets in any case before it reads them."""
    read: dict[str, int] = {}
    for name, node in script.expansions:
        read.setdefault(name, node.start)
    return {
        name for name, _, node in script.assignments if certain(node) and read.get(name, node.end) >= node.end
    }


def shared(script: Script) -> set[str]:
    """Return the variables that the script sets in some cases only: otherwise they are the scheduler's."""
    return {name for name, _, _ in script.assignments} - kept(script)
