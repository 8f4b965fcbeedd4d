"""The folder of a script as its text names it, by ``dirname "$0"`` and the like; in a job that of a copy."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from jobgen.script.command_kinds import PRINT
from jobgen.script.script import Script
from jobgen.script.syntax import Node, exported

COPY = (
    "a job runs a copy of its script in a spool folder of the node: the files beside the script are not there"
)
_KNOWS_COPY = re.compile(r"slurm_script|mom_priv|\bspool\b|\bCommand\b")  # as in the output of scontrol
_OWN = r"0|BASH_SOURCE(?:\[0\])?"
_NAMES_ITSELF = re.compile(rf"\$\{{?(?:{_OWN})(?!\w)")
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
    places += [
        (one, (file,)) for one, _ in script.redirections if (file := one.get("destination")) is not None
    ]
    for node, words in sorted(places, key=lambda one: one[0].start):
        found = any(folder.search(script.constants.text(word)) for word in words)
        if found and not node.under(*_CONDITIONAL) and not _is_tested(node):
            yield node


def _folder_of(script: Script) -> str:
    """Return a pattern of the words that name the folder, also by variables."""
    values = {name: node.text for name in script.values if (node := script.constants.node(name)) is not None}
    paths = _with_value(values, _resolved(_expansion(_OWN)))
    folders = _with_value(values, folder_pattern(paths))
    return folder_pattern(paths, folders)


def _with_value(values: Mapping[str, str], pattern: str) -> list[str]:
    """Return the variables whose values match."""
    return [name for name, text in values.items() if re.fullmatch(rf"[\"']?{pattern}[\"']?", text)]


def folder_pattern(paths: Collection[str] = (), folders: Collection[str] = ()) -> str:
    """Return a pattern of the words for the folder, by variables with its path or that of the script."""
    own = "|".join((_OWN, *paths))
    folder = rf"(?:{_output('dirname(?: --)?', _resolved(_expansion(own)))}|\$\{{(?:{own})%/\*\}})"
    start = rf"(?:{folder}|{_expansion('|'.join(folders))})" if folders else folder
    moves = rf"(?:cd|pushd)(?: -\S+)* [\"']?{start}[\"']?(?:/\.\.)*[\"']?[^|;)]*(?:&&|;)\s*pwd(?: -\w+)*"
    return rf"(?:{_resolved(folder)}|(?:\$\(|`)\s*{moves}\s*[)`])"


def _expansion(names: str) -> str:
    return rf"\$(?:\{{(?:{names})\}}|(?:{names})\b)"


def _resolved(path: str) -> str:
    """Return a pattern of a path, or of a command that prints its absolute form."""
    return rf"(?:[\"']?{path}[\"']?|[\"']?{_output('(?:realpath|readlink)(?: -[-a-z]+)*', path)}[\"']?)"


def _output(command: str, word: str) -> str:
    return rf"(?:\$\(|`)\s*{command} [\"']?{word}[\"']?\s*[)`]"


def _is_tested(node: Node) -> bool:
    """Return whether a command runs only if a test of a list is true."""
    lists = (one for one in node.above() if one.type == "list")
    return any(one.children[0].type == "test_command" and one.children[0].end <= node.start for one in lists)
