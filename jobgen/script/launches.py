"""The commands that start ranks on nodes, and the options of each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.launch.command_line import is_python, launcher_at, program_at, read_options, values_of
from jobgen.launch.launchers import LAUNCHERS, Launcher
from jobgen.launch.wrappers import command_start, remote_start
from jobgen.script.commands import Command, commands
from jobgen.script.constants import Constants, variable_name, whole_expansion
from jobgen.script.syntax import Node, parse

_LONGEST = 4000  # bytes of a variable with options, which is read at each of its uses
_DEEPEST = 5  # variables in variables, and shells in each other
_CALLS = 20  # of a function that passes its arguments on
_SHELLS = ("bash", "sh", "zsh", "ksh", "dash")
_TEXTS = ("string", "raw_string", "concatenation")
_ESCAPE = re.compile(r"\\([$`\"\\])")  # in double quotes
_ARGUMENTS = ("$@", "${@}", "$*")
_WHICH = re.compile(r"[\"']?\$\((?:which|command -v|type -P) ([\w.-]+)\)[\"']?")


class Launch(NamedTuple):
    """A call of a launcher: its options by name (with dashes), the nodes of their values, and its program.

    ``outer`` is the launcher that starts this one, ``remote`` the command that starts it on other nodes, such
    as ssh. ``words`` are those of the options, ``unknown`` among them the words that may be more options: the
    text does not determine their values.
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

    @property
    def row(self) -> Launcher:
        """Return the row of the launcher."""
        return LAUNCHERS[self.kind]

    @property
    def title(self) -> str:
        """Return the module of Python that the command names, or the kind of the launcher."""
        words = (word.text for word in self.command.words)
        return next((word for word in words if word in self.row.line.modules), self.kind)

    def number(self, *names: str) -> int | None:
        for name in names:
            text = self.options.get(name)
            if text is not None and text.isascii() and text.isdigit() and len(text) < 10:
                return int(text)
        return None

    def has(self, *names: str) -> bool:
        return any(name in self.options for name in names)


class Start(NamedTuple):
    """A program that a launcher, or a command such as ssh, starts on the nodes, as the word of its file."""

    file: Node
    arguments: tuple[Node, ...]
    outer: Launch | None
    remote: str


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

    ``command`` and ``line`` are those of the launchers, ``place`` is the node of the script that they are in.
    ``starter`` has started the script.
    """

    command: Command
    line: int
    constants: Constants
    place: Node
    outer: Launch | None = None
    remote: str = ""
    depth: int = 0
    starter: Start | None = None

    def of_words(self, nodes: Iterable[Node]) -> Iterator[Launch | Start]:
        pairs = [(one, node) for node in nodes for one in expanded(node, self.constants, self.place)]
        found = [node for node, _ in pairs]
        texts = [self.constants.value(node) for node in found]
        forms = [_form(*pair) for pair in zip(found, texts, strict=True)]
        yield from self._behind(_Words(found, texts, forms, [origin for _, origin in pairs]), 0)

    def _behind(self, words: _Words, first: int) -> Iterator[Launch | Start]:
        """Yield the launchers from a word on: behind wrappers, shells, other launchers and ssh."""
        forms = words.forms
        start = first + command_start(forms[first:])
        for at in range(first if self.outer else start, len(forms)):
            kind, options = launcher_at(forms, at)
            if kind is not None and not (at > start and _is_value(forms, at)):
                end = program_at(forms, options, kind)
                launch = self._launch(words, kind, options, end)
                yield launch
                yield from self._replace(outer=launch)._behind(words, end)
                return
            if (code := self._code(words, at)) is not None:
                yield from self._of_code(*code)
                return
            if (behind := remote_start(forms, at)) > at:
                yield from self._replace(remote=forms[at] or "")._on_host(words, behind)
                return
            if at == start and (self.outer or self.remote or self.starter):
                yield self._start(words, at)
            if self.outer is None or (at >= start and is_python(os.path.basename(forms[at] or ""))):
                return

    def _launch(self, words: _Words, kind: str, start: int, end: int) -> Launch:
        """Return the launcher whose options are the words from one to another."""
        nodes, texts, forms = words.nodes[start:end], words.texts[start:end], words.forms[start:end]
        shapes = [node.text if text is None else text for node, text in zip(nodes, texts, strict=True)]
        read = read_options(texts, shapes)
        unknown = [nodes[at] for at in _unknown(forms, kind)]
        unknown += [node for node in words.nodes[end : end + 1] if node.text.strip('"') in _ARGUMENTS]
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
        )

    def _start(self, words: _Words, at: int) -> Start:
        """Return the program at a word, which may be that of a shell."""
        if os.path.basename(words.forms[at] or "") in _SHELLS:
            behind = range(at + 1, len(words.forms))
            at = next((one for one in behind if not (words.forms[one] or "-").startswith("-")), at)
        return Start(words.nodes[at], tuple(words.nodes[at + 1 :]), self._outer, self._remote)

    @property
    def _outer(self) -> Launch | None:
        return self.outer or (self.starter.outer if self.starter else None)

    @property
    def _remote(self) -> str:
        return self.remote or (self.starter.remote if self.starter else "")

    def _on_host(self, words: _Words, at: int) -> Iterator[Launch | Start]:
        """Yield the launchers in the words that a shell on another node reads, perhaps as one text."""
        nodes, name = words.nodes[at:], os.path.basename((words.forms[at : at + 1] or [""])[0] or "")
        is_text = any(node.type in ("string", "raw_string") and " " in node.text for node in nodes)
        if is_text and name not in _SHELLS:
            yield from self._of_code(" ".join(map(shell_text, nodes)), nodes[0].line)
        else:
            yield from self._behind(words, at)

    def _code(self, words: _Words, at: int) -> tuple[str, int | None] | None:
        """Return the text that a shell or eval gets, and its line; None for that of the command."""
        forms, node = words.forms, words.nodes[at]
        if at > 0 and forms[at - 1] in ("eval", "-S", "--split-string"):
            return self._variable(node) if node.type in ("string", "raw_string") else None
        if os.path.basename(forms[at] or "") not in _SHELLS:
            return None
        behind = at + 1
        while behind < len(forms) and (forms[behind] or "-").startswith("-"):
            if re.fullmatch(r"-[a-z]*c", forms[behind] or ""):
                return self._variable(words.nodes[behind + 1]) if behind + 1 < len(forms) else None
            behind += 1
        body = _here_document(self.command) if behind == len(forms) else None
        return (body.text.replace("\\$", "$"), body.line) if body is not None else None

    def _variable(self, word: Node) -> tuple[str, int | None] | None:
        """Return the text of a word and its line, or that of the variable that it is."""
        expansion = whole_expansion(word)
        if expansion is None:
            return (shell_text(word), word.line) if word.type in _TEXTS else None
        values = [
            one.value for one in self.constants.parts(variable_name(expansion), self.place) if one.value
        ]
        if not values or sum(one.end - one.start for one in values) > _LONGEST:
            return None
        return "".join(map(shell_text, values)), None

    def _of_code(self, text: str, line: int | None) -> Iterator[Launch | Start]:
        if self.depth > _DEEPEST or len(text) < 2:
            return
        for command in commands(parse(text.encode(), line or self.line)):
            own = command if self.outer is not None else self.command
            place = command.line if line is not None else self.line
            inner = self._replace(command=own, line=place, depth=self.depth + 1)
            yield from inner.of_words(command.words)


def launches(
    found: list[Command], constants: Constants, starter: Start | None = None
) -> Iterator[Launch | Start]:
    """Yield all launchers in the commands, also behind others and in ``bash -c '...'``, and their programs.

    ``starter`` has started the script of the commands.
    """
    calls: dict[str, list[Command]] = {}
    for command in found:
        calls.setdefault(command.name, []).append(command)
    for command in found:
        for words, line in _forms_of(command, calls):
            search = _Search(command, line, constants, command.node, starter=starter)
            yield from search.of_words(words)


def _forms_of(command: Command, calls: Mapping[str, list[Command]]) -> Iterator[tuple[Sequence[Node], int]]:
    """Yield the words of a command and its line: once for each call of a function that passes them on."""
    at = next((at for at, word in enumerate(command.words) if word.text.strip('"') in _ARGUMENTS), None)
    function = next((one for one in command.node.above() if one.type == "function_definition"), None)
    name = function.get("name") if function is not None and at is not None else None
    own = calls.get(name.text, ())[:_CALLS] if name is not None else ()
    if at is None or function is None or not own:
        yield command.words, command.line
        return
    shifts = [one for one in calls.get("shift", ()) if function.start < one.node.start < command.node.start]
    for call in own:
        yield (*command.words[:at], *call.arguments[len(shifts) :], *command.words[at + 1 :]), call.line


def _form(word: Node, text: str | None) -> str | None:
    """Return the form of a word with this value."""
    if text is not None or "[@]" in word.text or "[*]" in word.text:
        return text
    if which := _WHICH.fullmatch(word.text):
        return which[1]
    option = word.type != "string" and word.text.startswith("$") and "/" not in word.text
    return None if option else word.text.strip('"')


def _is_value(forms: Sequence[str | None], at: int) -> bool:
    """Return whether a word may be the value of an option of an unknown program."""
    before = forms[at - 1] or ""
    return before.startswith("--") and "=" not in before


def _unknown(forms: Sequence[str | None], kind: str) -> Iterator[int]:
    """Yield the indices of the words that may be options."""
    values = 0
    for at, form in enumerate(forms):
        if form is None and values == 0:
            yield at
        option = form is not None and form.startswith("-")
        values = values_of(form or "", LAUNCHERS[kind].line) if option else max(values - 1, 0)


def _here_document(command: Command) -> Node | None:
    """Return the here-document that is the input of a command."""
    above = command.node.parent
    if above is None or above.type != "redirected_statement":
        return None
    return next((one for part in above.children[1:] for one in part.all("heredoc_body")), None)


def expanded(word: Node, constants: Constants, place: Node | None = None, depth: int = 0) -> list[Node]:
    """Return the word, or the words of the variable or array of options that it expands to at a place.

    Variables in these words are expanded, too. Without a place only a variable is that is set once, and only
    the variable itself.
    """
    expansion = whole_expansion(word)
    if expansion is None or depth > _DEEPEST:
        return [word]
    parts = constants.parts(variable_name(expansion), place)
    if not parts or sum(one.value.end - one.value.start for one in parts if one.value) > _LONGEST:
        return [word]
    subscript, quoted = next(expansion.all("subscript"), None), word.type == "string"
    found: list[Node] = []
    for value, assignment in parts:
        if value is None:
            found.append(word)  # it stands for words that the text does not determine
            continue
        is_text = value.type in ("string", "raw_string") and not quoted
        is_copy = value.type in ("simple_expansion", "expansion") and not quoted and place is not None
        if value.type == "array" and subscript and subscript.text.endswith(("[@]", "[*]")):
            inner = value.children[1:-1]
        elif is_text and (not found or value.text[1:2].isspace()):
            if (words := _split(value)) is None:
                return [word]
            inner = words
        elif is_copy and not found:
            inner = [value]
        else:
            known = [constants.value(one) is not None for one in (word, value)]
            return [value] if len(parts) == 1 and known == [False, True] else [word]
        if place is None:
            found += inner
        else:
            found += [one for node in inner for one in expanded(node, constants, assignment, depth + 1)]
    return found


def _split(node: Node) -> list[Node] | None:
    """Return the words in a string of options; variables in them are still expansions. None: the text cannot
    be read as words."""
    text = re.sub(r"\\?\n", lambda match: " " * len(match[0]), node.text[1:-1])
    if not re.search(r"[\s$]", text):
        return [node] if text else []
    tree = parse(text.encode(), node.line)
    found = next(commands(tree), None)
    if any(tree.all("ERROR")):
        return None
    return list(found.words) if found is not None else [node] * bool(text.strip())


def shell_text(word: Node) -> str:
    """Return the text of a word for another shell, which expands the variables in it."""
    if word.type in ("string", "raw_string"):
        return part_of_text(word, word.text[1:-1])
    return "".join(map(shell_text, word.children)) if word.type == "concatenation" else word.text


def part_of_text(word: Node, part: str) -> str:
    """Return a part of the text between the quotes of a word as another shell reads it."""
    return part if word.type == "raw_string" else unescaped(part)


def places_of_text(word: Node) -> list[int]:
    """Return the place between the quotes of a word for each byte of its shell_text, and for the end."""
    text = word.text[1:-1]
    dropped = set() if word.type == "raw_string" else {one.start() for one in _ESCAPE.finditer(text)}
    kept = ((at, letter) for at, letter in enumerate(text) if at not in dropped)
    return [*(at for at, letter in kept for _ in letter.encode()), len(text)]


def unescaped(text: str) -> str:
    """Return a text from double quotes, without the backslashes that the shell removes."""
    return _ESCAPE.sub(r"\1", text)
