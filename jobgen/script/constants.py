"""The variables of a script whose values are known from its text: set exactly once, to a known value."""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Collection, Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from jobgen.script.syntax import LATER, LOOPS, Node, assignments, blanks, expansions, is_prefix, literal

_NUMBERS = ("number", "simple_expansion", "expansion", "word", "string", "command_substitution")
_PARTS = ("string", "concatenation", "command_name")
ARGUMENTS = "@"  # the name of those of the script, among the variables
_SUMS = {"*": operator.mul, "/": operator.floordiv, "+": operator.add, "-": operator.sub}
_DEPTH = 8
_LONGEST = 4000  # characters of a value; longer ones are unknown
_MOST = 30  # assignments of a variable that is made of parts
_BRANCHES = ("elif_clause", "else_clause")
_SAME = {"-eq": True, "=": True, "==": True, "-ne": False, "!=": False}  # whether both sides must be equal
_BLOCKS = (*LATER, *_BRANCHES, "case_item", "subshell", "command_substitution", "list")


class Part(NamedTuple):
    """A value that is assigned to a variable, or that ``+=`` adds to it: None if it may not be added."""

    value: Node | None
    assignment: Node


class Arguments(NamedTuple):
    """The arguments of a call of a function, or of ``set --``: what ``$1`` and ``"$@"`` are in its code.

    ``shifts`` are the places of ``shift`` in the code, and by how many each shifts (None: unknown); ``place``
    is that of the command which reads the arguments, ``start`` and ``end`` are those of the code.
    """

    words: tuple[Node, ...]
    shifts: tuple[tuple[int, int | None], ...]
    place: Node
    start: int
    end: int

    def hold_at(self, node: Node) -> bool:
        """Return whether a node is in the code, or in a string of it."""
        return node.source is not self.place.source or self.start <= node.start < self.end

    def at(self, node: Node) -> tuple[Node, ...] | None:
        """Return the arguments that are left at a node of the code, or of a string in it."""
        if not self.hold_at(node):
            return None
        start = node.start if node.source is self.place.source else self.place.start
        counts = [count for at, count in self.shifts if at < start]
        return None if None in counts else self.words[sum(filter(None, counts)) :]


class Constants:
    """Known values by name. ``value`` evaluates a word; ``node`` is the node that a name is set to, ``parts``
    those that it is made of at a place.

    ``given`` are the variables that the scheduler sets, ``commands`` what commands count in this job, by
    :func:`command_key`, ``defaults`` the words of ``${NAME:=WORD}``, ``documents`` the here-documents that
    variables are set to, ``unset`` the variables that have no value but their default, ``A=${A:-WORD}``,
    ``changed`` the variables that have other values than those of their assignments.
    ``arguments`` are those of the function around the code.
    """

    arguments: Arguments | None = None

    def __init__(
        self,
        found: list[tuple[str, Node, Node]],
        given: Mapping[str, int | str | None],
        defaults: Mapping[str, Node] = {},
        changed: Collection[str] = (),
        commands: Mapping[str, int | None] = {},
        documents: Mapping[str, Node] = {},
        unset: Collection[str] = (),
    ) -> None:
        self.documents, self._unset = documents, unset
        self._changed, self._commands = changed, commands
        self._counts: Mapping[str, int | None] = {}  # the commands, where a number is counted
        self.defaults = {name: node for name, node in defaults.items() if name not in given}
        self._outer: Constants | None = None
        self._caller: Constants = self  # those outside of the code with the arguments
        self._place: Node | None = None  # of the code of another shell in the outer one
        self._assignments, self._nodes = _by_name(found)
        self._given = {
            name: str(value)
            for name, value in given.items()
            if value is not None and self._keeps(name) and name not in changed
        }
        self._known: dict[str, str | None] = {}

    def _keeps(self, name: str) -> bool:
        """Return whether the code leaves a variable its value: it sets none, or a default: ``A=${A:-B}``."""
        pairs = self._assignments.get(name, ())
        return all(re.match(rf'"?\$\{{{name}:?[-=]', value.text) for value, _ in pairs)

    def within(self, arguments: Arguments, caller: Constants | None = None) -> Constants:
        """Return the constants in the code that gets these arguments, from a script with other constants."""
        new = copy.copy(self)
        new.arguments, new._known, new._caller = arguments, {}, caller or self
        place, found = arguments.place, self._in_functions.get(arguments.start, ())
        above = (row for row in found if row[2].start < place.start and row[2].source is place.source)
        new._nodes = self._nodes | {name: value for name, value, _ in above}
        if not arguments.shifts:
            values = {str(at): self.value(word) for at, word in enumerate(arguments.words, 1)}
            new._given = self._given | {name: value for name, value in values.items() if value is not None}
        return new

    def in_function(self, place: Node) -> Constants:
        """Return the constants at a place: in a function with the variables that it sets before."""
        around = place.around("function_definition") if self._in_functions else None
        return self if around is None else self.within(Arguments((), (), place, around.start, around.end))

    @cached_property
    def _in_functions(self) -> dict[int, list[tuple[str, Node, Node]]]:
        """The variables that each function, by its place, sets once and in any case."""
        found: dict[int, list[tuple[str, Node, Node]]] = {}
        for name, pairs in self._assignments.items():
            by_function: dict[int, list[tuple[Node, Node]]] = {}
            for value, assignment in pairs:
                if (around := assignment.around("function_definition")) is not None:
                    by_function.setdefault(around.start, []).append((value, assignment))
            for start, own in by_function.items():
                value, assignment = own[0]
                above = [one for one in assignment.above() if one.start > start]
                declared = (one.text for one in above if one.type == "declaration_command")
                local = any(re.match(r"local\s", text) for text in declared)
                sure = not any(one.type in (*_BLOCKS, "pipeline", "command") for one in above)
                if len(own) == 1 and sure and (local or len(pairs) == 1):
                    found.setdefault(start, []).append((name, value, assignment))
        return found

    def of_code(self, tree: Node, place: Node, changed: Collection[str]) -> Constants:
        """Return the constants of the code of another shell at a place; its own variables come first."""
        own = list(assignments(tree))
        if not own and not changed:
            return self
        new = copy.copy(self)
        new._known, new._outer, new._place, new._changed = {}, self, place, changed
        new._assignments, new._nodes = _by_name(own)
        new._given = {name: value for name, value in self._given.items() if name not in new._assignments}
        return new

    def count(self, word: Node) -> int | None:
        """Return the number that a word is in this job, by the commands that count its nodes, too."""
        counted = copy.copy(self)
        counted._known, counted._counts = {}, self._commands
        return counted._number(word.children[-1] if word.type == "concatenation" else word, 0)

    def node(self, name: str) -> Node | None:
        if name in self._changed:
            return None
        if self._outer is not None and name not in self._assignments:
            return self._outer.node(name)
        return self._nodes.get(name)

    def parts(self, name: str, place: Node | None) -> list[Part]:
        """Return what a variable is made of at a place in the script; nothing if that is not certain.

        Without a place only a variable counts that is set once.
        """
        if name in self._changed:
            return []
        if self._outer is not None and name not in self._assignments:
            return self._outer.parts(name, self._place if place is not None else None)
        pairs = self._assignments.get(name, ())
        if len(pairs) == 1 and name in self._nodes and (place is None or place not in pairs[0][1]):
            return [Part(*pairs[0])]
        if place is None or len(pairs) > _MOST:
            return []
        found: list[Part] = []
        for value, assignment in pairs:
            if assignment.start >= place.start or assignment.text.endswith("$"):
                if found and _is_of_last_round(assignment, place, found[0].assignment):
                    return []
                continue
            adds = "+=" in {child.type for child in assignment.children}
            runs = _runs_before(assignment, place) and not (adds and assignment.under(*LOOPS))
            if not adds:
                found = [Part(value, assignment)] if runs else []
            elif found:
                found.append(Part(value if runs else None, assignment))
        return [] if found and self._changes_later(name, place, found[0].assignment) else found

    def _changes_later(self, name: str, place: Node, before: Node) -> bool:
        """Return whether a loop around a place sets a variable again below it, and not above."""
        loops = [one for one in place.above() if one.type in LOOPS and before not in one]
        later = [one for _, one in self._assignments[name] if one.start >= place.start] if loops else []
        return any(one in loop for one in later for loop in loops)

    def is_stale(self, value: Node, start: int, end: int | None) -> bool:
        """Return whether a variable in a value is set from a byte of the script on, up to another one."""
        names = [name for name, _ in expansions(value)]
        found = (one.start for name in names for _, one in self._assignments.get(name, ()))
        if any(start <= at and (end is None or at < end) for at in found):
            return True
        return ARGUMENTS in self._changed and any(re.fullmatch(r"[@*#]|\d+", name) for name in names)

    def origin(self, word: Node) -> Node:
        """Return the node that a word has its value from, which may be that of a variable."""
        for _ in range(_DEPTH):
            expansion = whole_expansion(word)
            value = self.node(variable_name(expansion)) if expansion is not None else None
            if value is None:
                break
            word = value
        return word

    def text(self, word: Node, depth: int = 0) -> str:
        """Return a word with the known values of its variables; the others are as they are written."""
        if (value := self.value(word)) is not None:
            return value
        expansion = whole_expansion(word)
        name = variable_name(expansion) if expansion is not None else ""
        node = self.node(name) if name and depth < _DEPTH else None
        if node is not None and all(read != name for read, _ in expansions(node)):
            return "" if node.type == "variable_assignment" else self.text(node, depth + 1)  # NAME=
        if word.type not in _PARTS:
            return word.text
        text, at = "", word.start
        for child in word.children:
            text += blanks(word.source, at, child.start)
            text += self.text(child, depth + 1) if child.type != '"' else ""
            at = child.end
        return text

    def value(self, node: Node, depth: int = 0) -> str | None:
        """Return the value that a word will have; None if the text does not determine it."""
        if (plain := literal(node)) is not None:
            return plain
        if depth > _DEPTH:
            return None
        if node.type in ("simple_expansion", "expansion"):
            names = [name for name, _ in expansions(node)]
            is_plain = len(node.children) <= (2 if node.type == "simple_expansion" else 3)
            has_default = len(node.children) == 5 and node.children[2].type in (":-", "-", ":=", "=")
            if names[:1] and names[0].isdigit() and self.arguments is not None and self.arguments.shifts:
                given = self.arguments.at(node) if is_plain else None
                word = dict(enumerate(given or (), 1)).get(int(names[0]))
                return None if word is None else self._caller.value(word, depth + 1)
            if has_default and names[0] in self._unset and names[0] not in self._given:
                return self.value(node.children[3], depth + 1)
            return self.named(names[0], depth) if len(names) == 1 and (is_plain or has_default) else None
        if node.type == "arithmetic_expansion":
            total = self._number(node, depth)
            return None if total is None else str(total)
        if node.type in _PARTS:
            return self._joined(node, depth)
        if node.type == "command_substitution":
            count = self._counts.get(command_key(node.text)) or self._by_expr(node, depth)
            return None if count is None else str(count)
        return None

    def _by_expr(self, node: Node, depth: int) -> int | None:
        r"""Return the number that ``$(expr A \* B)`` prints; all its signs are of one rank."""
        command = node.children[1] if len(node.children) == 3 else node
        words = command.children if command.type == "command" and command.text.startswith("expr ") else []
        values = [self.value(word, depth + 1) or "" for word in words[1:]]
        numbers, signs = values[::2], values[1::2]
        if len(numbers) != len(signs) + 1 or not all(re.fullmatch(r"[0-9]{1,9}", one) for one in numbers):
            return None
        if not (set(signs) <= {"*", "/"} or set(signs) <= {"+", "-"}):
            return None
        total = int(numbers[0])
        for sign, number in zip(signs, map(int, numbers[1:]), strict=True):
            if sign == "/" and not number:
                return None
            total = _SUMS[sign](total, number)
        return total if total >= 0 else None

    def is_dead(self, node: Node) -> bool:
        """Return whether a node is in a branch of ``if [ A = B ]`` that known values exclude."""
        path = [node, *node.above()]
        for below, above in pairwise(path):
            condition = above.get("condition") if above.type == "if_statement" else None
            if condition is None or below.field == "condition":
                continue
            holds = self._holds(condition)
            if holds is not None and holds == (below.type in _BRANCHES):
                return True
        return False

    def _holds(self, condition: Node) -> bool | None:
        """Return whether a test of a variable and a known value is true; None for another condition."""
        tests = list(condition.all("binary_expression"))
        sides = [tests[0].get(name) for name in ("left", "operator", "right")] if len(tests) == 1 else []
        if condition.type != "test_command" or not sides or any(word is None for word in sides):
            return None
        left, sign, right = (word for word in sides if word is not None)
        values = [self.value(left), self.value(right)]
        numbers = not sign.text.startswith("-") or all(one is not None and one.isdigit() for one in values)
        if None in values or sign.text not in _SAME or not numbers or literal(left) is not None:
            return None
        return (values[0] == values[1]) == _SAME[sign.text]

    def _joined(self, node: Node, depth: int) -> str | None:
        """Return the joined parts of a word. The blanks between two expansions of a string have no node."""
        text, at = "", node.start
        for child in node.children:
            text += blanks(node.source, at, child.start)
            at = child.end
            if child.type != '"':
                part = self.value(child, depth + 1)
                if part is None or len(text) + len(part) > _LONGEST:
                    return None
                text += part
        return text

    def named(self, name: str, depth: int = 0) -> str | None:
        """Return the value of a variable, also of the scheduler; None if the text does not determine it."""
        if name in self._given:
            return self._given[name]
        if name not in self._known:
            self._known[name] = None  # for a variable that is set to itself
            node = self.node(name)
            inside = node is None or self.arguments is None or self.arguments.hold_at(node)
            scope = self if inside else self._caller
            self._known[name] = None if node is None else scope.value(node, depth + 1)
        return self._known[name]

    def _number(self, node: Node, depth: int) -> int | None:
        if depth > _DEPTH:
            return None
        if node.type in (*_NUMBERS, "variable_name"):
            text = self.named(node.text, depth) if node.type == "variable_name" else self.value(node, depth)
            return int(text) if text is not None and re.fullmatch(r"[0-9]{1,9}", text) else None
        inner = [child for child in node.children if child.type not in ("$((", "))", "(", ")")]
        if len(inner) == 1:
            return self._number(inner[0], depth + 1)
        if node.type != "binary_expression" or len(inner) != 3:
            return None
        left, right = self._number(inner[0], depth + 1), self._number(inner[2], depth + 1)
        if left is None or right is None:
            return None
        sign = inner[1].text
        return _SUMS[sign](left, right) if sign in _SUMS and (right or sign != "/") else None


def _by_name(
    found: list[tuple[str, Node, Node]],
) -> tuple[dict[str, list[tuple[Node, Node]]], dict[str, Node]]:
    """Return the values and assignments of each variable, and its value if all are the same text."""
    by_name: dict[str, list[tuple[Node, Node]]] = {}
    for name, value, assignment in found:
        by_name.setdefault(name, []).append((value, assignment))
    same = {name: pairs[0] for name, pairs in by_name.items() if len(pairs) == 1 or _is_same(name, pairs)}
    return by_name, {name: value for name, (value, assignment) in same.items() if certain(assignment)}


def _is_same(name: str, pairs: list[tuple[Node, Node]]) -> bool:
    """Return whether all values of a variable are one text, without output of commands and its own value."""
    value = pairs[0][0]
    fixed = "$(" not in value.text and "`" not in value.text and name not in dict(expansions(value))
    return fixed and len({one.text for one, _ in pairs}) == 1 and not any("+=" in at.text for _, at in pairs)


def command_key(text: str) -> str:
    """Return the key of a command substitution: its text without quotes, braces and needless blanks."""
    text = re.sub(r"^\$\(|\)$|[\"'`{};]", "", text)
    return re.sub(r"\s*([|<])\s*", r"\1", re.sub(r"\s+", " ", text)).strip()


def whole_expansion(word: Node, *signs: str) -> Node | None:
    """Return the expansion that a word is, with or without quotes, perhaps with one of these signs."""
    expansion = word
    if word.type == "string" and len(word.children) == 3:
        expansion = word.children[1]
    elif word.type == "command_name" and len(word.children) == 1:
        return whole_expansion(word.children[0], *signs)
    plain = len(expansion.children) <= 3 or expansion.children[2].type in signs
    plain &= expansion.type in ("simple_expansion", "expansion")
    return expansion if plain and word.end - word.start <= expansion.end - expansion.start + 2 else None


def variable_name(expansion: Node) -> str:
    return next((node.text for node in expansion.all("variable_name")), "")


def _runs_before(assignment: Node, place: Node) -> bool:
    """Return whether an assignment above a place runs whenever the place is reached, and once."""
    if is_prefix(assignment):
        return False
    around = assignment.around(*_BLOCKS)
    if around is None:
        return not place.under("function_definition")
    path = [place, *place.above()]
    at = next((at for at, above in enumerate(path) if above is around), 0)
    branch = around.type == "if_statement" and path[at - 1].type in _BRANCHES
    return at > 0 and not branch and around.type != "list"


def _is_of_last_round(later: Node, place: Node, first: Node) -> bool:
    """Return whether a loop around a place has an assignment below it, and not the first one."""
    loops = (above for above in later.above() if above.type in LOOPS)
    return any(place in loop and first not in loop for loop in loops)


def certain(assignment: Node) -> bool:
    """Return whether the assignment runs exactly once and holds for the rest of the script."""
    if is_prefix(assignment) or assignment.text.endswith("$"):
        return False  # tree-sitter ends A=$B/$C/d before the second name
    around = (*LATER, "subshell", "command_substitution", "list")
    return "+=" not in {child.type for child in assignment.children} and not assignment.under(*around)
