"""The scripts that a script hands to sbatch or qsub in a here-document, or writes and submits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from jobgen.script.commands import Command
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.script import Script
from jobgen.script.syntax import Node
from jobgen.script.written_files import written

_SUBMIT = {row.command for row in DIALECTS.values() if row.command}
_QUOTED = r"<<-?\s*['\"\\]"  # the delimiter of a here-document that is not expanded
# What the outer shell replaces in a here-document without quotes, before the scheduler reads it.
_REPLACED = re.compile(r"(?<!\\)(\$\{[^{}]*\}|\$\(\([^()]*\)\)|\$\([^()]*\)|\$\w+|`[^`]*`)")


def expanded_texts(script: Script) -> list[Node]:
    """Return the here-documents for sbatch and qsub, and the words of --wrap, that a shell expands before."""
    found: dict[int, Node] = {}
    for command in script.commands:
        if command.name not in _SUBMIT:
            continue
        body = _input(command.node) or _written(script, command)
        if body is not None and body.parent is not None and not re.match(_QUOTED, body.parent.text):
            found[body.start] = body
        for before, word in pairwise(command.words):
            if before.text == "--wrap" or word.text.startswith("--wrap="):
                found[word.start] = word
    return [found[start] for start in sorted(found)]


class Submitted(NamedTuple):
    """A script in a here-document: the number of lines above it, its text, and whether further options may be
    given. ``dollar`` is the text of a ``$`` there that its own shell expands."""

    above: int
    source: bytes
    has_options: bool
    dollar: str


def scripts(script: Script) -> Iterator[Submitted]:
    for command in script.commands:
        body = _input(command.node) or _written(script, command) if command.name in _SUBMIT else None
        if body is not None:
            text = _read(body)
            has_options = bool(command.arguments) or "##" in text.split("\n")
            yield Submitted(body.line - 1, text.encode(), has_options, _dollar(body))


def _dollar(body: Node) -> str:
    """Return a ``$`` that the outer shell passes on. (Backquotes remove one more backslash.)"""
    if body.parent is not None and re.match(_QUOTED, body.parent.text):
        return "$"
    return r"\\\$" if _in_backquotes(body) else r"\$"


def _in_backquotes(body: Node) -> bool:
    around = body.around("command_substitution")
    return around is not None and around.text.startswith("`")


def _written(script: Script, command: Command) -> Node | None:
    """Return the here-document that cat has written to the file which a command submits."""
    names, found = {word.unquoted for word in command.arguments}, None
    for node, sign, name in written(script):
        if name not in names or node.start > command.node.start:
            continue
        whole = node.around("redirected_statement")
        if sign == ">>" or whole is None or not whole.text.startswith("cat"):
            return None
        found = next(whole.all("heredoc_body"), None)
    return found


def _input(command: Node) -> Node | None:
    """Return the here-document that a command reads: its own, or that of the pipeline into it."""
    goes_on = False
    for above in command.above():
        document = next(above.all("heredoc_body"), None)
        if above.type == "pipeline":
            goes_on = above.children[0].type == "|"
        elif above.type == "heredoc_redirect":
            return document if goes_on else None
        elif above.type != "negated_command":
            return document if above.type == "redirected_statement" else None
        if document is not None:
            return document
    return None


def _read(body: Node) -> str:
    """Return a here-document as the submit command reads it, with a word for each value that is not known."""
    begun = body.parent.text if body.parent is not None else ""
    text = re.sub(r"(?m)^\t+", "", body.text) if begun.startswith("<<-") else body.text
    if re.match(_QUOTED, begun):
        return text
    text = _unescaped(text) if _in_backquotes(body) else text
    lines: list[str] = []
    for line in text.split("\n"):
        known = _REPLACED.sub("value", line)
        # A directive whose value is not known is left out, and a line that may be one; below it is a command.
        directive = line.lstrip().startswith("#") and "!" not in line
        alone = re.sub(r"\s#.*", "", known).strip() == "value"
        below = any(re.match(r"\s*[^\s#]", above) for above in lines)
        given = known
        if known != line and (directive or alone):
            given = ":" if alone and below else "##"
        lines.append(_unescaped(given))
    return "\n".join(lines)


def _unescaped(text: str) -> str:
    return re.sub(r"\\([$`\\])", r"\1", text)
