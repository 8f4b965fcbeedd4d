"""The commands of a script."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from jobgen.launch.command_line import is_python
from jobgen.launch.wrappers import command_start
from jobgen.script.syntax import Node, in_background, literal, statement, uses

# Commands that do the work of the job: their exit status must not be lost.
_WORK = {"srun", "mpirun", "mpiexec", "torchrun", "deepspeed", "accelerate", "aprun", "colossalai"}


class Command(NamedTuple):
    """A simple command. ``name`` is its first word without directories, "" if unknown."""

    node: Node
    name: str
    words: tuple[Node, ...]
    line: int

    @property
    def arguments(self) -> tuple[Node, ...]:
        return self.words[1:]

    @property
    def literals(self) -> list[str]:
        """The arguments that are plain text."""
        return [text for word in self.arguments if (text := literal(word)) is not None]

    @property
    def statement(self) -> Node:
        return statement(self.node)

    def files(self, *signs: str) -> list[Node]:
        """Return the files of the redirections with these signs, or all."""
        whole = self.node.parent
        if whole is None or whole.type != "redirected_statement":
            return []
        found = [one for one in whole.children if one.type == "file_redirect"]
        found = [one for one in found if not signs or any(part.type in signs for part in one.children)]
        return [file for one in found if (file := one.get("destination")) is not None]

    @property
    def guarded(self) -> bool:
        """Return whether the script handles a failure: by ``||``, ``&&``, ``if``, ``while`` or ``!``."""
        node = self.node
        for above in node.above():
            if above.type == "list" and above.children[-1] is not node:
                return True
            if above.type == "negated_command" or node.field == "condition":
                return True
            group = above.type in ("subshell", "compound_statement") and not _is_last(node)
            if group or above.type not in _WITH_ITS_STATUS:
                return False
            node = above
        return False

    @property
    def tested(self) -> bool:
        """Return whether the next statement reads the exit status of this one."""
        return self.test is not None

    @property
    def test(self) -> Node | None:
        """The next statement, if it reads the exit status of this one."""
        after = _next(self.statement)
        return after if after is not None and uses(after, "?") else None

    @property
    def program(self) -> str:
        """Return the name of the program that nice, apptainer exec and the like run; "" if it is unknown."""
        return os.path.basename(self._behind_wrappers[0] or "")

    @property
    def program_word(self) -> Node:
        """The word that names this program."""
        return self.words[len(self.words) - len(self._behind_wrappers)]

    @property
    def works(self) -> bool:
        """Return whether the command does the job's work, so that its exit status must not be lost."""
        is_query = is_python(self.program) and "-c" in self._behind_wrappers[1:2]
        return (self.program in _WORK or is_python(self.program)) and not is_query

    @property
    def _behind_wrappers(self) -> list[str | None]:
        first, *others = self.words
        texts = [literal(first), *(literal(word) or _path(word) for word in others)]
        return texts[command_start(texts) :] or [None]

    @property
    def background(self) -> bool:
        return in_background(self.node)


def _path(word: Node) -> str | None:
    """Return a word with variables, if it is a path, and no option."""
    return word.unquoted if "/" in word.text else None


# What has the status of the last command in it.
_WITH_ITS_STATUS = ("redirected_statement", "pipeline", "list", "subshell", "compound_statement")


def _next(statement: Node) -> Node | None:
    """Return what follows a statement."""
    after = statement.next()
    while after is not None and after.type in (";", "comment"):
        after = after.next()
    return after


def _is_last(statement: Node) -> bool:
    """Return whether no command follows a statement in its group."""
    after = _next(statement)
    return after is None or after.type in (")", "}")


def host_of_ssh(texts: Sequence[str]) -> str:
    """Return the host in the words of a command with ssh; empty if it is known only when the job runs."""
    names = (at for at, text in enumerate(texts) if os.path.basename(text) in ("ssh", "rsh"))
    pairs = pairwise(texts[next(names, len(texts)) :])
    hosts = (word for before, word in pairs if word[:1] != "-" and not _WITH_VALUE.fullmatch(before))
    found = re.fullmatch(r"(?:[\w.]+@)?([A-Za-z][\w.-]*)", next(hosts, ""))
    return found[1] if found else ""


_WITH_VALUE = re.compile(r"-[A-Za-z]*[BbcDEeFIiJLlmOopQRSWw]")  # options of ssh


def names_command(text: str, name: str) -> bool:
    """Return whether a text has the name of a command as a word."""
    return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w.-])", text) is not None


def commands(root: Node) -> Iterator[Command]:
    """Yield all commands below a node."""
    for node in root.all("command"):
        name = node.get("name")
        if name is None or _goes_on(name) or _is_sum(node):
            continue
        plain = literal(name) or ""
        words = (name, *(child for child in node.children if child.field == "argument"))
        yield Command(node, os.path.basename(plain), (*words, *_behind(node)), node.line)


def _goes_on(name: Node) -> bool:
    """Return whether a line goes on with a part of the value above it: ``a="b "\\`` and ``"c"`` below."""
    before = name.previous()
    return before is not None and name.source[before.end : name.start] == b"\\\n"


def _is_sum(command: Node) -> bool:
    """Return whether tree-sitter has read a sum in an expansion, ``${A:-$((B / 2))}``, as a command."""
    above = command.parent
    whole = above.parent if above is not None and above.type == "subshell" else None
    return whole is not None and whole.text.startswith("$((") and len(whole.children) == 3


def _behind(command: Node) -> Iterator[Node]:
    """Yield the arguments behind a redirection: ``a > log --steps 3``. They are in its node."""
    above = command.parent
    if above is None or above.type != "redirected_statement" or command.field != "body":
        return
    for one in above.children:
        if one.type == "file_redirect":
            yield from [child for child in one.children if child.field == "destination"][1:]
