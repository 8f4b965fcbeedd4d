"""The commands that start ranks on nodes, and the options of each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from jobgen.launch.command_line import launcher_at, program_at, read_options
from jobgen.launch.launchers import LAUNCHERS, Launcher
from jobgen.launch.wrappers import command_start
from jobgen.script.commands import Command, commands
from jobgen.script.constants import Constants
from jobgen.script.syntax import Node, parse

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


def _launches(command: Command, constants: Constants, outer: Launch | None, depth: int) -> Iterator[Launch]:
    words = [word for part in command.words for word in expanded(part, constants)]
    texts = [constants.value(word) for word in words]
    at = command_start(texts)
    if outer is None:
        for inner in _inside(words, texts, at, constants, None, depth):
            yield inner._replace(command=command)
    while at < len(words):
        kind, start = launcher_at(texts, at)
        if kind is None:
            if outer is None:
                return
            at += 1
            continue
        end = program_at([_shape(*pair) for pair in zip(words, texts, strict=True)], start, kind)
        own = zip(words[start:end], texts[start:end], strict=True)
        read = read_options(texts[start:end], [word.text if text is None else text for word, text in own])
        options = {name: value for name, (value, _) in read.items()}
        nodes = {name: words[start + place] for name, (_, place) in read.items()}
        outer = Launch(kind, command, options, nodes, outer, command.line, tuple(words[end:]))
        yield outer
        at = end
        yield from _inside(words, texts, at, constants, outer, depth)


def _shape(word: Node, text: str | None) -> str | None:
    """Return a word, as it is written if its value is unknown; None for a possible option."""
    if text is not None or "[@]" in word.text or "[*]" in word.text:
        return text
    option = word.type != "string" and word.text.startswith("$") and "/" not in word.text
    return None if option else word.text.lstrip('"')


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
