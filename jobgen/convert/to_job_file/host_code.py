"""Code of a script that only prepares its launch line: a file of hosts, a number of nodes, the first host.

jobgen makes these itself, and writes a launch line of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence

from jobgen.convert.to_job_file.launcher import program_of
from jobgen.convert.variable_names import meanings, names_read
from jobgen.script.commands import Command, commands
from jobgen.script.dialects.base import Dialect
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, exported

_MEANINGS = ("node_file", "node_list", "nodes", "chunks", "slots", "ranks")
_STATEMENTS = """
variable_assignment declaration_command command redirected_statement pipeline for_statement while_statement
"""
_OPTIONS = re.compile(r"--?(hostfile|machinefile)|-f|-H")
_READS = ("read", "mapfile", "readarray")
_QUIET = (":", "true", "[", "test", "break", "continue", *_READS)
_PRINT = """
awk basename cat cut echo expr getent grep head hostname nl paste printf scontrol sed seq sort tac tail tr
uniq wc
"""
_FILES = ("rm", "touch", "cp")
_REMOTE = ("srun", "ssh")
# Operators that change a variable in an expression, and arguments with which a command writes or runs a file.
_CHANGES = re.compile(r"\+\+|--|[^=!<>]=[^=]")
_WRITES = {"awk": r".*(>|\||system)", "sort": r"-\w*o|--output", "sed": r"-\w*i|--in-place"}


class HostCode:
    """The statements whose results only the launch line reads.

    ``lines`` is code of the job file that is made of the launch line. jobgen exports the variables ``ours``.
    """

    def __init__(
        self, script: Script, source: Dialect, launch: Launch, lines: str, ours: Collection[str]
    ) -> None:
        self.script, self.lines = script, lines
        self.words = _words(script, launch)
        self.hosts = {name for name, one in meanings(source).items() if one in _MEANINGS}
        self.files = _files(self.words) - {f"${name}" for name in self.hosts}
        given = {part for one in self.words for part in re.split("[=,]", one.text)}
        self.public = (_exported(script) | given) - {*ours}

    def find(self, statements: Sequence[Node]) -> list[Node]:
        """Return those of the statements that a job file does not need."""
        kinds = _STATEMENTS.split()
        found = list(self._of_hosts([one for one in statements if one.type in kinds and self._idle(one)]))
        while kept := [one for one in found if not self._unused(one, found)]:
            found = [one for one in found if one not in kept]
        return found

    def _idle(self, statement: Node) -> bool:
        """Return whether a statement does nothing but set variables and write the file of hosts."""
        after = statement.next()
        strange = statement.all("function_definition", "heredoc_redirect", "&", "ERROR")
        if (after is not None and after.type == "&") or any(True for _ in strange):
            return False
        sums = statement.all("arithmetic_expansion", "compound_statement", "c_style_for_statement")
        if any(one.type != "arithmetic_expansion" or _CHANGES.search(one.text) for one in sums):
            return False
        if re.search(r"\$\{\w+:?=", statement.text):
            return False
        targets = (_target(one) for one in statement.all("file_redirect"))
        if any(one is not None and one not in (*self.files, "/dev/null") for one in targets):
            return False
        return all(self._harmless(one, statement) for one in commands(statement))

    def _harmless(self, command: Command, statement: Node) -> bool:
        name, words = command.name, command.literals
        inside = command.node.under("command_substitution", "process_substitution")
        if name in _FILES:
            own = [_plain(word.text) for word in command.arguments if not word.text.startswith("-")]
            known = all(one in self.files or one[1:] in self.hosts for one in own)
            return bool(own) and known and own[-1] in self.files
        if name in _REMOTE or (name == "scontrol" and "show" not in words):
            return inside and name in _REMOTE and "hostname" in words
        prints = name in _PRINT.split() and not any(
            re.match(_WRITES.get(name, "$^"), one, re.S) for one in words
        )
        read = inside or _piped(command.node) or self._to_file(command.node, statement)
        return name in _QUIET or (prints and read)

    def _to_file(self, node: Node, statement: Node) -> bool:
        """Return whether the output of a command goes to the file of hosts."""
        for above in node.above():
            if above.type == "redirected_statement":
                targets = [_target(one) for one in above.children if one.type == "file_redirect"]
                if any(one in self.files for one in targets):
                    return True
            if above is statement:
                return False
        return False

    def _of_hosts(self, found: Sequence[Node]) -> Iterator[Node]:
        """Yield the statements that read or write the hosts of the job."""
        names: set[str] = set()
        for one in found:
            read = {node.text for node, _ in names_read(one, 0)}
            about = read & {*self.hosts, *names} or re.search(r"\bscontrol\s+show\s+hostname", one.text)
            own = any(f"${name}" in self.files for name in _set(one))
            first = "MASTER_ADDR" in _set(one) and "$" in one.text
            if about or own or first or self._named(one):
                names |= _set(one)
                yield one

    def _named(self, statement: Node) -> set[str]:
        """Return the files of hosts that a statement names."""
        words = statement.all("word", "string", "simple_expansion", "expansion", "concatenation")
        return {_plain(one.text) for one in words} & self.files

    def _unused(self, statement: Node, removed: Sequence[Node]) -> bool:
        """Return whether only the removed statements and the launch line read the results of a statement."""
        names = _set(statement)
        if names & self.public:
            return False
        zones = [(one.start, one.end) for one in (*removed, *self.words, *self.script.tree.all("comment"))]
        read = [(node.text, node.start + offset) for node, offset in names_read(self.script.tree, 0)]
        for node in self.script.tree.all("c_style_for_statement"):  # its names have no sign, and no nodes
            read += [(name, node.start) for name in re.findall(r"\w+", node.text)]
        for name, at in read:
            if name in names and not any(start <= at < end for start, end in zones):
                return False
        text = bytearray(self.script.tree.source)
        for start, end in zones:
            text[start:end] = b" " * (end - start)
        rest = text.decode("utf-8", "replace") + self.lines
        paths = {os.path.basename(one) for one in self._named(statement) if "$" not in one}
        patterns = [rf"\$\{{?[#!]?{name}\b" for name in names]
        patterns += [rf"(?<![\w.-]){re.escape(one)}(?![\w.-])" for one in paths]
        return not any(re.search(one, rest) for one in patterns)


def _words(script: Script, launch: Launch) -> list[Node]:
    """Return the words of the launch line before its program; none if the program is in a variable."""
    program = program_of(script, launch)
    source = script.tree.source
    if not program or program[0].source is not source:
        return []
    return [word for word in launch.command.words if word.source is source and word.start < program[0].start]


def _files(words: Sequence[Node]) -> set[str]:
    """Return the files of hosts that options of a launcher name."""
    found = set()
    for at, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if _OPTIONS.fullmatch(name):
            follows = words[at + 1].text if at + 1 < len(words) else ""
            found.add(_plain(value if equals else follows))
    return found - {""}


def _plain(text: str) -> str:
    """Return a word without quotes and braces."""
    return re.sub(r"\$\{(\w+)\}", r"$\1", text.replace('"', "").replace("'", "")).removeprefix("./")


def _target(redirect: Node) -> str | None:
    """Return the file that a redirection writes; None if it writes none."""
    if not re.match(r"\d*(>|&>)", redirect.text) or re.match(r"\d*>&\d", redirect.text):
        return None
    target = redirect.get("destination")
    return _plain(target.text) if target is not None else ""


def _piped(node: Node) -> bool:
    """Return whether the output of a command goes into a pipe."""
    above = node.parent
    return above is not None and above.type == "pipeline" and above.children[-1] is not node


def _set(statement: Node) -> set[str]:
    """Return the variables that a statement sets or exports."""
    found = {name for name, _, _ in assignments(statement)}
    for one in statement.all("variable_assignment", "declaration_command", "for_statement"):
        name = one.get("name") or one.get("variable")
        part = name.get("name") if name is not None and name.type == "subscript" else name
        found |= {part.text} if part is not None else set()
        found |= {child.text for child in one.children if child.type == "variable_name"}
    for command in commands(statement):
        found |= {text for text in command.literals if command.name in _READS and text.isidentifier()}
    return found


def _exported(script: Script) -> set[str]:
    """Return the variables that a script exports."""
    found = {name for name, _, node in script.assignments if exported(node)}
    for one in script.tree.all("declaration_command"):
        if one.children[0].type == "export":
            found |= {child.text for child in one.children if child.type == "variable_name"}
    return found
