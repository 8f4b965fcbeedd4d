"""A script as the rules read it: its lines, its directives, its request and the tree of its body."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from jobgen.launch.wrappers import command_start
from jobgen.schedulers.directive_options import read_options
from jobgen.schedulers.request import DirectiveOption, Request
from jobgen.script import code_files, other_text, syntax
from jobgen.script.callers import Callers, callers, own_options
from jobgen.script.calls import shifts
from jobgen.script.changed_variables import changed_variables
from jobgen.script.commands import Command, commands, host_of_ssh, names_command
from jobgen.script.constants import Arguments, Constants
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.pbs import PbsDialect
from jobgen.script.dialects.table import of_script
from jobgen.script.directives import Directives, Guess, recognized
from jobgen.script.directives import read as read_directives
from jobgen.script.launches import Launch, Run, Start, launches
from jobgen.script.request import heeded, of_components, settings
from jobgen.script.word_lists import expanded

_WRITTEN = re.compile(r"# NEXTFLOW TASK\b|nxf_main\(\)")  # in each script of Nextflow for a task
# A date and a time, in the name of a folder.
_TIME = r"(?<!\d)\d{4}-?[01]\d-?[0-3]\d[-_T .]?[012]\d(?:%3A|\D{0,3})[0-5]\d"
_OF_NODES = re.compile(r"(NODE_|MACHINE_)?RANK|MASTER_ADDR|MAIN_PROCESS_IP|HEAD_NODE(_IP)?|MASTER_IP")
_DISABLING = re.compile(r"(?:^|\s)#\s*jobgen:\s*disable=([^#]*)")
_HOSTFILES = ("--hostfile", "-hostfile", "-machinefile", "-f")


class Edit(NamedTuple):
    """A replacement of the bytes ``start`` to ``end`` of a script."""

    start: int
    end: int
    text: bytes = b""


class Hit(NamedTuple):
    """A result of a rule. ``message``, ``fix`` and ``level`` override those of the rule.

    ``edits`` apply the fix, if that takes no decision. ``place`` is what the result is about.
    """

    line: int
    message: str = ""
    fix: str = ""
    level: str | None = None
    edits: tuple[Edit, ...] = ()
    place: syntax.Node | DirectiveOption | None = None

    @classmethod
    def at(
        cls,
        place: syntax.Node | DirectiveOption,
        message: str = "",
        fix: str = "",
        level: str | None = None,
        edits: tuple[Edit, ...] = (),
    ) -> Hit:
        """Return a result about a node, or about the option of a directive."""
        return cls(place.line, message, fix, level, edits, place)


class Policy(NamedTuple):
    """What a project or a site asks of scripts: options that directives request, and modules that they leave.

    ``source`` names the file, for messages.
    """

    source: str
    require: tuple[str, ...] = ()
    forbidden_modules: tuple[str, ...] = ()


class Starter(NamedTuple):
    """What starts a script on the nodes of a job: another script, and the call in it."""

    script: Script
    call: Start


def disabling(lines: Sequence[str]) -> list[tuple[int, set[str]]]:
    """Return the lines with a comment ``# jobgen: disable=RULE,RULE``, and the names of its rules."""
    found = ((number, _DISABLING.search(line)) for number, line in enumerate(lines, 1))
    return [
        (number, {name.strip() for name in match[1].split(",") if name.strip()})
        for number, match in found
        if match
    ]


@dataclass(eq=False)  # a key of caches
class Script:
    """A script. Each part is parsed once, at its first use.

    One with a ``starter`` is a part of the job of another: it has its request and its exported variables.
    """

    source: bytes
    scheduler: str
    folder: str | None = None  # of the script, for the files that it names; None: no file is read
    version: str | None = None  # of the scheduler; None: unknown
    policies: tuple[Policy, ...] = ()
    name: str = ""  # of its file
    starter: Starter | None = None
    named_scheduler: bool = False  # a person has named it; else the text is what is known
    with_given: bool = False  # options of the commands that submit it replace directives
    runs_as_it_stands: bool = False  # no part of it is moved: a main function may be read as the body
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        text = self.source.decode("utf-8", "replace")
        self.lines = text.split("\n")
        if self.lines[-1] == "":
            self.lines.pop()

    def line(self, number: int) -> str:
        """Return the text of a line; empty behind the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def start_of(self, number: int) -> int:
        """Return the place in the source at which a line starts, or would start behind the end."""
        return self._starts[min(number, len(self._starts)) - 1]

    @cached_property
    def _starts(self) -> list[int]:
        starts = (match.end() for match in re.finditer(rb"\n", self.source))
        return [0, *starts, len(self.source)]

    @cached_property
    def dialect(self) -> Dialect:
        return of_script(self.scheduler)

    @cached_property
    def _directives(self) -> Directives:
        return read_directives([line.rstrip("\r") for line in self.lines], self.dialect)

    @cached_property
    def directives(self) -> Directives:
        """The directives, without those in texts of several lines, which are for another script."""
        late = self._directives.late
        return self._directives._replace(late=tuple(one for one in late if one.number not in self.text_lines))

    @cached_property
    def text_lines(self) -> Set[int]:
        """The numbers of the lines that begin in a here-document or a string."""
        found = set[int]()
        for node in self.tree.all("heredoc_body", "string", "raw_string"):
            first = node.line + (node.type != "heredoc_body")
            found.update(range(first, node.line + node.text.count("\n") + 1))
        return found

    @property
    def is_sure(self) -> bool:
        """Return whether the scheduler is known, and not the likelier one of two."""
        return self.named_scheduler or self.guess.sure

    @cached_property
    def guess(self) -> Guess:
        """The scheduler that the text is for, and the reason."""
        return recognized(self.lines)

    @cached_property
    def options(self) -> tuple[DirectiveOption, ...]:
        return self.directives.options(self.dialect)

    def options_of(self, *flags: str | None) -> Iterator[DirectiveOption]:
        """Yield the options with these flags, also those that others replace."""
        return (option for option in self.options if option.flag in flags)

    @property
    def unused_log(self) -> str:
        """The option of the log that PBS joins to the other one; empty without it."""
        joined = self.heeded.get("-j") if self.dialect.copies_logs else None
        return {"oe": "-e", "eo": "-o"}.get(joined.value if joined else "", "")

    @property
    def settings(self) -> Iterator[tuple[str, DirectiveOption]]:
        """The options with the keys that identify their repetitions."""
        return settings(self.options, self.dialect.scheduler)

    @cached_property
    def components(self) -> list[int]:
        """The lines that begin further components of the job, each with a request of its own."""
        words = self.dialect.component_words
        return [option.line for option in self.options if not option.flag and option.value in words]

    @cached_property
    def heeded_by_component(self) -> list[dict[str, DirectiveOption]]:
        """The options in effect of each component by key; those of a job without components are one."""
        ends = [*self.components, len(self.lines) + 1]
        parts = [
            [one for one in self.options if begin < one.line < end]
            for begin, end in zip([0, *ends], ends, strict=False)
        ]
        given = heeded(self.given, self.dialect.scheduler) if self.with_given else {}
        return [heeded(one, self.dialect.scheduler) | given for one in parts]

    @property
    def heeded(self) -> dict[str, DirectiveOption]:
        """The options in effect by key: those of the first component, which runs the script."""
        return self.heeded_by_component[0]

    @cached_property
    def requests(self) -> list[Request]:
        """The requests of the components, or the only one."""
        if self.starter is not None:
            return self.starter.script.requests
        found = ({key: option.value for key, option in one.items()} for one in self.heeded_by_component)
        return [self.dialect.request(values) for values in found]

    @cached_property
    def request(self) -> Request:
        return of_components(self.requests)

    @cached_property
    def disabling(self) -> list[tuple[int, set[str]]]:
        """The comments ``# jobgen: disable=RULE,RULE``: the line and the names of the rules."""
        return disabling(self.lines)

    @cached_property
    def tree(self) -> syntax.Node:
        # Carriage returns have their own rule; they would make the whole tree wrong.
        source = self.source.replace(b"\r\n", b"\n") if self.for_a_shell else b""
        parts = [one for one in self._directives.live if one.more]
        lines = source.split(b"\n") if parts else []
        for one in parts if lines[1:] else ():  # qsub joins these lines before bash reads them
            lines[one.number : one.last] = [b" " * len(line) for line in lines[one.number : one.last]]
        tree = syntax.parse(b"\n".join(lines) if lines else source)
        return syntax.with_body_in_place(tree) if self.runs_as_it_stands else tree

    @property
    def for_a_shell(self) -> bool:
        """Return whether the first line names a shell like bash, or none; else the body is not read."""
        first = self.line(1) if self.line(1).startswith("#!") else "/bash"
        interpreter = first.rpartition("/")[2]
        return re.match(r"(env\s+(-\S+\s+)*)?(ba|da|k|mk|z|)sh\b", interpreter) is not None

    @cached_property
    def starts_at_submission(self) -> bool:
        """Whether a job starts in the directory of the submission, by its scheduler or by its site."""
        at_home = self.dialect.starts_at_home
        return not at_home or re.search(self.dialect.not_at_home, self.tree.text) is not None

    @cached_property
    def commands(self) -> list[Command]:
        """All commands of the body in the order of the text, including those in substitutions."""
        return list(commands(self.tree))

    @cached_property
    def runs(self) -> list[Command]:
        """The commands that run on the node of the script, in its directory.

        Those of the script with the values of variables in their words; behind each, those that it runs by
        wrappers and in texts for eval or a shell.
        """
        return list(dict.fromkeys(one.command for one in self._started if isinstance(one, Run)))

    def innermost(self, command: Command) -> list[Command]:
        """Return the commands that a command runs, or itself if it runs none."""
        found = [one for one in self.runs if one.node is command.node]
        return found[1:] or found or [command]

    @cached_property
    def redirections(self) -> list[tuple[syntax.Node, syntax.Node]]:
        """The redirections to and from files, also those in texts for a shell.

        Each has a node of the script: its own, or that of the command with the text.
        """
        texts = {id(one.text): (one.text, one.command.node) for one in self.started if one.text is not None}
        return [
            *((one, one) for one in self.tree.all("file_redirect")),
            *((one, place) for text, place in texts.values() for one in text.all("file_redirect")),
        ]

    @cached_property
    def assignments(self) -> list[tuple[str, syntax.Node, syntax.Node]]:
        return list(syntax.assignments(self.tree))

    @cached_property
    def values(self) -> dict[str, list[syntax.Node]]:
        """The values that each variable is set to."""
        found: dict[str, list[syntax.Node]] = {}
        for name, value, _ in self.assignments:
            found.setdefault(name, []).append(value)
        return found

    def values_in(self, nodes: Iterable[syntax.Node]) -> list[syntax.Node]:
        """Return the values of the variables in nodes."""
        names = (name for one in nodes for name, _ in syntax.expansions(one))
        return [value for name in names for value in self.values.get(name, ())]

    @cached_property
    def loop_variables(self) -> set[str]:
        bounds = (node.get("variable") for node in self.tree.all(*syntax.LOOPS))
        return {bound.text for bound in bounds if bound is not None}

    @cached_property
    def functions(self) -> dict[str, str]:
        """The text of each function; of several with one name, that of the first."""
        nodes = reversed(list(self.tree.all("function_definition")))
        return {name.text: node.text for node in nodes if (name := node.get("name")) is not None}

    @cached_property
    def unused_functions(self) -> set[str]:
        """The functions that nothing in the script names, where each command has a plain name."""
        if not self.functions or any("$" in one.words[0].text for one in self.commands):
            return set()
        code = re.sub(r"(?m)(?:^|\s)#.*", "", self.tree.text)
        count = Counter(re.findall(r"[\w.:-]+", code))
        return {name for name in self.functions if count[name] < 2}

    def call_of(self, node: syntax.Node) -> Command | None:
        """Return the only call of the function around a node; None without it, and for that of a function."""
        name = syntax.function_of(node)
        calls = list(self.named(name)) if name else []
        return calls[0] if len(calls) == 1 and not syntax.function_of(calls[0].node) else None

    @cached_property
    def exported_functions(self) -> set[str]:
        """The names of the functions that other shells get."""
        return {
            child.text
            for one in self.tree.all("declaration_command")
            if re.match(r"export -f|(declare|typeset) -(fx|xf)", one.text)
            for child in one.children
            if child.type == "variable_name"
        }

    def texts_of(self, command: Command) -> list[str]:
        """Return the words of a command, with their values where the text determines them."""
        return [self.constants.value(word) or word.text for word in command.words]

    def is_outside(self, command: Command) -> bool:
        """Return whether a command runs by ssh on a host that the text names, and no directive."""
        host = host_of_ssh(self.texts_of(command))
        values = (option.value for option in self.options)
        return host not in ("", "localhost") and not any(names_command(value, host) for value in values)

    def functions_named(self, text: str) -> list[syntax.Node]:
        """Return the definitions of the exported functions that a text names, with those that these name."""
        names: set[str] = set()
        while more := {one for one in self.exported_functions - names if names_command(text, one)}:
            names |= more
            text = "\n".join([text, *(self.functions.get(one, "") for one in more)])
        return [one for one in self.tree.all("function_definition") if one.name in names] if names else []

    @cached_property
    def expansions(self) -> list[tuple[str, syntax.Node]]:
        return list(syntax.expansions(self.tree))

    @cached_property
    def is_array_by_command(self) -> bool:
        """Whether the command that submits the script makes an array, whose index the script reads."""
        words = {name for name, key in self.dialect.job_variables.items() if key == "array_index"}
        indices = [node for name, node in self.expansions if name in words]
        tested = any(node.under("if_statement", "test_command") for node in indices)
        needed = any(not re.search(r":?[-+=?]", node.text) for node in indices)
        return not self.request.array and needed and not tested

    @cached_property
    def constants(self) -> Constants:
        given: dict[str, int | str | None] = dict(self.dialect.variables(self.requests[0]))
        own = Constants(
            self.assignments,
            given | self._values_of_starter(),
            syntax.defaults(self.tree),
            self.changed,
            self.dialect.command_counts(self.requests[0]),
            syntax.documents(self.tree),
            self._unset,
        )
        call, starter = self._shifted_arguments, self.starter
        return own.within(call, starter.script.constants) if call and starter else own

    @cached_property
    def _shifted_arguments(self) -> Arguments | None:
        """The arguments of the call that starts this script, if it shifts them; None if a word of them may
        have another value here."""
        places = shifts(list(self.named("shift")))
        if self.starter is None or not places:
            return None
        words = self.starter.call.arguments
        names = {name for word in words for name, _ in syntax.expansions(word)}
        sets_others = any("--" in one.literals for one in self.named("set"))
        if sets_others or not names.isdisjoint(self.values):
            return None
        return Arguments(words, places, self.tree, -1, len(self.source))

    @cached_property
    def _unset(self) -> set[str]:
        """The variables that have their default here, ``NODE_RANK=${NODE_RANK:-0}``: nobody knows them before
        the job runs, and no script that starts this one has their names."""
        above, call = self.starter if self.starter is not None else (None, None)
        launcher = call.outer if call is not None else None
        sets_some = launcher is not None and (launcher.row.once_a_node or launcher.has("--container-image"))
        if above is None or sets_some or self._reads_others:
            return set()
        once = {name: nodes[0].text for name, nodes in self.values.items() if len(nodes) == 1}
        own = (name for name, text in once.items() if re.match(rf'"?\$\{{{name}:?-', text))
        return {name for name in own if _OF_NODES.fullmatch(name) and not above.may_set(name)}

    @property
    def _reads_others(self) -> bool:
        return any(one.name in ("source", ".", "eval") for one in self.commands)

    def may_set(self, name: str) -> bool:
        """Return whether this script, or one that starts it, has a name, or reads files that may set it."""
        above = self.starter.script if self.starter is not None else None
        return self._reads_others or name in self.tree.text or (above is not None and above.may_set(name))

    @cached_property
    def changed(self) -> set[str]:
        """The variables whose values are not those of their assignments."""
        return changed_variables(self.tree)

    def _values_of_starter(self) -> dict[str, str | None]:
        """Return the exported variables of the script that starts this one, and the arguments of the call."""
        if self.starter is None:
            return {}
        outer, call = self.starter
        exports = [(name, value) for name, value, node in outer.assignments if syntax.exported(node)]
        exports = [] if call.remote else exports  # ssh and the like pass none
        found = {name: outer.constants.value(value) for name, value in exports if outer.constants.node(name)}
        own = () if call.remote else outer.assignments  # A=1 ./run.sh
        found |= {
            name: outer.constants.value(value) for name, value, at in own if at.parent is call.command.node
        }
        if not any(self.named("shift")) and not any("--" in one.literals for one in self.named("set")):
            found |= {str(at): outer.constants.value(word) for at, word in enumerate(call.arguments, 1)}
        return found

    @cached_property
    def _started(self) -> list[Launch | Start | Run]:
        starter = self.starter.call if self.starter else None
        return list(launches(self.commands, self.constants, self._written, starter))

    @cached_property
    def launches(self) -> list[Launch]:
        return [one for one in self._started if isinstance(one, Launch)]

    def written_code(self, file: syntax.Node) -> syntax.Node | None:
        """Return the tree of a file of code that the script writes."""
        found = self._written.get(code_files.name(file, self.constants)) if self._written else None
        return syntax.parse(found[0].encode(), found[1]) if found is not None else None

    @cached_property
    def _written(self) -> dict[str, tuple[str, int]]:
        """The texts of the files that the script writes for later, and their lines."""
        return code_files.written(self.commands, self.constants)

    @property
    def programs(self) -> list[Start]:
        """The programs that launchers, and commands such as ssh, start on the nodes."""
        return [one for one in self.started if one.outer or one.remote or self.starter]

    @cached_property
    def started(self) -> list[Start]:
        """The programs of all commands, also of those in the text that a shell gets."""
        return [one for one in self._started if isinstance(one, Start)]

    @cached_property
    def own_runs(self) -> list[Command]:
        """Those of the ``runs`` that the shell of the script itself runs, and not one that it starts."""
        return [one.command for one in self._started if isinstance(one, Run) and one.own_shell]

    def own_running(self, *names: str) -> Iterator[Command]:
        """Yield the commands of these names that the shell of the script itself runs."""
        return (command for command in self.own_runs if command.name in names)

    def words_of(self, word: syntax.Node, command: Command) -> list[syntax.Node]:
        """Return the words that a word of a command expands to, as far as the text determines them."""
        found = self._expanded.get(id(word))
        if found is None:
            found = self._expanded[id(word)] = expanded(word, self.constants, command.node)
        return found

    @cached_property
    def _expanded(self) -> dict[int, list[syntax.Node]]:
        return {}

    @cached_property
    def hostfiles(self) -> set[str]:
        """The files that options of launchers name as lists of hosts."""
        found = [(one, key) for one in self.launches for key in _HOSTFILES if one.has(key)]
        words = [one.nodes[key] for one, key in found]
        texts = {text for word in words for text in (word.unquoted, self.path_text(word))}
        return texts | {value for one, key in found if (value := one.options[key])}

    def path_text(self, word: syntax.Node) -> str:
        """Return the path in a word, or behind ``--option=``, as far as the text determines it."""
        text = self.constants.text(word)
        text = text.partition("=")[2] if text.startswith("--") else text
        return text.replace('"', "").replace("'", "")

    def starts(self, launch: Launch) -> bool:
        """Return whether only this script, on its first node, starts a launcher; functions must be called."""
        above = list(launch.command.node.above())
        if launch.outer is not None or launch.remote or any(node.type == "heredoc_body" for node in above):
            return False
        names = {node.name for node in above if node.type == "function_definition"} - {""}
        return names <= {command.name for command in self.commands} - self.exported_functions

    @cached_property
    def program_names(self) -> set[str]:
        """The names of the programs that commands start, behind wrappers such as time and env."""
        found = set()
        for command in self.commands:
            at = command_start([self.constants.value(word) for word in command.words])
            words = [one for word in command.words[at : at + 1] for one in expanded(word, self.constants)]
            found |= {os.path.basename(self.constants.value(word) or "") for word in words[:1]}
        return found

    @cached_property
    def _calls_by_kind(self) -> Counter[str]:
        return Counter(launch.kind for launch in self.launches)

    def only(self, launch: Launch) -> bool:
        """Return whether no other launcher of this kind is called."""
        return self._calls_by_kind[launch.kind] == 1

    def launched(self, *kinds: str) -> Iterator[Launch]:
        """Yield the calls of these launchers."""
        return (launch for launch in self.launches if launch.kind in kinds)

    def named(self, *names: str) -> Iterator[Command]:
        return (command for command in self.commands if command.name in names)

    def running(self, *names: str) -> Iterator[Command]:
        """Yield the commands of these names, and those that other commands run."""
        return (command for command in self.runs if command.name in names)

    @property
    def is_pbs(self) -> bool:
        return isinstance(self.dialect, PbsDialect)

    @cached_property
    def for_another_scheduler(self) -> bool:
        """Return whether a script with ``#PBS`` has variables of Slurm alone: sbatch reads ``#PBS``, too."""
        names = {name for name, _ in self.expansions}
        own = any(name.startswith(self.dialect.variable_prefix) for name in names)
        return self.is_pbs and not own and any(one.startswith(self.dialect.foreign_prefixes) for one in names)

    @property
    def is_batch(self) -> bool:
        """Return whether the scheduler runs the script, rather than a shell; directives may be inert."""
        return bool(self.directives.live or self.directives.inert)

    @cached_property
    def gaps(self) -> set[int]:
        """The lines of directives, and the first line, that a program or a person still has to fill in."""
        if self.is_template:
            return self.head
        return {number for number, text in self._head if other_text.has_gap(text)} | self.placeholders

    @cached_property
    def head(self) -> set[int]:
        """The lines of directives, also of those without effect, and the first line."""
        return {number for number, _ in self._head}

    @cached_property
    def is_template(self) -> bool:
        """Return whether the text is not submitted as it stands: by the name of the file or its folder,
        marks, or a file beside it that completes it."""
        read = self.directives
        first = self.line(read.first_command)
        comments = self.lines[: read.first_command or None]
        head = [first, *(text for _, text in self._head)]
        marks = (map(other_text.is_template, head), map(other_text.says_template, comments))
        named = self.folder is not None and other_text.is_folder_of_templates(self.folder)
        named |= other_text.names_template(self.name)
        filled = other_text.is_field(first) or any(map(any, (*marks, map(other_text.has_escape, self.lines))))
        return named or filled or self.callers.completed

    @cached_property
    def callers(self) -> Callers:
        """The uses of the script by the files beside it, which are read."""
        path = self.path(self.name) if self.name and self.starter is None else None
        if path is None:
            return Callers()
        first_line = self.source.startswith(b"#!")
        return callers(os.path.dirname(path), os.path.basename(path), has_first_line=first_line)

    @cached_property
    def site_of_whole_nodes(self) -> str:
        """The name of a site that gives whole nodes in the queue of the script; empty if none does."""
        queue = self.request.queue or ""
        for name, (code, queues) in self.dialect.whole_nodes.items():
            if re.fullmatch(queues, queue) and re.search(code, self.tree.text):
                return name
        return ""

    @property
    def has_whole_nodes(self) -> bool:
        """Return whether no other job is on the nodes: by the request, or at the site."""
        return self.request.has_whole_nodes or self.site_of_whole_nodes != ""

    @cached_property
    def has_own_folder(self) -> bool:
        """Whether a job runs in a folder of its own: the script is copied to it, or its name has the time."""
        return self.callers.copied or re.search(_TIME, os.path.basename(self.folder or "")) is not None

    @cached_property
    def given(self) -> tuple[DirectiveOption, ...]:
        """The options of the commands that submit the script, beside it or in its own text."""
        texts = (*self.callers.options, *own_options("\n".join(self.lines), os.path.basename(self.name)))
        return tuple(one for text in texts for one in read_options(text, self.dialect.scheduler))

    @property
    def is_written(self) -> bool:
        """Return whether Nextflow or ReFrame has written the script, for one run."""
        by_name = re.match(r"rfm_\w*\.sh$|\.command\.run$", self.name)
        return by_name is not None or any(map(_WRITTEN.match, self.lines))

    @cached_property
    def _head(self) -> list[tuple[int, str]]:
        """The first line and those of all directives, with their numbers."""
        read = self.directives
        found = [(line.number, line.text) for line in (*read.live, *read.late, *read.inert)]
        return [(1, self.line(1)), *found]

    @cached_property
    def placeholders(self) -> set[int]:
        """The lines of the directives in effect whose values are still to be filled in."""
        paths = {one.line for one in self.options if one.flag in self.dialect.log_options}
        read = self.directives.live
        missing = {one.line for one in self.options if one.lacks_value}
        empty = missing | {one.line for one in self.options if one.given.endswith("=") and not one.value}
        empty |= {line.number for line in read if line.rest.endswith("=")}
        described = self.dialect.scheduler.grammar.comments  # an empty value whose comment says what to write
        gaps = {line for line in missing if described and "#" in self.line(line)[1:]}
        gaps |= {line.number for line in read if other_text.has_gap(line.text, path=line.number in paths)}
        # They may be those of a generator, too.
        own = self.values.keys()
        names = {line.number: {*other_text.variables(line.rest)} - own for line in read}
        fields = {number for number, unset in names.items() if any(name[0].islower() for name in unset)}
        gaps |= fields if len(fields) > 1 else set()
        gaps |= {number for number, unset in names.items() if unset and self.is_template}
        values = {(one.line, name) for one in self.options for name in other_text.value_variables(one.value)}
        open_values = {(line, name) for line, name in values if name not in own}
        gaps |= {line for line, _ in open_values} if len({name for _, name in open_values}) > 1 else set()
        return gaps | empty if len(empty) > 1 else gaps

    @cached_property
    def last_line(self) -> int:
        """The last line that runs: that of the first ``exit`` that no condition precedes, or the last one."""
        ends = (one.line for one in self.tree.children if one.type == "command" and one.name == "exit")
        return next(ends, len(self.lines))

    @cached_property
    def unexpanded(self) -> set[int]:
        """The lines of the other directives in effect that have a variable of the shell."""
        found = {line.number for line in self.directives.live if other_text.has_variable(line.rest)}
        return found - self.placeholders

    @property
    def in_job(self) -> bool:
        """Return whether a job runs the script: the scheduler, or another script of the job, starts it."""
        return self.is_batch or self.starter is not None

    @property
    def runs_once(self) -> bool:
        """Return whether the scheduler runs the script, or the shell of such a one, and no launcher."""
        if self.starter is None:
            return self.is_batch
        above, call = self.starter
        return call.outer is None and not call.remote and above.runs_once

    @property
    def asks_for_sh(self) -> bool:
        """Return whether the first line asks for a POSIX shell, which may be dash."""
        return re.match(r"#!\s*(/usr)?/bin/(env\s+)?(da)?sh\b", self.line(1)) is not None

    @cached_property
    def errexit(self) -> bool:
        return self._shell_option("e", "errexit")

    @cached_property
    def allexport(self) -> bool:
        return self._shell_option("a", "allexport")

    @cached_property
    def nounset(self) -> bool:
        return self._shell_option("u", "nounset")

    @cached_property
    def pipefail(self) -> bool:
        return self._shell_option("", "pipefail")

    def has_option(self, letter: str, name: str, at: int) -> bool:
        """Return whether an option of the shell is on at a byte, or from the command there on."""
        letters = rf"\w*{letter}\w*|" if letter else ""
        lines = [self.options_of_bash]
        lines += [one.literals for one in self.named("set") if one.node.start <= at]
        option = re.compile(rf"(?:^| )([-+])(?:{letters}\w*o\w* {name})(?= |$)")
        found = [option.findall(" ".join(one)) for one in lines]
        return "".join(sign for signs in found for sign in signs)[-1:] == "-"

    def _shell_option(self, letter: str, name: str) -> bool:
        """Return whether a ``set``, or the first line, enables an option of the shell."""
        given = [*(command.literals for command in self.named("set")), self.options_of_bash]
        short = [word for words in given for word in words if re.match("-(?!-)", word)]
        return any(letter and letter in word for word in short) or any(name in words for words in given)

    @property
    def options_of_bash(self) -> list[str]:
        """The words of the first line behind the shell."""
        return self.line(1).split()[1:] if self.line(1).startswith("#!") else []

    def path(self, name: str) -> str | None:
        """Return a file that the script names, relative to its own directory; None if no file is read."""
        if self.folder is None:
            return None
        return os.path.join(self.folder, os.path.expanduser(name))
