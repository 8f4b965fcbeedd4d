"""The rule about scripts that bash cannot read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.check.unclosed import Fault, fault
from jobgen.script.other_text import is_for_engine
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import Node

_PLACEHOLDER = re.compile(r"(?<!<)<[A-Za-z?][^<>]*>")
_CONFLICT = re.compile(r"<{7} |={7}$|>{7} ")
_AFTER_COMMANDS: tuple[list[str], ...] = ([], ["done"], ["fi"], ["elif_clause"], ["else_clause"])
_RESERVED = ("then", "do", "elif", "else", "fi", "done", "esac", "}")  # no command has such a name
# The marks of templates, which become code of bash later.
_TEMPLATE = re.compile(r"\{\{|\{%|<%|%>|(?<!\w)@[A-Za-z]\w*@|%\(\w+\)[sd]")


@rule(
    "syntax-error",
    ERROR,
    "A script that bash cannot read",
    """bash reads a script while it runs: the job starts, waits and runs up to the command with the error, and ends there.
    Often a `fi`, a `done`, a quote or a parenthesis is missing. The line is that of the word that is not closed. (A
    here-document without its last line is a warning: bash takes all lines below for a part of it, and runs none of
    them. In an `if` or a loop it is an error: the `fi` or `done` is a part of it, too. A placeholder such as `<path>` is a note.)""",
    bad="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    if [ ! -d results ]; then
        mkdir -p results
    srun /opt/site/solver
    """,
    good="""
    #!/bin/bash
    #SBATCH --time=01:00:00
    set -euo pipefail
    if [ ! -d results ]; then
        mkdir -p results
    fi
    srun /opt/site/solver
    """,
)
def syntax_error(script: Script) -> Iterator[Hit]:
    if found := _fault(script):
        reason = found.reason if found.runs else f"bash cannot read the script: {found.reason}"
        if _PLACEHOLDER.search(script.line(found.line)):
            yield Hit(found.line, reason, "fill in the placeholder", NOTE)
        else:
            conflict = _CONFLICT.match(script.line(found.line))
            fix = "resolve the conflict that git has left" if conflict else found.fix
            yield Hit(found.line, reason, fix, WARNING if found.runs else None)


@lru_cache(maxsize=8)
def _fault(script: Script) -> Fault | None:
    if not _is_doubtful(script) or not _for_bash(script) or _is_template(script):
        return None
    return fault(script.tree.source.decode("utf-8", "replace"))


def cannot_be_read(script: Script) -> bool:
    """Return whether bash ends a script with an error of its syntax: its status is not 0."""
    found = _fault(script)
    return found is not None and not found.runs


def _is_doubtful(script: Script) -> bool:
    """Return whether the tree has an error, or a part that bash may read in another way."""
    tree = script.tree
    return (
        tree.damaged
        or any(script.named(*_RESERVED))
        or any(map(_ends_elsewhere, tree.all("heredoc_redirect")))
        or any(map(_is_empty, tree.all("do_group", "if_statement", "elif_clause", "else_clause")))
        or any(one.parent is not None and one.parent.type == "command" for one in tree.all("subshell"))
    )


def _is_empty(node: Node) -> bool:
    """Return whether a part of a loop or a condition has no command."""
    words = [one.type for one in node.children if one.type != "comment"]
    begins = [at for at, word in enumerate(words) if word in ("do", "then", "else")]
    return any(words[at + 1 : at + 2] in _AFTER_COMMANDS for at in begins)


def _ends_elsewhere(document: Node) -> bool:
    """Return whether bash does not end a here-document where the tree does: at a line with nothing else."""
    end = next((one for one in document.children if one.type == "heredoc_end"), None)
    if end is None:
        return True
    begun = end.source.rfind(b"\n", 0, end.start) + 1
    tabs = b"\t" if document.text.startswith("<<-") else b""
    before = end.source[begun : end.start].strip(tabs) if tabs else end.source[begun : end.start]
    return bool(before) or end.source[end.end : end.end + 1] not in (b"", b"\n")


def _for_bash(script: Script) -> bool:
    first = script.lines[0] if script.lines else ""
    if re.match(r"\.\w*(rc|profile|login|aliases)$", script.name):
        return False  # of another shell, if it has no first line
    return not first.startswith("#!") or re.match(r"#!.*?\b(ba|da)?sh\b", first) is not None


def _is_template(script: Script) -> bool:
    ends = {line.rstrip()[-3:] for line in script.lines}
    if {"<1>", "<2>"} <= ends:
        return True  # the numbers by which a text in AsciiDoc explains the lines
    return (
        1 in script.gaps or is_for_engine(script.name) or any(_TEMPLATE.search(line) for line in script.lines)
    )
