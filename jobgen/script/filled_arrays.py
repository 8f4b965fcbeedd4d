"""The arrays that a script fills by elements or from a file, so that no assignment has their values."""

from __future__ import annotations

import re

from jobgen.script.commands import commands
from jobgen.script.syntax import Node

_KEYED = re.compile(r"(?:declare|typeset|local|readonly) -\w*A\w* (\w+)")
_OF_FILE = re.compile(r"(?:.* )?([A-Za-z_]\w*)$")
_WORDS = re.compile(r"(?:.* )?-\w*a (\w+)")
_ELEMENT = re.compile(r"['\"]?(\w+)\[")


def filled_arrays(root: Node) -> set[str]:
    """Return the arrays whose elements are set or removed, that have keys, or that a file or text fills."""
    targets = (one.get("name") for one in root.all("variable_assignment"))
    found = {one.text.partition("[")[0] for one in targets if one is not None and one.type == "subscript"}
    found |= {
        match[1] for one in root.all("declaration_command") for match in [_KEYED.match(one.text)] if match
    }
    for one in root.all("unset_command"):
        found |= {match[1] for word in one.children for match in [_ELEMENT.match(word.text)] if match}
    for command in commands(root):
        if command.name in ("mapfile", "readarray", "read"):
            text = " ".join(word.text for word in command.arguments)
            match = (_WORDS if command.name == "read" else _OF_FILE).match(text)
            found |= {match[1]} if match else set()
    return found
