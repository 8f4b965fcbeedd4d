"""The environment of the ranks: what the script exports, and what the launcher passes on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import LATER, Node, exported, literal

_ELSEWHERE = (
    "function_definition",
    "command_substitution",
    "process_substitution",
    "subshell",
    "heredoc_body",
)
# Files that set up a shell, and export what they set.
_ACTIVATES = re.compile(r"activate|bashrc|profile|conda|modules?\b|lmod|init|spack", re.I)
_PRINTS = ("echo", "printf", "test", "[", "logger")


def assigned_only(script: Script, name: str, before: int) -> Node | None:
    """Return the assignment of a variable that no command exports, so that no program gets it.

    None as well if that is not certain. ``before`` is the position of the program.
    """
    found = [node for one, _, node in script.assignments if one == name]
    inside = any(exported(node) or _is_prefix(node) or node.under(*_ELSEWHERE) for node in found)
    if not found or inside or found[0].start > before or _exports_all(script):
        return None
    if any(name in words or "*" in words for words in _declarations(script)) or _reads_settings(script):
        return None
    return found[0]


def _is_prefix(assignment: Node) -> bool:
    """Return whether the assignment is that of one command, or of an array."""
    parent = assignment.parent
    value = assignment.get("value")
    return (parent is not None and parent.type == "command") or (value is not None and value.type == "array")


def _declarations(script: Script) -> Iterator[set[str]]:
    """Yield the names that each export, declare or typeset names; ``*`` if a substitution gives them."""
    for node in script.tree.all("declaration_command"):
        substitution = next(node.all("command_substitution"), None) is not None
        parts = [part.text for part in node.children]
        if parts[0] == "export" or "-x" in parts:
            names = {part.text for part in node.all("variable_name", "word")}
            yield names | (
                {"*"} if substitution and not next(node.all("variable_assignment"), None) else set()
            )


def _exports_all(script: Script) -> bool:
    return any({"-a", "allexport"} & set(one.literals) for one in script.named("set")) or any(
        re.match(r"#!\S+ -\w*a", line) for line in script.lines[:1]
    )


def _reads_settings(script: Script) -> bool:
    """Return whether a file of settings may export a variable, or a command that is text does so."""
    return any(not _ACTIVATES.search(one.node.text) for one in script.named("source", ".", "eval"))


def is_used(script: Script, name: str) -> bool:
    """Return whether the text reads a variable for anything but a message."""
    for one, node in script.expansions:
        if one == name:
            command = next((above for above in node.above() if above.type == "command"), None)
            printer = (
                command is not None and (word := command.get("name")) is not None and word.text in _PRINTS
            )
            written = command is not None and command.under(
                "redirected_statement", "pipeline", "command_substitution"
            )
            if not printer or written:
                return True
    quoted = (node for node in script.tree.all("raw_string", "heredoc_body"))
    return any(re.search(rf"\b{name}\b", node.text) for node in quoted)


def passed_names(script: Script, launch: Launch) -> frozenset[str] | None:
    """Return the variables of the script that srun passes to its tasks; None for all of them, or if unknown."""
    value = launch.options.get("--export")
    if launch.has("--export"):
        return _names(value) if value is not None else None
    if any(name == "SLURM_EXPORT_ENV" for name, _, _ in script.assignments) or any(
        "SLURM_EXPORT_ENV" in one.literals for one in script.named("unset")
    ):
        return None
    if any(
        node.text.startswith("unset") and "SLURM_EXPORT_ENV" in node.text
        for node in script.tree.all("unset_command")
    ):
        return None
    option = script.heeded.get("--export")
    return None if option is None else _names(option.value)


def _names(value: str) -> frozenset[str] | None:
    """Return the names in a value of ``--export``; None with ALL."""
    parts = value.strip("\"'").split(",")
    if "ALL" in parts or not all(re.match(r"[A-Za-z_]\w*(=|$)", part) for part in parts):
        return None
    return frozenset(part.partition("=")[0] for part in parts) - {"NONE", "NIL"}


def sets_before(script: Script, at: int) -> list[str]:
    """Return what the script puts into its environment above a position: variables, and commands that do so."""
    found = [
        name for name, _, node in script.assignments if node.start < at and _is_exported(script, name, node)
    ]
    loads = [one for one in script.named("module", "ml", "source", ".", "conda") if one.node.start < at]
    return [*dict.fromkeys(found), *dict.fromkeys(" ".join([one.name, *one.literals[:2]]) for one in loads)]


def _is_exported(script: Script, name: str, assignment: Node) -> bool:
    declared = assignment.parent is not None and assignment.parent.type == "declaration_command"
    return (declared and exported(assignment)) or any(name in words for words in _declarations(script))


def in_effect(script: Script, name: str, at: int) -> Node | None:
    """Return the value of an exported variable at a position, if the text determines which assignment holds."""
    found = [
        (value, node)
        for one, value, node in script.assignments
        if one == name and not (node.parent is not None and node.parent.type == "command")
    ]
    sure = len(found) == 1 and found[0][1].start < at and not found[0][1].under(*LATER, *_ELSEWHERE)
    return found[0][0] if sure and _is_exported(script, name, found[0][1]) else None


def text_of(script: Script, value: Node) -> str:
    """Return a value as text: what it evaluates to, or else as it is written."""
    return script.constants.value(value) or literal(value) or value.text.strip("\"'")
