"""Code of a script that only prepares its launch line: a file of hosts, a number of nodes, the first host.

jobgen makes these itself, and writes a launch line of its own, with the values of the script's variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from jobgen.convert.to_job_file.effects import ENVIRONMENT, LOGIN
from jobgen.convert.to_job_file.inherited import is_for_programs, is_own_file, may_be_inherited
from jobgen.convert.to_job_file.launcher import program_of
from jobgen.convert.to_job_file.waiting import trap_code
from jobgen.convert.variable_names import exported_names, meanings, names_read, read_names
from jobgen.launch.command_line import is_python
from jobgen.launch.launchers import LAUNCHERS
from jobgen.script.commands import Command, commands
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import LOOPS, Node, parse, without_parts

_MEANINGS = ("node_file", "node_list", "nodes", "chunks", "slots", "ranks")
_STATEMENTS = """
variable_assignment declaration_command command redirected_statement pipeline list
for_statement while_statement c_style_for_statement if_statement
"""
_BRANCHES = (*LOOPS, "if_statement")
_OPTIONS = re.compile(r"--?(hostfile|machinefile)|-f|-H")
_MEETING = re.compile(r"--(master|rdzv|main)[-_](process[-_])?(addr|port|endpoint|ip|id)")
_READS = ("read", "mapfile", "readarray")
_QUIET = (":", "true", "[", "test", "break", "continue", "return", *_READS)
_PRINT = """
awk basename bc cat comm cut date dig echo env expr getent grep head host hostname ip nl nproc nslookup
nvidia-smi paste printenv printf scontrol sed seq shuf sort ss tac tail tr uniq wc which
"""
_SHOWS = "cat cut echo grep head ls more nl nodeset printf sed sort tail tr uniq wc"  # they print files
_FILES = ("rm", "touch", "cp", "truncate", "chmod", "ln", "mv")
_REMOTE = ("srun", "ssh")
# Words of export and declare that give variables whose names are not known: export $(cut -d= -f1 FILE).
_UNKNOWN_NAMES = ("command_substitution", "simple_expansion", "expansion", "string", "concatenation")
_OF_THE_JOB = ("MASTER_ADDR", "MASTER_PORT")  # which the program may read: jobgen exports them before it
# Operators that change a variable in an expression, and arguments with which a command writes or runs a file.
_CHANGES = re.compile(r"\+\+|--|[^=!<>]=[^=]")
_WRITES = {"awk": r".*(>|\||system)", "sort": r"-\w*o|--output", "sed": r"-\w*i|--in-place"}
# Code of Python and Perl with the hosts of the job, and what it may do besides printing them.
_OF_HOSTS = re.compile(r"socket|hostnames|NODEFILE|NODELIST")
_ACTS = re.compile(
    r"open\((?:[^(),[]|\[.*?\]|\(.*?\))*,|\b(system|exec\w*|unlink|remove|rename|mkdir|write\w*|Popen|environ\[.*\]\s*=)"
)
_OPENS = re.compile(r"open\(\s*(['\"])(.*?)\1\s*,\s*['\"][wa]['\"]")
# Counts in double parentheses, and the directory that the launcher starts in.
_COUNT = re.compile(r"\(\(\s*(?:\+\+|--)?(\w+)\s*(?:\+\+|--|[-+*/]?=[^=].*)?\s*\)\)")
_FINDS = re.compile(r"\bscontrol\s+show\s+hostname|\bsrun\b[^;|&]*\bhostname\b")
_DESCRIPTOR = re.compile(rb"(?:[<>]&\s*|\s-\w*u\s*|/dev/fd/)(\d+)\b|(?<=\s)(?:(\d+)|\{(\w+)\})[<>]")
_STANDARD = ("0", "1", "2")
_WITH_PATTERN = ("grep", "sed", "cut", "tr")  # whose first argument is no file
_HERE = re.compile(r"(\$(PWD|PBS_O_WORKDIR|SLURM_SUBMIT_DIR)|\$\(pwd\)|`pwd`|\.)/")


class HostCode:
    """The statements whose results only the launch line reads, or the program as values in its words.

    ``lines`` is code of the job file that is made of the command, which is the one of the launch, or the
    program. jobgen exports the variables ``ours``.
    """

    def __init__(
        self, script: Script, command: Command, launch: Launch | None, lines: str, ours: Collection[str]
    ) -> None:
        self.script, self.lines, self.ours = script, lines, {*ours}
        self.words = _words(script, launch) if launch is not None else []
        self.command, self.launched = command.node, launch is not None
        self.hosts = {name for name, one in meanings(script.dialect).items() if one in _MEANINGS}
        name = launch.row.line.environment_file if launch is not None else ""
        self.environment = {f"{folder}{name}" for folder in ("", "~/", "$HOME/") if name}
        self.files = {*_files(script, self.words), *self.environment} - {f"${one}" for one in self.hosts}
        # A folder of a plain name may be for the program, too.
        self.folders = {folder for one in self.files if "$" in (folder := os.path.dirname(one))}
        functions = (one for one in script.tree.children if one.type == "function_definition")
        self.functions = {one.name: body for one in functions if (body := one.get("body")) is not None}
        self.files |= set(self._parameters())
        self.variables = {*script.values} | _set(script.tree)
        given = {part for one in self.words for part in re.split("[=,]", one.text)}
        inherited = {name for name in script.values if may_be_inherited(script, name, of_files=False)}
        # Programs read a variable, and rarely a file of hosts: it has a remark.
        self.exported = exported_names(script) & {one[1:] for one in self.files if one.startswith("$")}
        exports = exported_names(script) - self.exported
        self.public = (exports | given | inherited) - self.ours - _launchers(script, command)
        self.sourced = [one.node.start for one in script.commands if is_own_file(one)]
        self.meeting = _meeting(self.words)
        last = max(self.sourced, default=0)
        set_before = {name for name, value, _ in script.assignments if value.start < last}
        self.public |= set_before - self.ours - self._of_launch()  # the file may read them
        self.values: list[Node] = []  # statements that are not for the hosts
        self.prints: list[Node] = []  # statements that only print hosts and the like

    def find(self, before: Sequence[Node], after: Sequence[Node]) -> list[Node]:
        """Return those of the statements before and after the program that a job file does not need."""
        printed = {name for name, one in meanings(self.script.dialect).items() if one == "node_list"}
        if not self.launched and self.command.text.startswith("eval "):  # its text may read all variables
            self.prints = [one for one in (*before, *after) if _prints(one) and _prints(one) <= printed]
            return self.prints
        self._add_files(before)
        statements = [*before, *filter(self.removes_hosts, after)]
        kinds = _STATEMENTS.split()
        idle = [one for one in statements if one.type in kinds and self._idle(one)]
        found = list(self._of_hosts(idle))
        hosts = {name for one in found for name in self._sets(one)} | self.ours
        printed |= hosts
        declarations = [one for one in idle if one.type in ("variable_assignment", "declaration_command")]
        found += [one for one in declarations if one not in found and set() < _set(one) <= hosts]
        self.values = [one for one in idle if one not in found and self._is_value(one)]
        found += self.values
        self.prints = [one for one in statements if _prints(one) & printed or self._shows(one)]
        found += [one for one in self.prints if one not in found]
        called = {call.name for one in found for tree in self._trees(one) for call in commands(tree)}
        found += [one for one in statements if one.type == "function_definition" and one.name in called]
        while kept := [one for one in found if not self._unused(one, found)]:
            found = [one for one in found if one not in kept]
        return found

    def removes_hosts(self, statement: Node) -> bool:
        """Return whether a statement only removes the file of hosts."""
        return {one.name for one in commands(statement)} == {"rm"} and self._idle(statement)

    def is_environment(self, statement: Node) -> bool:
        """Return whether a statement writes the file with variables for the ranks of other nodes."""
        return not self.environment.isdisjoint(self._named(statement))

    def sets_address(self, statement: Node) -> bool:
        """Return whether a statement sets the address of the rendezvous."""
        return "MASTER_ADDR" in _set(statement)

    def loss(self, statement: Node) -> str:
        """Return what a remark on a statement that is left out adds: a variable that no program gets, or that
        has another value if a file before exports it."""
        names = sorted(_set(statement))
        if name := next((one for one in names if one in self.exported), ""):
            return f"; a program that reads {name} does not find it"
        name = next((one for one in names if one.isupper() and one not in self.ours), "")
        before = name and min(self.sourced, default=statement.end) < statement.start
        before = before and statement.type == "variable_assignment"  # no export
        return f"; if a file of source exports {name}, programs find its value" if before else ""

    def _of_launch(self) -> set[str]:
        """Return the variables that the launch line reads, also by the values of others."""
        found: set[str] = set()
        more = {name for word in self.words for name in read_names(word)}
        while more := more - found:
            found |= more
            more = {
                name
                for one in more
                for value in self.script.values.get(one, ())
                for name in read_names(value)
            }
        return found

    def _parameters(self) -> Iterator[str]:
        """Yield the variables of functions with a file of hosts, which each call has as an argument."""
        for name, body in self.functions.items():
            calls = [[_plain(word.text) for word in one.arguments] for one in self.script.named(name)]
            for one in body.all("variable_assignment") if calls else ():
                value = one.get("value")
                number = re.fullmatch(r"\$(\d)", _plain(value.text)) if value is not None else None
                at = int(number[1]) if number else 0
                if one.name and at and all({*words[at - 1 : at]} & self.files for words in calls):
                    yield f"${one.name}"

    def _add_files(self, statements: Sequence[Node]) -> None:
        """Add the files by which statements hand hosts to others, or to the launch line."""
        for at in range(len(statements), 0, -1):
            one, later = statements[at - 1], [*statements[at:], *self.words]
            if not self._named(one) and not read_names(one) & self.hosts and not _FINDS.search(one.text):
                continue
            targets = {target_of(redirect) for redirect in one.all("file_redirect")} - {None, "", "/dev/null"}
            for name in targets - self.files:
                readers = [other for other in later if name in _names(other)]
                if any(other in self.words or self._named(other) for other in readers):
                    self.files.add(name or "")

    def _trees(self, statement: Node) -> list[Node]:
        """Return a statement and the bodies of the functions that it calls."""
        trees = [statement]
        for tree in trees:  # which grows
            names = {one.name for one in commands(tree)}
            trees += [one for name, one in self.functions.items() if name in names and one not in trees]
        return trees

    def _sets(self, statement: Node) -> set[str]:
        """Return the variables that a statement and the functions that it calls set."""
        return {name for tree in self._trees(statement) for name in _set(tree)}

    def _shows(self, statement: Node) -> bool:
        """Return whether a statement only prints the hosts or their file: jobgen does when the job starts."""
        every = list(commands(statement))
        if statement.type not in ("command", "pipeline", "redirected_statement") or not every:
            return False
        if any(target_of(one) not in (None, "/dev/null") for one in statement.all("file_redirect")):
            return False
        for one in every:
            words = [_plain(word.text) for word in one.arguments if not re.match(r"-|\d+$", word.text)]
            words = words[-1:] if one.name in _WITH_PATTERN else words
            own = all(word in self.files or word[1:] in self.hosts for word in words)
            if one.name not in _SHOWS.split() or _writes(one) or not (own or one.name in ("echo", "tr")):
                return False
        prints = {one.name for one in every} != {"echo"}
        return bool(self._named(statement) or (prints and read_names(statement) & self.hosts))

    def _is_value(self, statement: Node) -> bool:
        """Return whether a statement sets a variable of the shell, which no other code can read unseen."""
        own = self.command if self.launched else None  # whose text is read, also behind eval
        readers = [one.node for one in self.script.named("eval", "envsubst", "source", ".")]
        known = all(one is own or ENVIRONMENT.search(one.text) for one in readers)
        if statement.type != "variable_assignment" or not known:
            return False
        if re.search(r"\$\{!\w+[^\w\[]|\b(declare|local|typeset) -\w*n", self.script.tree.text):
            return False  # a variable with the name of another one
        names = _set(statement)
        return not any(
            is_for_programs(self.script, one) or may_be_inherited(self.script, one) for one in names
        )

    def _idle(self, statement: Node) -> bool:
        """Return whether a statement does nothing but set variables and write the file of hosts."""
        after = statement.next()
        strange: list[object] = list(statement.all("function_definition", "&", "ERROR"))
        strange += [one for one in statement.all("heredoc_redirect") if not self._fills(one)]
        declared = [part.type for one in statement.all("declaration_command") for part in one.children]
        strange += [one for one in declared if one in _UNKNOWN_NAMES]
        if (after is not None and after.type == "&") or strange or re.search(r"\$\{\w+:?=", statement.text):
            return False
        sums = list(statement.all("arithmetic_expansion", "compound_statement"))
        sums = [one for one in sums if not one.text.startswith("{") and not _COUNT.fullmatch(one.text)]
        if any(one.type != "arithmetic_expansion" or _CHANGES.search(one.text) for one in sums):
            return False
        targets = {target_of(one) for one in statement.all("file_redirect")}
        if not targets <= {None, "/dev/null", *self.files}:
            return False
        return all(self._harmless(one, statement) for one in commands(statement))

    def _fills(self, text: Node) -> bool:
        """Return whether a here-document is the file of hosts, or code that prints it."""
        command = next((one for one in commands(text.parent or text) if one.node.end <= text.start), None)
        if command is None or command.name != "cat":
            return command is not None and self._is_code(command, read=self._to_file(text, self.script.tree))
        return self._to_file(command.node, self.script.tree)

    def _harmless(self, command: Command, statement: Node) -> bool:
        name, words = command.name, command.literals
        inside = command.node.under("command_substitution", "process_substitution")
        read = inside or _piped(command.node) or self._to_file(command.node, statement)
        read |= statement.type == "compound_statement"  # of a function, whose output its call has
        if name in self.functions:
            body = self.functions[name]
            again = command.node in body or any(one.name == name for one in commands(body))
            return not again and self._idle(body)
        if name == "exec":
            opens = all(re.fullmatch(r"\{\w+\}", one.text) for one in command.arguments)
            return opens and any(_descriptors(statement))
        if name in _FILES:
            texts = [one.text for one in command.arguments]
            own = [_plain(one) for one in texts if not re.match(r"-|\d+$|[ugoa]*[-+=]", one)]
            known = all(one in self.files or one[1:] in self.hosts for one in own)
            return bool(own) and known and own[-1] in self.files
        if name == "mkdir":
            return {_plain(one.text) for one in command.arguments if one.text[0] != "-"} <= self.folders
        if name == "trap":
            return self.removes_hosts(_code_of(command))
        if name == "tee":
            files = [_plain(one.text) for one in command.arguments if one.text != "-a"]
            return len(files) == 1 and files[0] in self.files
        if name == "mktemp":
            return inside and any(f"${one}" in self.files for one in _set(statement))
        if name in _REMOTE or (name == "scontrol" and "show" not in words):
            return read and name in _REMOTE and "hostname" in words
        if name in ("sed", "sort") and _writes(command):
            own = [_plain(one.text) for one in command.arguments if not one.text.startswith("-")]
            return bool(own) and {*own[name == "sed" :]} <= self.files
        if name == "exit":
            return _on_failure(command, statement)
        if name in ("echo", "printf") and "-v" not in words:
            read |= command.node.under(*_BRANCHES) or _on_failure(command, statement)
        if name == "grep":
            read |= any(re.match(r"-\w*q", one) for one in words)
        prints = name in _PRINT.split() and not _writes(command)
        prints |= " ".join([name, *words[:1]]) in ("command -v", "type -p", "type -P")
        prints |= name == "xargs" and bool({"echo", "printf"} & {*words})
        return name in _QUIET or _counts(command) or (prints and read) or self._is_code(command, read=read)

    def _is_code(self, command: Command, *, read: bool) -> bool:
        """Return whether a command runs code of Python or Perl that prints or writes the hosts, an address or
        a port, and does nothing else. ``read``: its output is."""
        if command.name != "perl" and not is_python(command.name):
            return False
        redirected = (around := command.node.parent) is not None and around.type == "redirected_statement"
        code = around.text if around is not None and redirected else command.node.text
        if (rest := _OPENS.sub(lambda one: "" if one[2] in self.files else one[0], code)) != code:
            rest, read = re.sub(r"\.write(lines)?\(", "", rest), True
        return read and _OF_HOSTS.search(command.statement.text) is not None and _ACTS.search(rest) is None

    def _to_file(self, node: Node, statement: Node) -> bool:
        """Return whether the output of a command goes to the file of hosts."""
        for above in node.above():
            parts = above.children[1:] if above.type == "redirected_statement" else ()
            if any(target_of(one) in self.files for part in parts for one in part.all("file_redirect")):
                return True
            if above is statement:
                return False
        return False

    def _of_hosts(self, found: Sequence[Node]) -> Iterator[Node]:
        """Yield the statements that read or write the hosts of the job."""
        names: set[str] = set()
        for one in found:
            trees, sets = self._trees(one), self._sets(one)
            read = {name for tree in trees for name in read_names(tree)}
            read |= {name for tree in trees for name, _ in _descriptors(tree)}
            about = read & {*self.hosts, *names} or any(_FINDS.search(tree.text) for tree in trees)
            own = any(f"${name}" in self.files for name in sets)
            if about or own or sets & {*self.ours, *self.meeting} or self._named(one):
                names |= sets
                yield one

    def _named(self, statement: Node) -> set[str]:
        """Return the files of hosts that a statement names."""
        every = list(commands(statement))
        trees = [*self._trees(statement), *(_code_of(one) for one in every if one.name == "trap")]
        made = {_plain(word.text) for one in every for word in one.arguments if one.name == "mkdir"}
        named = {name for tree in trees for name in _names(tree)}
        named |= {one[2] for one in _OPENS.finditer(statement.text)}
        return named & self.files | made & self.folders

    def _unused(self, statement: Node, removed: Sequence[Node]) -> bool:
        """Return whether only the removed statements and the launch line read the results of a statement."""
        names = self._sets(statement)
        files = {one[1:] for one in self._named(statement) if re.fullmatch(r"\$\w+", one)}
        made = {name for one in removed for name in self._sets(one)} | self.ours
        printed = _prints(statement) | (_echoed(statement) if not self._shows(statement) else set())
        others = {name for name in printed - made - files if not LOGIN.fullmatch(name)}
        if names & self.public or others & self.variables:
            return False
        same = self.command.source is self.script.tree.source
        zones = [(one.start, one.end) for one in (*removed, *self.words, *self.script.tree.all("comment"))]
        zones += [(self.command.start, self.command.end)] * same
        read = [(node.text, node.start + offset) for node, offset in names_read(self.script.tree)]
        for node in self.script.tree.all("c_style_for_statement"):  # its names have no sign, and no nodes
            read += [(name, node.start) for name in re.findall(r"\w+", node.text)]
        if statement.type == "function_definition":
            read += [(one.name, one.node.start) for one in self.script.named(statement.name)]
            names = names | {statement.name}
        read += _descriptors(self.script.tree)
        places = [at for name, at in read if name in names | files]
        if not all(any(start <= at < end for start, end in zones) for at in places):
            return False
        names = names | files - self.hosts
        rest = without_parts(self.script.tree.source, zones).decode("utf-8", "replace") + self.lines
        paths = {os.path.basename(one) for one in self._named(statement) if "$" not in one}
        names -= {*_OF_THE_JOB} if self.launched else set()
        patterns = [rf"\$\{{?[#!]?{name}\b" for name in names]
        sums = re.search(r"\(\(|\[|\blet\b", self.lines)  # where names have no sign
        if sums and any(re.search(rf"\b{name}\b", self.lines) for name in names):
            return False
        patterns += [rf"(?<![\w.-]){re.escape(one)}(?![\w.-])" for one in paths]
        return not any(re.search(one, rest) for one in patterns)


def _code_of(trap: Command) -> Node:
    return parse(f"{trap_code(trap)}\n".encode())


def _launchers(script: Script, command: Command) -> set[str]:
    """Return the variables in a command whose values are command lines with a launcher, or such variables."""
    words = [re.escape(one) for row in LAUNCHERS.values() for one in (*row.names, *row.line.modules)]
    pattern = re.compile(rf"(?<![\w.])({'|'.join(words)})(?![\w.])")
    found = _launchers_in(script, command.node, pattern)
    for name in read_names(command.node):
        inner = [_launchers_in(script, one, pattern) for one in script.values.get(name, ())]
        found |= {name}.union(*inner) if any(inner) else set()
    return found


def _launchers_in(script: Script, value: Node, pattern: re.Pattern[str]) -> set[str]:
    """Return the variables in a value whose own values are command lines with a launcher."""
    names = read_names(value)
    return {name for name in names if any(pattern.search(one.text) for one in script.values.get(name, ()))}


def _words(script: Script, launch: Launch) -> list[Node]:
    """Return the words of the launch line before its program; none if the program is in a variable."""
    program, source = program_of(script, launch), script.tree.source
    if not program or program[0].source is not source:
        return []
    return [word for word in launch.command.words if word.source is source and word.start < program[0].start]


def _files(script: Script, words: Sequence[Node]) -> set[str]:
    """Return the files of hosts in options of a launcher, as written and with values of variables."""
    found = set()
    for word, after in pairwise((*words, *words[-1:])):
        name, equals, value = word.text.partition("=")
        if _OPTIONS.fullmatch(name):
            known = script.constants.text(word if equals else after)
            found |= {_plain(value if equals else after.text), _plain(known.removeprefix(f"{name}="))}
    return found - {""}


def _meeting(words: Sequence[Node]) -> set[str]:
    """Return the variables in options of a launcher for the address, the port or the id of the rendezvous."""
    pairs = [
        (word.text.partition("=")[0], word if "=" in word.text else after) for word, after in pairwise(words)
    ]
    return {name for option, value in pairs if _MEETING.fullmatch(option) for name in read_names(value)}


def _plain(text: str) -> str:
    """Return a word without quotes and braces."""
    plain = re.sub(r"\$\{(\w+)\}", r"$\1", text.replace('"', "").replace("'", ""))
    return _HERE.sub("", plain, count=1) if _HERE.match(plain) else plain


def target_of(redirect: Node) -> str | None:
    """Return the file that a redirection writes, without quotes; None if it writes none."""
    if not re.match(r"\d*(>|&>)", redirect.text) or re.match(r"\d*>&[\d-]", redirect.text):
        return None
    return _plain(target.text) if (target := redirect.get("destination")) is not None else ""


def _piped(node: Node) -> bool:
    """Return whether the output of a command goes into a pipe."""
    return (pipeline := node.child_of("pipeline")) is not None and pipeline.children[-1] is not node


def _prints(statement: Node) -> set[str]:
    """Return the variables of a statement that only prints; jobgen prints the hosts when the job starts."""
    printed = [one.name for one in commands(statement)]
    sets = any("-v" in one.literals for one in commands(statement))  # printf -v NAME
    if statement.type != "command" or printed not in (["echo"], ["printf"]) or sets:
        return set()
    return read_names(statement)


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
    counts = (_COUNT.fullmatch(one.text) for one in statement.all("compound_statement"))
    found |= {one[1] for one in counts if one}
    for command in commands(statement):
        found |= {text for text in command.literals if command.name in _READS and text.isidentifier()}
        if _counts(command):
            found |= {name for word in command.arguments for name in re.findall(r"\w+", word.text)[:1]}
    return found | {name for name, _ in _descriptors(statement)}


def _on_failure(command: Command, statement: Node) -> bool:
    """Return whether a command runs only if the command in front of it in a list fails, which is no test."""
    first, *more = statement.children
    if statement.type != "list" or more[0].type != "||" or command.node not in more[-1]:
        return False
    tests = {"[", "test"} & {one.name for one in commands(first)}
    return not tests and not any(first.all("test_command"))


def _descriptors(tree: Node) -> Iterator[tuple[str, int]]:
    """Yield the descriptors (``&3``), or their variables (``{NAME}<FILE``), and the places."""
    for found in _DESCRIPTOR.finditer(tree.source, tree.start, tree.end):
        if (number := (found[1] or found[2] or b"").decode()) not in _STANDARD:
            yield (f"&{number}" if number else found[3].decode()), found.start()


def _counts(command: Command) -> bool:
    """Return whether a command only changes a number: ``let i+=1``."""
    return command.name == "let" and all(_COUNT.fullmatch(f"(({one.unquoted}))") for one in command.arguments)


def _names(tree: Node) -> set[str]:
    """Return the words of a tree as names of files."""
    kinds = ("word", "string", "simple_expansion", "expansion", "concatenation")
    return {_plain(one.text) for one in tree.all(*kinds)}


def _writes(command: Command) -> bool:
    """Return whether a command that prints writes a file with these options."""
    return any(re.match(_WRITES.get(command.name, "(?!)"), one, re.S) for one in command.literals)


def _echoed(statement: Node) -> set[str]:
    """Return the variables that the commands in a loop, a condition or a function print."""
    printed = (one.node for one in commands(statement) if one.name in ("echo", "printf"))
    shown = (one for one in printed if one.under(*_BRANCHES) and not _piped(one))
    return {name for one in shown for name in read_names(one)}
