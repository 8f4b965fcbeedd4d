"""The variables of a script whose values are known from its text: set exactly once, to a known value."""

from __future__ import annotations

from jobgen.script.syntax import LATER, Node, expansions, literal

_PARTS = ("string", "concatenation", "command_name")
_DEPTH = 8
_LONGEST = 4000  # characters of a value; longer ones are unknown


class Constants:
    """Known values by name. ``value`` evaluates a word; ``node`` is the node that a name is set to.

    ``given`` are the variables that the scheduler sets.
    """

    def __init__(self, assignments: list[tuple[str, Node, Node]], given: dict[str, int | None]) -> None:
        found: dict[str, list[tuple[Node, Node]]] = {}
        for name, value, assignment in assignments:
            found.setdefault(name, []).append((value, assignment))
        self._nodes = {
            name: pairs[0][0] for name, pairs in found.items() if len(pairs) == 1 and certain(pairs[0][1])
        }
        self._given = {
            name: str(value) for name, value in given.items() if value is not None and name not in found
        }
        self._known: dict[str, str | None] = {}

    def node(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def value(self, node: Node, depth: int = 0) -> str | None:
        """Return the value that a word will have; None if the text does not determine it."""
        if (plain := literal(node)) is not None:
            return plain
        if depth > _DEPTH:
            return None
        if node.type in ("simple_expansion", "expansion"):
            names = [name for name, _ in expansions(node)]
            if len(names) != 1 or len(node.children) > (2 if node.type == "simple_expansion" else 3):
                return None
            return self._named(names[0], depth)
        if node.type == "arithmetic_expansion":
            total = self._number(node, depth)
            return None if total is None else str(total)
        if node.type in _PARTS:
            return self._joined(node, depth)
        return None

    def _joined(self, node: Node, depth: int) -> str | None:
        """Return the joined parts of a word. The blanks between two expansions of a string have no node."""
        text, at = "", node.start
        for child in node.children:
            text += node.source[at : child.start].decode("utf-8", "replace")
            at = child.end
            if child.type != '"':
                part = self.value(child, depth + 1)
                if part is None or len(text) + len(part) > _LONGEST:
                    return None
                text += part
        return text

    def _named(self, name: str, depth: int) -> str | None:
        if name in self._given:
            return self._given[name]
        if name not in self._known:
            self._known[name] = None  # for a variable that is set to itself
            node = self._nodes.get(name)
            self._known[name] = None if node is None else self.value(node, depth + 1)
        return self._known[name]

    def _number(self, node: Node, depth: int) -> int | None:
        if depth > _DEPTH:
            return None
        if node.type in ("number", "variable_name", "simple_expansion", "expansion", "word"):
            text = self._named(node.text, depth) if node.type == "variable_name" else self.value(node, depth)
            return (
                int(text)
                if text is not None and text.isascii() and text.isdigit() and len(text) < 10
                else None
            )
        inner = [child for child in node.children if child.type not in ("$((", "))", "(", ")")]
        if len(inner) == 1:
            return self._number(inner[0], depth + 1)
        if node.type != "binary_expression" or len(inner) != 3:
            return None
        left, right = self._number(inner[0], depth + 1), self._number(inner[2], depth + 1)
        if left is None or right is None:
            return None
        sign = inner[1].text
        if sign == "/":
            return left // right if right else None
        return {"*": left * right, "+": left + right, "-": left - right}.get(sign)


def certain(assignment: Node) -> bool:
    """Return whether the assignment runs exactly once and holds for the rest of the script."""
    parent = assignment.parent
    if parent is not None and parent.type == "command":
        return False  # a prefix holds for that command only
    if assignment.text.endswith("$"):
        return False  # tree-sitter ends A=$B/$C/d before the second name
    return "+=" not in {child.type for child in assignment.children} and not assignment.under(
        *LATER, "subshell", "command_substitution", "list"
    )
