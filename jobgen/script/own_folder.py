"""Uses of files in the folder of a script, which in a job is that of a copy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from jobgen.script.command_kinds import PRINT
from jobgen.script.folder_words import OWN, expansion, folder_pattern, resolved
from jobgen.script.script import Script
from jobgen.script.syntax import Node, exported

COPY = (
    "a job runs a copy of its script in a spool folder of the node: the files beside the script are not there"
)
_KNOWS_COPY = re.compile(r"slurm_script|mom_priv|\bspool\b|\bCommand\b")  # as in the output of scontrol
_NAMES_ITSELF = re.compile(rf"\$\{{?(?:{OWN})(?!\w)")
_ITS_NAME = r"/(?:(?:\$\(|`)\s*basename|\$\{0##)"  # which the copy has, too
_NO_FILES = PRINT | {"[", "[[", "test", "dirname", "basename", "realpath", "readlink"}
_CONDITIONAL = ("if_statement", "case_statement", "command_substitution")


def uses_of_folder(script: Script) -> Iterator[Node]:
    """Yield the commands, redirections and exported paths for files in the folder of the script.

    Conditional ones are left out, and scripts that know their copy, or that other files start or include.
    """
    text = script.tree.text
    is_known = not _NAMES_ITSELF.search(text) or _KNOWS_COPY.search(text)
    if not script.directives.live or is_known or script.callers.completed:
        return
    folder = re.compile(rf"(?:^|[=:]){_folder_of(script)}(?!{_ITS_NAME})")
    places = [(one.node, one.words) for one in script.runs if one.name not in _NO_FILES]
    places += [
        (node, (value,))
        for name, value, node in script.assignments
        if exported(node)
        and (name.endswith("PATH") or "/" in script.constants.text(value).rpartition(")")[2])
    ]
    files = ((one, one.get("destination")) for one, _ in script.redirections)
    places += [(one, (file,)) for one, file in files if file is not None]
    for node, words in sorted(places, key=lambda one: one[0].start):
        found = any(folder.search(script.constants.text(word)) for word in words)
        firsts = (one.children[0] for one in node.above() if one.type == "list")
        is_tested = any(one.type == "test_command" and one.end <= node.start for one in firsts)
        if found and not node.under(*_CONDITIONAL) and not is_tested:
            yield node


def _folder_of(script: Script) -> str:
    """Return a pattern of the words that name the folder, also by variables."""
    values = {name: node.text for name in script.values if (node := script.constants.node(name)) is not None}
    paths = _with_value(values, resolved(expansion(OWN)))
    folders = _with_value(values, folder_pattern(paths))
    return folder_pattern(paths, folders)


def _with_value(values: Mapping[str, str], pattern: str) -> list[str]:
    """Return the variables whose values match."""
    return [name for name, text in values.items() if re.fullmatch(rf"[\"']?{pattern}[\"']?", text)]
