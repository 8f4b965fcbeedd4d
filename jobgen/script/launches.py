"""The commands that start ranks on nodes, and the options of each."""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from jobgen.launch.command_line import SHELLS, is_python, launcher_at, program_at, read_options, values_of
from jobgen.launch.launchers import LAUNCHERS, Launcher
from jobgen.launch.wrappers import command_start, inputs_start, remote_start, runs_elsewhere, wrappers
from jobgen.script import code_files
from jobgen.script.calls import Calls
from jobgen.script.changed_variables import changed_variables
from jobgen.script.commands import Command, commands
from jobgen.script.constants import Constants
from jobgen.script.folder_words import real_path
from jobgen.script.syntax import MISSING, Node, literal, parse
from jobgen.script.word_lists import DEEPEST, expanded, is_empty, shell_text, text_of

_ARGUMENTS = ("$@", "${@}", "$*")
_WHICH = re.compile(
    r"[\"']?(?:\$\(|`)\s*(?:which|command -v|type -[pP]) \"?([\w.-]+|\$\w+|\$\{\w+\})\"?\s*[)`][\"']?"
)
_PATH = re.compile(r"(?!.*\s-).*/[\w.+-]+[\"']?", re.S)  # of a program, without options
_BROKEN = re.compile(rb"\s*\\[ \t]+\n")  # a backslash that a blank keeps from continuing the line
_VARIABLE = re.compile(r"\"?\$(?:(\w+)|\{(\w+)\})\"?")


class Launch(NamedTuple):
    """A call of a launcher: its options by name (with dashes), the nodes of their values, and its program.

    ``outer`` is the launcher that starts this one, ``remote`` the command that starts it on other nodes, such
    as ssh. ``words`` are those of the options, ``unknown`` among them the words that may be more options: the
    text does not determine their values. ``counts`` are the numbers in this job of options that a command
    counts when the job runs. ``whole`` is the command line with the values of its variables, in which the
    program begins at ``behind``. ``each_input``: xargs or parallel runs it for each of their inputs.
    """

    kind: str
    command: Command
    options: dict[str, str | None]
    nodes: dict[str, Node]
    outer: Launch | None = None
    line: int = 0
    program: tuple[Node, ...] = ()
    unknown: tuple[Node, ...] = ()
    remote: str = ""
    words: tuple[Node, ...] = ()
    counts: Mapping[str, int | None] = {}
    whole: tuple[Node, ...] = ()
    behind: int = 0
    each_input: bool = False

    @property
    def row(self) -> Launcher:
        """Return the row of the launcher."""
        return LAUNCHERS[self.kind]

    @property
    def chain(self) -> list[Launch]:
        """Return this launcher, the one that starts it, and so on."""
        return [self, *(self.outer.chain if self.outer else ())]

    @property
    def around(self) -> Node | None:
        """Return the command that has the program in its words, or what may be it; perhaps one in a text."""
        words = self.program or self.unknown
        return words[0].around("command") if words else None

    @property
    def front(self) -> tuple[str, ...]:
        """The known words before the options: wrappers, Python and its module, the name of the launcher."""
        words = self.whole[: self.behind - len(self.words)]
        return tuple(text for word in words if (text := literal(word)))

    @property
    def title(self) -> str:
        """Return the name, or the module of Python, by which the command calls it; else its kind."""
        names = (*self.row.line.modules, *self.row.names)
        return next((one for one in map(os.path.basename, self.front) if one in names), self.kind)

    def number(self, *names: str) -> int | None:
        for name in names:
            text = self.options.get(name)
            if text is not None and text.isascii() and text.isdigit() and len(text) < 10:
                return int(text)
            if name in self.counts:
                return self.counts[name]
        return None

    def text(self, *names: str) -> str:
        """Return the value of the first of these options that has one; empty without one."""
        return next((value for name in names if (value := self.options.get(name))), "")

    @property
    def mapped(self) -> int | None:
        """The ranks of a node of Open MPI's ``--map-by ppr:N:node``; None without it."""
        found = re.match(r"(?i)ppr:(\d{1,5}):node\b", self.text("--map-by", "-map-by"))
        return int(found[1]) if found else None

    @property
    def each(self) -> int | None:
        """The ranks of a node that an option sets, for a launcher which starts those of all nodes."""
        return self.mapped or self.number(*self.row.line.of_node)

    @property
    def devices_here(self) -> tuple[int, ...] | None:
        """The devices of DeepSpeed's ``--include localhost:0,1``; None without it."""
        found = re.fullmatch(r"localhost:(\d{1,3}(?:,\d{1,3})*)", self.text("--include"), re.ASCII)
        return tuple(map(int, found[1].split(","))) if found else None

    def place(self, *names: str) -> Node | None:
        """Return the node of the value of one of these options."""
        return next((self.nodes[name] for name in names if name in self.nodes), None)

    def has(self, *names: str) -> bool:
        return any(name in self.options for name in names)


class Run(NamedTuple):
    """A command as it runs on the node of the script: with the values of variables in its words, behind
    wrappers, in texts for eval and, without ``own_shell``, for another shell. Its node is that of the command
    in the script."""

    command: Command
    own_shell: bool


class Start(NamedTuple):
    """A program that a command starts, as the word of its file; on the nodes if a launcher (``outer``) or a
    command such as ssh (``remote``) does.

    ``shell`` is the shell or ``source`` before the file. ``command`` is the one of the script that starts it,
    ``text`` the tree of the text for a shell that names it.
    """

    file: Node
    arguments: tuple[Node, ...]
    outer: Launch | None
    remote: str
    line: int
    constants: Constants
    shell: str
    command: Command
    text: Node | None

    @property
    def texts(self) -> list[str]:
        """The words with the values of their variables; ``$(which a)`` and ``$(realpath a)`` are ``a``."""
        found = (real_path(self.constants.text(word)) for word in (self.file, *self.arguments))
        return [_WHICH.sub(r"\1", text) for text in found]


class _Words(NamedTuple):
    """The words of a command, their values (None: unknown), and their forms.

    A form is the value, or of an unknown word the text; None for a word that may be options. ``origins`` are
    the words of the script that they are from.
    """

    nodes: Sequence[Node]
    texts: Sequence[str | None]
    forms: Sequence[str | None]
    origins: Sequence[Node]

    def program(self, at: int, constants: Constants) -> tuple[Node, ...]:
        """Return the words from one on. A variable that is a whole word of them is expanded once only."""
        found: list[Node] = []
        begun, last = (self.origins[at - 1] if at else None), None
        for node, origin in zip(self.nodes[at:], self.origins[at:], strict=True):
            if origin is begun:
                found.append(node)
            elif origin is not last:
                found += expanded(origin, constants)
            last = origin
        return tuple(found)


class _Search(NamedTuple):
    """A search for launchers in the words of a command, or in the text that it gives to a shell.

    ``command`` and ``line`` are those of the launchers, ``place`` is the node of the script that they are in,
    ``text`` the tree of the text for a shell, ``own`` the command whose words are read. ``starter`` has
    started the script; ``files`` are the texts and lines of those that it writes.
    """

    command: Command
    line: int
    constants: Constants
    place: Node
    own: Node
    outer: Launch | None = None
    remote: str = ""
    depth: int = 0
    text: Node | None = None
    elsewhere: bool = False
    starter: Start | None = None
    own_shell: bool = True  # the shell of the script runs the command
    each_input: bool = False
    files: Mapping[str, tuple[str, int]] = {}

    def of_words(self, nodes: Sequence[Node]) -> Iterator[Launch | Start | Run]:
        if self.outer is None and nodes[1:] and is_empty(nodes[0], self.constants, self.place):
            nodes = nodes[1:]
        pairs = [(one, node) for node in nodes for one in expanded(node, self.constants, self.place)]
        found = [node for node, _ in pairs]
        texts = [self.constants.value(node) for node in found]
        both = zip(found, texts, strict=True)
        forms = [(text is None and self._of_path(node)) or _form(node, text) for node, text in both]
        words = _Words(found, texts, forms, [origin for _, origin in pairs])
        if found and not (self.outer or self.remote or self.elsewhere):
            yield from self._runs(words)
        yield from self._behind(words, 0)

    def _runs(self, words: _Words) -> Iterator[Run]:
        """Yield the command with the values of its words, and those that wrappers in it run here."""
        nodes = tuple(map(known, words.nodes, words.texts))
        ends = takewhile(lambda row: not row[0].container, wrappers(words.forms))
        for at in (0, *(end for _, _, end in ends if end < len(nodes))):
            if at and self._code(words, at) is not None:
                return  # the commands of the text follow
            name = os.path.basename(words.forms[at] or "")
            yield Run(Command(self.command.node, name, nodes[at:], self.line), self.own_shell)

    def _of_path(self, word: Node) -> str | None:
        """Return the form of a variable with the path of a program that is known only when the job runs."""
        match = _VARIABLE.fullmatch(word.text)
        node = self.constants.node(match[1] or match[2]) if match else None
        if node is None or not (_WHICH.fullmatch(node.text) or _PATH.fullmatch(node.text) or _is_real(node)):
            return None
        return _form(node, None)

    def _behind(self, words: _Words, first: int) -> Iterator[Launch | Start | Run]:
        """Yield the launchers from a word on: behind wrappers, shells, other launchers and ssh."""
        forms = words.forms
        start = first + command_start(forms[first:])
        if runs_elsewhere([one or "" for one in forms[first:start]]):
            self = self._replace(elsewhere=True)
        start = max(first, min(start, len(forms) - 1))  # eval $A
        for at in range(first if self.outer else start, len(forms)):
            kind, options = launcher_at(forms, at)
            if kind is not None and not (at > start and _is_value(forms, at)):
                end = program_at(forms, options, kind)
                launch = self._launch(words, kind, options, end)
                yield launch
                yield from self._replace(outer=launch)._behind(words, end)
                return
            if (code := self._code(words, at)) is not None:
                is_eval = os.path.basename(forms[at] or "") not in SHELLS
                yield from self._of_code(*code, own_shell=is_eval)
                return
            if (behind := remote_start(forms, at)) > at:
                yield from self._replace(remote=forms[at] or "")._on_host(words, behind)
                return
            if (behind := inputs_start(forms, at)) > at:
                yield from self._replace(elsewhere=True, each_input=True)._on_host(words, behind)
                return
            if at == start:
                yield from self._of_program(words, at)
            if self.outer is None or (at >= start and is_python(os.path.basename(forms[at] or ""))):
                return

    def _launch(self, words: _Words, kind: str, start: int, end: int) -> Launch:
        """Return the launcher whose options are the words from one to another."""
        nodes, texts, forms = words.nodes[start:end], words.texts[start:end], words.forms[start:end]
        shapes = [node.text if text is None else text for node, text in zip(nodes, texts, strict=True)]
        read = read_options(texts, shapes, LAUNCHERS[kind].line)
        unknown = [nodes[at] for at in _unknown(forms, kind)]
        unknown += [node for node in words.nodes[end : end + 1] if node.text.strip('"') in _ARGUMENTS]
        program = words.origins[end].start if end < len(words.origins) else sys.maxsize
        unknown += [one for one in _damage(self.own) if one.start < program]
        unknown += [self.own] * bool(_BROKEN.match(self.own.source, self.own.end))
        return Launch(
            kind,
            self.command,
            {name: value for name, (value, _) in read.items()},
            {name: nodes[at] for name, (_, at) in read.items()},
            self._outer,
            self.line,
            words.program(end, self.constants),
            tuple(unknown),
            self._remote,
            tuple(nodes),
            {
                name: self.constants.count(nodes[at])
                for name, (_, at) in read.items()
                if re.search(r"[$`]", nodes[at].text)
            },
            tuple(map(known, words.nodes, words.texts)),
            end,
            self.each_input,
        )

    def _of_program(self, words: _Words, at: int) -> Iterator[Launch | Start | Run]:
        """Yield the program at a word, which may be that of a shell, or the launchers in its text."""
        first, shell = at, os.path.basename(words.forms[at] or "")
        if shell in (*SHELLS, "source", "."):
            behind = range(at + 1, len(words.forms))
            at = next((one for one in behind if not (words.forms[one] or "-").startswith("-")), at)
            at = next((one for one in behind if self._file(words.nodes[one]) is not None), at)
        if (code := self._file(words.nodes[at])) is not None:
            yield from self._of_code(*code)
        else:
            rest = tuple(words.nodes[at + 1 :])
            line = self.line if self.depth else self.command.line
            of_shell = shell if at > first else ""
            of_call = (self.constants, of_shell, self.command, self.text)
            yield Start(words.nodes[at], rest, self._outer, self._remote, line, *of_call)

    def _file(self, word: Node) -> tuple[str, int] | None:
        """Return the text of a file that the script writes, and its line."""
        return self.files.get(code_files.name(word, self.constants)) if self.files else None

    @property
    def _outer(self) -> Launch | None:
        return self.outer or (self.starter.outer if self.starter else None)

    @property
    def _remote(self) -> str:
        return self.remote or (self.starter.remote if self.starter else "")

    def _on_host(self, words: _Words, at: int) -> Iterator[Launch | Start | Run]:
        """Yield the launchers in the words that another shell reads, perhaps as one text."""
        if at == len(words.nodes):
            if (code := code_files.read(self.command)) is not None:
                yield from self._of_code(*code)
            return
        origins = list({id(one): one for one in words.origins[at:]}.values())
        found = [text_of(one, self.constants, self.place) for one in origins]
        texts = [one[0] if one is not None and " " in one[0].strip() else "" for one in found]
        name = os.path.basename(words.forms[at] or "")
        if any(text for text in texts) and name not in SHELLS:
            whole = (text or shell_text(one) for one, text in zip(origins, texts, strict=True))
            yield from self._of_code(" ".join(whole), origins[0].line)
        else:
            yield from self._behind(words, at)

    def _code(self, words: _Words, at: int) -> tuple[str, int | None] | None:
        """Return the text that a shell or eval gets, and its line; None for that of the command."""
        forms, node = words.forms, words.nodes[at]
        if at > 0 and forms[at - 1] in ("eval", "-S", "--split-string"):
            is_text = node.type in ("string", "raw_string", "ansi_c_string")
            return text_of(node, self.constants, self.place) if is_text else None
        if os.path.basename(forms[at] or "") not in SHELLS:
            return None
        behind = at + 1
        while behind < len(forms) and (forms[behind] or "-").startswith(("-", "+")):
            option = forms[behind] or ""
            if re.fullmatch(r"-[a-z]*c", option):
                if behind + 1 == len(forms):
                    return None
                word = words.origins[behind + 1]
                if word.text.strip('"') in _ARGUMENTS:  # one of those of a function
                    word = words.nodes[behind + 1]
                return text_of(word, self.constants, self.place)
            if option in ("-s", "--"):
                return code_files.read(self.command)
            behind += 1 + bool(re.fullmatch(r"[-+][a-z]*[oO]", option))
        return code_files.read(self.command) if behind >= len(forms) else None

    def _of_code(
        self, text: str, line: int | None, own_shell: bool = False
    ) -> Iterator[Launch | Start | Run]:
        if self.depth > DEEPEST or len(text) < 2:
            return
        tree = parse(text.encode(), line or self.line)
        constants = self.constants.of_code(tree, self.place, changed_variables(tree))
        for command in commands(tree):
            inner = self._replace(
                command=command if self.outer is not None else self.command,
                constants=constants,
                place=self.place if constants is self.constants else command.node,
                own=command.node,
                line=command.line if line is not None else self.line,
                depth=self.depth + 1,
                text=tree,
                own_shell=own_shell and self.own_shell,
            )
            yield from inner.of_words(command.words)


def launches(
    found: list[Command],
    constants: Constants,
    files: Mapping[str, tuple[str, int]],
    starter: Start | None = None,
) -> Iterator[Launch | Start | Run]:
    """Yield all launchers in the commands, also behind others and in ``bash -c '...'``, and their programs;
    and the commands themselves as they run on the node of the script.

    ``files`` are the texts that the script writes, ``starter`` has started the script of the commands.
    """
    calls = Calls(found, constants)
    for command in found:
        for scope, line in calls.scopes(command):
            search = _Search(command, line, scope, command.node, command.node, starter=starter, files=files)
            yield from search.of_words(command.words)


def _damage(command: Node) -> Iterator[Node]:
    """Yield the first text with an error of syntax in a command or behind it in its line."""
    root = next((above for above in command.above() if above.parent is None), command)
    line_end = command.source.find(b"\n", command.end)
    for type in ("ERROR", MISSING) if root.damaged else ():
        errors = (root.by_type or {}).get(type, [])
        at = bisect_left(errors, command.start, key=lambda error: error.start)
        yield from (one for one in errors[at : at + 1] if one.start <= line_end or line_end < 0)


def known(word: Node, value: str | None) -> Node:
    """Return a word of a known value as plain text, if it is that of a variable."""
    plain = value is not None and literal(word) is None and re.fullmatch(r"[^\s\\\"'$`]+", value)
    if value is None or not plain:
        return word
    source = value.encode()
    return Node("word", None, 0, len(source), word.line, source, None)


def _form(word: Node, text: str | None) -> str | None:
    """Return the form of a word with this value."""
    if text is not None or "[@]" in word.text or "[*]" in word.text:
        return text
    if which := _WHICH.fullmatch(word.text):
        return which[1]
    option = word.type != "string" and word.text.startswith("$") and "/" not in word.text
    return None if option and not _is_real(word) else real_path(word.text)


def _is_real(word: Node) -> bool:
    """Return whether a word is the path that ``$(realpath ...)`` or ``$(readlink -f ...)`` prints."""
    return real_path(word.text) != word.text.strip("\"'")


def looked_up(word: Node, constants: Constants) -> str:
    """Return the program that ``$(which ...)`` finds, also by a variable; empty for another word."""
    which = _WHICH.fullmatch(constants.origin(word).text)
    return which[1] if which else ""


def _is_value(forms: Sequence[str | None], at: int) -> bool:
    """Return whether a word may be the value of an option of an unknown program."""
    before = forms[at - 1] or ""
    return before.startswith("--") and before != "--" and "=" not in before


def _unknown(forms: Sequence[str | None], kind: str) -> Iterator[int]:
    """Yield the indices of the words that may be options."""
    values = 0
    for at, form in enumerate(forms):
        if form is None and values == 0:
            yield at
        option = form is not None and form.startswith("-")
        values = values_of(form or "", LAUNCHERS[kind].line) if option else max(values - 1, 0)
