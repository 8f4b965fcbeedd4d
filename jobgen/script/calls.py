"""The calls of the functions of a script, and the arguments that the code of each gets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from jobgen.script.commands import Command
from jobgen.script.constants import Arguments, Constants
from jobgen.script.syntax import LATER, LOOPS, Node, expansions, literal
from jobgen.script.word_lists import DEEPEST, expanded

_MOST = 20  # calls of a function that passes its arguments on
_BRANCHES = ("if_statement", "case_statement", "list", *LOOPS)
_SHELLS = ("subshell", "pipeline", "command_substitution")
_SPLIT = ("simple_expansion", "expansion", "command_substitution")
_ALL = re.compile(r'"?\$(?:[@*]|\{[@*](?::\d+)?\})"?')


class Calls:
    """The commands of a script by name, and the constants in each of them."""

    def __init__(self, found: Sequence[Command], constants: Constants) -> None:
        self.constants = constants
        self.by_name: dict[str, list[Command]] = {}
        for command in found:
            self.by_name.setdefault(command.name, []).append(command)
        self._reads: dict[int, set[str]] = {}

    def scopes(self, command: Command, depth: int = 0) -> Iterator[tuple[Constants, int]]:
        """Yield the constants in a command, and its line: once for each call of a function around it whose
        arguments it has. Where the command is only what the call passes on, the line is that of the call."""
        around = command.node.around("function_definition")
        if around is None or not around.name:
            yield self._at_top(command), command.line
            return
        own = self.by_name.get(around.name, ())[:_MOST] if self._has_arguments(command, around) else ()
        if not own or depth > DEEPEST:
            yield self.constants, command.line
            return
        passes = any(_ALL.fullmatch(word.text) for word in command.words)
        shifts = self._shifts(around)
        for call in own:
            if around.start <= call.node.start < around.end:
                continue  # of itself
            for scope, line in self.scopes(call, depth + 1):
                words = (one for word in call.arguments for one in expanded(word, scope, call.node))
                given = Arguments(tuple(words), shifts, command.node, around.start, around.end)
                yield self.constants.within(given), line if passes else command.line

    def _at_top(self, command: Command) -> Constants:
        """Return the constants in a command outside of functions: with the arguments of ``set --``."""
        place, given, shifts = self._own
        if place is None or place.start > command.node.start or not self._has_arguments(command, None):
            return self.constants
        end = len(place.source)
        return self.constants.within(Arguments(given, shifts, command.node, place.end, end))

    @cached_property
    def _own(self) -> tuple[Node | None, tuple[Node, ...], tuple[tuple[int, int | None], ...]]:
        """The only ``set`` of the script with arguments, these, and the places of ``shift``."""
        found = [one for one in self.by_name.get("set", ()) if new_arguments(one) is not None]
        if len(found) != 1 or found[0].node.under(*LATER, "list", *_SHELLS):
            return None, (), ()
        place = found[0].node
        given = new_arguments(found[0]) or ()
        words = tuple(one for word in given for one in expanded(word, self.constants, place))
        if any(map(_is_several, words)):
            return None, (), ()
        return place, words, self._shifts(None)

    def _has_arguments(self, command: Command, around: Node | None) -> bool:
        """Return whether a command reads arguments, or variables that a function sets to some."""
        names = {name for word in command.words for name, _ in expansions(word)}
        names.update(name for word in command.words for name in re.findall(r"\$\{?([@*]|\d+)", word.text))
        names_here = self._set_to_arguments(around) if around is not None else set[str]()
        return any(map(_is_argument, names)) or not names.isdisjoint(names_here)

    def _set_to_arguments(self, around: Node) -> set[str]:
        if around.start not in self._reads:
            self._reads[around.start] = {
                node.name
                for node in around.all("variable_assignment")
                if node.name and any(_is_argument(name) for name, _ in expansions(node))
            }
        return self._reads[around.start]

    def _shifts(self, around: Node | None) -> tuple[tuple[int, int | None], ...]:
        found = self.by_name.get("shift", ())
        if around is None:
            return shifts(found)
        return _counts([one for one in found if around.start < one.node.start < around.end])


def shifts(found: Sequence[Command]) -> tuple[tuple[int, int | None], ...]:
    """Return the places of ``shift`` outside of functions, and by how many arguments each shifts."""
    return _counts([one for one in found if not one.node.under("function_definition")])


def _counts(found: Sequence[Command]) -> tuple[tuple[int, int | None], ...]:
    counts = ((one.node, None if one.node.under(*_BRANCHES) else shifted(one)) for one in found)
    return tuple((node.start, count) for node, count in counts)


def new_arguments(command: Command) -> tuple[Node, ...] | None:
    """Return the words of ``set`` that become the arguments of the script; None if it sets none."""
    if command.name != "set":
        return None
    at = 1
    while at < len(command.words) and re.match("[-+]", text := command.words[at].text):
        if text in ("-", "--"):
            return command.words[at + 1 :]
        at += 1 + bool(re.fullmatch("[-+][a-z]*o", text))
    return command.words[at:] or None


def changes_arguments(found: Sequence[Command]) -> bool:
    """Return whether commands outside of functions and subshells change the arguments of the script."""
    changes = (one for one in found if one.name == "shift" or new_arguments(one) is not None)
    return any(not one.node.under("function_definition", *_SHELLS) for one in changes)


def _is_several(word: Node) -> bool:
    """Return whether a word may become several words, or none."""
    if word.type == "concatenation":
        return any(map(_is_several, word.children))
    return word.type in _SPLIT or re.search(r"\$@|\$\{@|\[@\]", word.text) is not None


def _is_argument(name: str) -> bool:
    return name in "@*" or name.isdigit()


def shifted(shift: Command) -> int | None:
    """Return the number of arguments that a ``shift`` takes away; None if it is not known."""
    text = literal(shift.arguments[0]) if shift.arguments else "1"
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
