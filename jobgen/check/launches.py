"""The commands that start ranks on nodes, and the options of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobgen.check.bash import Node, parse
from jobgen.check.constants import Constants
from jobgen.check.shell_commands import Command, commands, is_python
from jobgen.check.wrappers import command_start
from jobgen.launchers import LAUNCHERS, CommandLine, Launcher

_MODULES = {module: kind for kind, row in LAUNCHERS.items() for module in row.line.modules}
_KINDS = {name: kind for kind, row in LAUNCHERS.items() for name in row.names}
_PYTHON_LAUNCHERS = {name for name, kind in _KINDS.items() if LAUNCHERS[kind].line.module_options}
# Words that end the options of a launcher.
_PROGRAMS = ("bash", "sh", "singularity", "apptainer", "shifter", "numactl", "ssh")
_LONGEST = 4000  # bytes of a variable with options, which is read at each of its uses


class Launch(NamedTuple):
    """A call of a launcher: its options by name (with dashes), the nodes of their values, and its program.

    ``outer`` is the launcher that starts this one.
    """

    kind: str
    command: Command
    options: dict[str, str | None]
    nodes: dict[str, Node]
    outer: Launch | None = None
    line: int = 0
    program: tuple[Node, ...] = ()

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


def launches(found: list[Command], constants: Constants) -> list[Launch]:
    """Return all launchers in the commands, including those after another one and in ``bash -c '...'``."""
    return [launch for command in found for launch in _launches(command, constants, None, 0)]


def read_words(words: Sequence[str]) -> tuple[str, dict[str, str | None], tuple[str, ...]] | None:
    """Return the launcher that a command begins with, its options, and the words of its program."""
    texts: list[str | None] = list(words)
    kind, start = _kind(texts, 0)
    if kind is None:
        return None
    end = _end(texts, start, kind)
    blank = Node("word", None, 0, 0, 0, b"", None)
    return kind, _options([blank] * (end - start), texts[start:end])[0], tuple(words[end:])


def _launches(command: Command, constants: Constants, outer: Launch | None, depth: int) -> Iterator[Launch]:
    words = [word for part in command.words for word in expanded(part, constants)]
    texts = [constants.value(word) for word in words]
    at = command_start(texts)
    if outer is None:
        for inner in _inside(words, texts, at, constants, None, depth):
            yield inner._replace(command=command)
    while at < len(words):
        kind, start = _kind(texts, at)
        if kind is None:
            if outer is None:
                return
            at += 1
            continue
        end = _end([_shape(*pair) for pair in zip(words, texts, strict=True)], start, kind)
        options, nodes = _options(words[start:end], texts[start:end])
        outer = Launch(kind, command, options, nodes, outer, command.line, tuple(words[end:]))
        yield outer
        at = end
        yield from _inside(words, texts, at, constants, outer, depth)


def _kind(texts: list[str | None], at: int) -> tuple[str | None, int]:
    """Return the launcher at this word, None if there is none, and the index where its options begin."""
    name = os.path.basename(texts[at] or "")
    if at and texts[at - 1] == "-m" and name in _MODULES:  # uv run -m MODULE
        return _MODULES[name], at + 1
    if kind := _KINDS.get(name):
        word = LAUNCHERS[kind].line.subcommand
        return (None, at) if word and word not in texts[at + 1 : at + 2] else (kind, at + 1 + bool(word))
    if is_python(name):
        for place in range(at + 1, min(at + 5, len(texts) - 1)):
            if texts[place] == "-m" and (module := _MODULES.get(texts[place + 1] or "")):
                return module, place + 2
    return None, at


def _shape(word: Node, text: str | None) -> str | None:
    """Return a word, as it is written if its value is unknown; None for a possible option."""
    if text is not None or "[@]" in word.text or "[*]" in word.text:
        return text
    option = word.type != "string" and word.text.startswith("$") and "/" not in word.text
    return None if option else word.text.lstrip('"')


def _end(texts: list[str | None], start: int, kind: str) -> int:
    """Return the index where the program begins: at a known name, or at a word that is no option's value."""
    values = 0  # the number that the option before may take
    for at in range(start, len(texts)):
        text = texts[at] or ""
        name = os.path.basename(text)
        if text.endswith((".py", ".sh")) and not text.startswith("-"):
            return at
        starts = name in _PROGRAMS or is_python(name) or name in _PYTHON_LAUNCHERS
        if starts or (name in _KINDS and at > start):
            return at
        if text in LAUNCHERS[kind].line.module_options:
            return at
        if text.startswith("-"):
            values = values_of(text, LAUNCHERS[kind].line)
        elif values == 0 and text:
            return at
        else:
            values = max(values - 1, 0)
    return len(texts)


def values_of(option: str, line: CommandLine) -> int:
    """Return how many of the next words may be values of an option."""
    if option in ("--mca", "-mca", "--gmca", "-gmca", "--prtemca", "--pmca", "-genv", "-env"):
        return 2
    bare = (*line.flags, *line.bare)
    letters = not option.startswith("--") and all(f"-{letter}" in bare for letter in option[1:])
    alone = "=" in option or option[2:].isdigit() or option_name(option) in bare or letters
    return int(not alone)


def option_name(option: str) -> str:
    """Return the name of an option, with dashes."""
    name = option.partition("=")[0]
    return name.replace("_", "-") if name.startswith("--") else name


def _options(words: list[Node], texts: list[str | None]) -> tuple[dict[str, str | None], dict[str, Node]]:
    """Return ``--a=1 --b 2 -n 4 -n4`` by name, with dashes, and the nodes. A value is None if unknown."""
    options: dict[str, str | None] = {}
    nodes: dict[str, Node] = {}
    for at, (word, text) in enumerate(zip(words, texts, strict=True)):
        shape = text if text is not None else word.text
        if not shape.startswith("-"):
            continue
        name, equals, value = shape.partition("=")
        key = option_name(name)
        if equals:
            options[key], nodes[key] = (value if text is not None else None), word
        elif not name.startswith("--") and len(name) > 2 and name[2:].isdigit():
            options[name[:2]], nodes[name[:2]] = name[2:], word
        else:
            follows = at + 1 < len(words) and not (texts[at + 1] or "").startswith("-")
            options[key] = texts[at + 1] if follows else None
            nodes[key] = words[at + 1] if follows else word
    return options, nodes


def expanded(word: Node, constants: Constants) -> list[Node]:
    """Return the word, or the words of the variable or array of options that it expands to."""
    expansion = word
    if word.type == "string" and len(word.children) == 3:
        expansion = word.children[1]  # "${ARRAY[@]}"
    elif word.type == "command_name" and len(word.children) == 1:
        expansion = word.children[0]
    if expansion.type not in ("simple_expansion", "expansion") or len(expansion.children) > 3:
        return [word]
    name = next((node.text for node in expansion.all("variable_name")), "")
    node = constants.node(name)
    if node is None or node.end - node.start > _LONGEST:
        return [word]
    if node.type == "array" and next(expansion.all("subscript"), None):
        return node.children[1:-1]
    if node.type in ("string", "raw_string") and word.type != "string":
        return _split(node)
    return [word]


def _split(node: Node) -> list[Node]:
    """Return the words in a string of options; variables in them are still expansions."""
    text = node.text[1:-1].replace("\\\n", "  ")
    if len(text.split()) < 2:
        return [node]
    inner = parse(text.encode(), node.line)
    found = next(commands(inner), None)
    return list(found.words) if found is not None else [node]


def _inside(
    words: list[Node],
    texts: list[str | None],
    at: int,
    constants: Constants,
    outer: Launch | None,
    depth: int,
) -> Iterator[Launch]:
    """Yield the launchers in the text of ``bash -c TEXT``, ``eval TEXT`` and ``env -S TEXT``."""
    names = [os.path.basename(text or "") for text in texts[at:]]
    split = at > 0 and texts[at - 1] in ("eval", "-S", "--split-string")
    if depth > 2 or not names or not (split or names[0] in ("bash", "sh")):
        return
    for word in words[at + (not split) :]:
        node = _code(word, constants)
        if node is not None and len(node.text) > 10:
            line = word.line if node is word else words[0].line
            for command in commands(parse(node.text[1:-1].replace("\\$", "$").encode(), line)):
                yield from _launches(command, constants, outer, depth + 1)
            return


def _code(word: Node, constants: Constants) -> Node | None:
    """Return the string that a word is, or that its only variable is set to."""
    if word.type in ("string", "raw_string", "simple_expansion", "expansion"):
        names = [node.text for node in word.all("variable_name")]
        value = constants.node(names[0]) if len(names) == 1 and len(word.text) < len(names[0]) + 6 else word
        if value is not None and value.type in ("string", "raw_string") and len(value.text) < _LONGEST:
            return value
    return None
