"""Places that set OMP_NUM_THREADS without an assignment: other commands of the shell, and files that a script
reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.convert.to_job_file.inherited import is_own_file
from jobgen.convert.unread_files import File, is_of_system
from jobgen.script.beside import name_and_text
from jobgen.script.commands import Command
from jobgen.script.script import Script
from jobgen.script.syntax import Node
from jobgen.script.written_files import written

NAME = "OMP_NUM_THREADS"
# Expansions, sums, commands and loops that set it, and lists of names in braces.
_SETS = re.compile(
    rf"\$\{{{NAME}:?=|\(\([^\n]*(?<!\$){NAME}\s*[-+*/]?=(?!=)|\b(let|eval)\b[^\n]*\b{NAME}\s*[-+*/]?=(?!=)"
    rf"|\b(read\b|printf -v)[^\n;|&$]*\s{NAME}\b|\bfor \w+ in [^\n;]*(?<!\$){NAME}\b|<\([^\n]*\b{NAME}="
    r"|\bexport [^\n;]*\{[^}\n ]*\bOMP\b[^}\n ]*\}_NUM_THREADS="
)
_IN_FILE = re.compile(rf"(?m)^(?:[^#\n]*[\s;])?(?:export\s+)?{NAME}=")
_EXPORT = re.compile(rf"(?m)^\s*export\s+{NAME}=[\"']?(\d+)[\"']?\s*(?:#.*)?$")
# Variables of a file that a script hands on as words: export $(cat .env)
_AS_WORDS = re.compile(r"export\s+\"?(?:\$\(|`)[^\n]*?([\w./-]*\.?\w*env\w*)\b")

_WITHOUT = re.compile(r"(?i)func(tion)?s?\b|wrapper|versions?\b|\.ver\b")  # files for other things


def otherwise(script: Script) -> Iterator[tuple[Node, str | None]]:
    """Yield each place that sets the variable without an assignment, and the value; None if it is unknown."""
    for node in script.tree.children:
        code = node.type != "comment" and next(node.all("heredoc_body"), None) is None
        if code and _SETS.search(node.text):
            yield node, None
    for node, path in _readings(script):
        text = (name_and_text(script, path)[1] or b"").decode(errors="replace")
        if sets := _IN_FILE.findall(text):
            value = _EXPORT.search(text)
            certain = len(sets) == 1 and not node.under("function_definition")
            yield node, value[1] if value is not None and certain else None


def unread(script: Script) -> Iterator[tuple[Node, str]]:
    """Yield each place that reads a file of the user which is not there, and its path."""
    own = {os.path.basename(name) for _, _, name in written(script)}
    for node, path in _readings(script):
        if name_and_text(script, path)[1] is None and os.path.basename(path) not in own:
            yield node, path


def _readings(script: Script) -> Iterator[tuple[Node, str]]:
    for one in script.named("source", "."):
        if path := _own_file(script, one):
            yield one.node, path
    for node in script.tree.all("declaration_command"):
        if match := _AS_WORDS.match(node.text):
            yield node, match[1]


def _own_file(script: Script, command: Command) -> str:
    """Return the path of a file of the user that a command reads, and which may set any variable."""
    path = script.constants.text(command.arguments[0]).strip("\"'") if command.arguments else ""
    own = is_own_file(command) and not re.match(r"[<$]\(|`", path) and not _WITHOUT.search(path)
    return path if own and not is_of_system(File(path, command.line, True)) else ""
