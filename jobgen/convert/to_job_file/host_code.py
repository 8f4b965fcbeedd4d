"""Code of a script that only prepares its launch line: a file of hosts, a number of nodes, the first host.

jobgen makes these itself, and writes a launch line of its own, with the values of the script's variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from jobgen.convert.to_job_file.effects import ENVIRONMENT, LOGIN
from jobgen.convert.to_job_file.inherited import is_for_programs, may_be_inherited
from jobgen.convert.to_job_file.launcher import program_of
from jobgen.convert.to_job_file.waiting import trap_code
from jobgen.convert.variable_names import exported_names, meanings, names_read
from jobgen.launch.command_line import is_python
from jobgen.launch.launchers import LAUNCHERS
from jobgen.script.commands import Command, commands
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import Node, parse

_MEANINGS = ("node_file", "node_list", "nodes", "chunks", "slots", "ranks")
_STATEMENTS = """
variable_assignment declaration_command command redirected_statement pipeline list
for_statement while_statement c_style_for_statement if_statement
"""
_OPTIONS = re.compile(r"--?(hostfile|machinefile)|-f|-H")
_READS = ("read", "mapfile", "readarray")
_QUIET = (":", "true", "[", "test", "break", "continue", *_READS)
_PRINT = """
awk basename bc cat comm cut date dig echo expr getent grep head host hostname ip nl nproc nslookup nvidia-smi
paste printf scontrol sed seq shuf sort ss tac tail tr uniq wc which
"""
_FILES = ("rm", "touch", "cp", "truncate")
_REMOTE = ("srun", "ssh")
_OF_THE_JOB = ("MASTER_ADDR", "MASTER_PORT")  # which the program may read: jobgen exports them before it
# Operators that change a variable in an expression, and arguments with which a command writes or runs a file.
_CHANGES = re.compile(r"\+\+|--|[^=!<>]=[^=]")
_WRITES = {"awk": r".*(>|\||system)", "sort": r"-\w*o|--output", "sed": r"-\w*i|--in-place"}


class HostCode:
    """The statements whose results only the launch line reads, or the program as values in its words.

    ``lines`` is code of the job file that is made of the command, which is the one of the launch, or the
    program. jobgen exports the variables ``ours``.
    """

    def __init__(
        self,
        script: Script,
        command: Command,
        launch: Launch | None,
        lines: str,
        ours: Collection[str],
    ) -> None:
        self.script, self.lines, self.ours = script, lines, {*ours}
        self.words = _words(script, launch) if launch is not None else []
        self.command, self.launched = command.node, launch is not None
        self.hosts = {name for name, one in meanings(script.dialect).items() if one in _MEANINGS}
        self.environment = launch.row.environment_file if launch is not None else ""
        self.files = {*_files(self.words), self.environment} - {"", *(f"${name}" for name in self.hosts)}
        while more := self._sources(script.tree.children) - self.files:
            self.files |= more
        given = {part for one in self.words for part in re.split("[=,]", one.text)}
        inherited = {name for name in script.values if may_be_inherited(script, name)}
        self.public = (exported_names(script) | given | inherited) - self.ours - _launchers(script, command)
        self.values: list[Node] = []  # statements that are not for the hosts

    def find(self, statements: Sequence[Node]) -> list[Node]:
        """Return those of the statements that a job file does not need."""
        if not self.launched and self.command.text.startswith("eval "):
            return []  # its text may read all variables
        kinds = _STATEMENTS.split()
        idle = [one for one in statements if one.type in kinds and self._idle(one)]
        found = list(self._of_hosts(idle))
        hosts = {name for one in found for name in _set(one)} | self.ours
        self.values = [one for one in idle if one not in found and self._is_value(one)]
        found += self.values
        found += [one for one in statements if _prints(one) & hosts or self._shows(one)]
        while kept := [one for one in found if not self._unused(one, found)]:
            found = [one for one in found if one not in kept]
        return found

    def removes_hosts(self, statement: Node) -> bool:
        """Return whether a statement only removes the file of hosts."""
        return {one.name for one in commands(statement)} == {"rm"} and self._idle(statement)

    def is_environment(self, statement: Node) -> bool:
        """Return whether a statement writes the file with variables for the ranks of other nodes."""
        return self.environment in self._named(statement)

    def _shows(self, statement: Node) -> bool:
        """Return whether a statement only prints the hosts, which jobgen does when the job starts."""
        command = next(commands(statement), None)
        if statement.type != "command" or command is None or command.name != "cat" or not command.arguments:
            return False
        return all(_plain(word.text)[1:] in self.hosts for word in command.arguments)

    def _is_value(self, statement: Node) -> bool:
        """Return whether a statement sets a variable of the shell, which no other code can read unseen."""
        own = self.command if self.launched else None  # whose text is read, also behind eval
        readers = [one.node for one in self.script.named("eval", "envsubst", "source", ".")]
        if not all(one is own or ENVIRONMENT.search(one.text) for one in readers):
            return False
        if statement.type != "variable_assignment":
            return False
        if re.search(r"\$\{!\w+[^\w\[]|\b(declare|local|typeset) -\w*n", self.script.tree.text):
            return False  # a variable with the name of another one
        return not any(is_for_programs(self.script, name) for name in _set(statement))

    def _idle(self, statement: Node) -> bool:
        """Return whether a statement does nothing but set variables and write the file of hosts."""
        after = statement.next()
        strange = statement.all("function_definition", "&", "ERROR")
        if (after is not None and after.type == "&") or any(True for _ in strange):
            return False
        sums = [
            one
            for one in statement.all("arithmetic_expansion", "compound_statement")
            if not one.text.startswith("{")
        ]
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
            own = [_plain(one.text) for one in command.arguments if not re.match(r"-|0$", one.text)]
            known = all(one in self.files or one[1:] in self.hosts for one in own)
            return bool(own) and known and own[-1] in self.files
        if name == "trap":
            return self.removes_hosts(_code_of(command))
        if name == "tee":
            return len(words) <= 1 and all(_plain(one.text) in self.files for one in command.arguments)
        if name in _REMOTE or (name == "scontrol" and "show" not in words):
            return inside and name in _REMOTE and "hostname" in words
        prints = name in _PRINT.split() and not any(
            re.match(_WRITES.get(name, "(?!)"), one, re.S) for one in words
        )
        prints |= " ".join([name, *words[:1]]) in ("command -v", "type -p", "type -P")
        prints |= is_python(name) and "-c" in words and "socket" in command.node.text
        read = inside or _piped(command.node) or self._to_file(command.node, statement)
        return name in _QUIET or (prints and read)

    def _to_file(self, node: Node, statement: Node) -> bool:
        """Return whether the output of a command goes to the file of hosts."""
        for above in node.above():
            if above.type == "redirected_statement":
                own = [one for one in above.children if one is not above.children[0]]
                if any(_targets(one) & self.files for one in own):
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
            if about or own or _set(one) & self.ours or self._named(one):
                names |= _set(one)
                yield one

    def _named(self, statement: Node) -> set[str]:
        """Return the files of hosts that a statement names."""
        trees = [statement, *(_code_of(one) for one in commands(statement) if one.name == "trap")]
        return {name for tree in trees for name in _words_in(tree)} & self.files

    def _sources(self, statements: Sequence[Node]) -> set[str]:
        """Return the files, written before, from which statements make the files of hosts."""
        written = {one: _targets(one) for one in statements}
        makers = [one for one in statements if written[one] & self.files]
        return {name for one in makers for name in _words_in(one) - written[one]} & {
            *chain(*written.values())
        }

    def _unused(self, statement: Node, removed: Sequence[Node]) -> bool:
        """Return whether only the removed statements and the launch line read the results of a statement."""
        names = _set(statement)
        made = {name for one in removed for name in _set(one)} | self.ours
        others = {name for name in _prints(statement) - made if not LOGIN.fullmatch(name)}
        if names & self.public or any(name in self.script.values for name in others):
            return False
        same = self.command.source is self.script.tree.source
        zones = [(one.start, one.end) for one in (*removed, *self.words, *self.script.tree.all("comment"))]
        zones += [(self.command.start, self.command.end)] * same
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
        names -= {*_OF_THE_JOB} if self.launched else set()
        sums = re.search(r"\(\(|\[|\blet\b", self.lines)  # where names have no sign
        if any(re.search(rf"\b{name}\b" if sums else rf"\$\{{?[#!]?{name}\b", self.lines) for name in names):
            return False
        patterns = [rf"\$\{{?[#!]?{name}\b" for name in names]
        patterns += [rf"(?<![\w.-]){re.escape(one)}(?![\w.-])" for one in paths]
        return not any(re.search(one, rest) for one in patterns)


def _code_of(trap: Command) -> Node:
    return parse(f"{trap_code(trap)}\n".encode())


def _launchers(script: Script, command: Command) -> set[str]:
    """Return the variables in a command whose values are command lines with a launcher, or such variables."""
    names = {node.text for node, _ in names_read(command.node, 0)}
    words = "|".join(
        re.escape(word) for row in LAUNCHERS.values() for word in (*row.names, *row.line.modules)
    )
    pattern = re.compile(rf"(?<![\w.])({words})(?![\w.])")
    found: set[str] = set()
    for name in names:
        values = script.values.get(name, ())
        inner = {other for one in values for other in _launchers_in(script, one, pattern)}
        found |= {name, *inner} if inner or any(pattern.search(one.text) for one in values) else set()
    return found


def _launchers_in(script: Script, value: Node, pattern: re.Pattern[str]) -> set[str]:
    """Return the variables in a value whose own values are command lines with a launcher."""
    read = {node.text for node, _ in names_read(value, 0)}
    return {name for name in read if any(pattern.search(one.text) for one in script.values.get(name, ()))}


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


def _targets(statement: Node) -> set[str]:
    """Return the files that a statement writes."""
    return {*filter(None, map(_target, statement.all("file_redirect")))}


def _words_in(tree: Node) -> set[str]:
    kinds = ("word", "string", "simple_expansion", "expansion", "concatenation")
    return {_plain(one.text) for one in tree.all(*kinds)}


def _piped(node: Node) -> bool:
    """Return whether the output of a command goes into a pipe."""
    pipeline = node.child_of("pipeline")
    return pipeline is not None and pipeline.children[-1] is not node


def _prints(statement: Node) -> set[str]:
    """Return the variables of a statement that only prints; jobgen prints the hosts when the job starts."""
    printed = [one.name for one in commands(statement)]
    sets = any("-v" in one.literals for one in commands(statement))  # printf -v NAME
    if statement.type != "command" or printed not in (["echo"], ["printf"]) or sets:
        return set()
    return {node.text for node, _ in names_read(statement, 0)}


def _set(statement: Node) -> set[str]:
    """Return the variables that a statement sets or exports."""
    found: set[str] = set()
    for one in statement.all("variable_assignment", "declaration_command", "for_statement"):
        if one.child_of("command"):
            continue  # A=1 before a command holds for that command only
        name = one.get("name") or one.get("variable")
        part = name.get("name") if name is not None and name.type == "subscript" else name
        found |= {part.text} if part is not None else set()
        found |= {child.text for child in one.children if child.type == "variable_name"}
    for one in statement.all("c_style_for_statement"):
        found |= {*re.findall(r"(\w+)(?=\s*[-+*/]?=[^=]|\+\+|--)", one.text.partition("do")[0])}
    for command in commands(statement):
        found |= {text for text in command.literals if command.name in _READS and text.isidentifier()}
    return found
