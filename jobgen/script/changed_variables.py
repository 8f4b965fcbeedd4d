"""The variables that something other than an assignment sets, so that no assignment has their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from jobgen.script.calls import changes_arguments
from jobgen.script.commands import Command, commands
from jobgen.script.constants import ARGUMENTS
from jobgen.script.syntax import Node, assignments, is_prefix, literal, parse
from jobgen.script.word_lists import code_text

_DEEPEST = 3  # texts of eval in each other
_NAME = r"[A-Za-z_]\w*"
_ELEMENT = re.compile(rf"({_NAME})\[.*\]", re.DOTALL)
# Options of commands that have a value in the next word, and the variables that they set without a name.
_VALUES = {"read": "adinNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc"}
_NAMES = {*_VALUES, "eval", "getopts", "let", "printf", "set", "shift"}
_NAMELESS = {"read": "REPLY", "mapfile": "MAPFILE", "readarray": "MAPFILE"}
_COUNTED = re.compile(
    rf"(?<![\w$.])({_NAME})(?:\[[^]]*\])?\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(?:\+\+|--)\s*({_NAME})"
)
_BY_NAME = re.compile(r"\$(\{?\w+\}?)(\[[^]]*\])?\+?=")  # eval "$NAME=..."


def changed_variables(root: Node, depth: int = 0) -> set[str]:
    """Return the variables that a command, an expression or a loop sets, or whose values are not their text.

    ``@`` stands for the arguments of the script.
    """
    calls = _calls(root)
    found = _arrays(root, calls) | _counted(root, calls) | _declared(root, "ucln")
    found |= {name.text for one in root.all("for_statement") if (name := one.get("variable")) is not None}
    for one in root.all("unset_command"):
        found |= {child.text for child in one.children if child.type == "variable_name"}
    by_name = bool(_declared(root, "n"))
    for command in calls:
        names = list(targets(command))
        by_name |= any("$" in one for one in names)
        found |= {one for one in names if one.isidentifier()}
        if command.name == "eval" and depth < _DEEPEST:
            text = " ".join(map(code_text, command.arguments))
            by_name |= _BY_NAME.search(text) is not None
            tree = parse(text.encode())
            found |= changed_variables(tree, depth + 1)
            found |= {name for name, _, node in assignments(tree) if not is_prefix(node)}
    if changes_arguments(calls):
        found.add(ARGUMENTS)
    words = (one.text.strip("'\"") for one in root.all("word", "string_content", "raw_string"))
    return found | ({one for one in words if one.isidentifier()} if by_name else set())


def counted(root: Node) -> set[str]:
    """Return the variables that an arithmetic expression sets: their values are numbers."""
    return _counted(root, _calls(root))


def changed_arrays(root: Node) -> set[str]:
    """Return the arrays whose elements are set or removed, that have keys, or that a file or text fills."""
    return _arrays(root, _calls(root))


def _calls(root: Node) -> list[Command]:
    """Return the commands that may set a variable."""
    return [one for one in commands(root) if one.name in _NAMES]


def _counted(root: Node, calls: Sequence[Command]) -> set[str]:
    sums = root.all("arithmetic_expansion", "compound_statement", "postfix_expression", "unary_expression")
    texts = [one.text for one in sums if not one.text.startswith("{")]
    texts += [word.text.strip("'\"") for one in calls if one.name == "let" for word in one.arguments]
    found = {name for text in texts for pair in _COUNTED.findall(text) for name in pair if name}
    integers = _declared(root, "i")
    for name, value, node in assignments(root) if integers else ():
        if name in integers and not (value.text.isdigit() and f"{name}+=" not in node.text):
            found.add(name)
    return found


def _arrays(root: Node, calls: Sequence[Command]) -> set[str]:
    places = (one.get("name") for one in root.all("variable_assignment"))
    found = {one.text.partition("[")[0] for one in places if one is not None and one.type == "subscript"}
    found |= _declared(root, "A")
    for one in root.all("unset_command"):
        found |= {match[1] for match in re.finditer(rf"({_NAME})\[", one.text)}
    for command in calls:
        names = [_ELEMENT.fullmatch(one) for one in targets(command)]
        found |= {match[1] for match in names if match}
        fills = command.name in ("mapfile", "readarray") or (
            command.name == "read" and re.search(r"\s-\w*a", command.node.text)
        )
        found |= {one for one in targets(command) if fills and one.isidentifier()}
    return found


def targets(command: Command) -> Iterator[str]:
    """Yield the variables and elements that a command sets by their names."""
    words = [literal(word) or word.unquoted for word in command.arguments]
    if command.name == "printf":
        yield from (after for one, after in pairwise(words) if one == "-v")
        yield from (one[2:] for one in words[:1] if re.match("-v.", one))
    elif command.name == "getopts":
        yield from ("OPTARG", "OPTIND", *words[1:2])
    elif values := _VALUES.get(command.name):
        yield from _read(words, values) or (_NAMELESS[command.name],)


def _read(words: list[str], values: str) -> list[str]:
    """Return the variables in the words of read or mapfile, of which some options have a value."""
    at, array = 0, list[str]()
    while at < len(words) and re.match("-.", words[at]):
        last = re.search(f"[{values}]", words[at][1:])
        follows = last is not None and last.end() == len(words[at]) - 1
        if last is not None and last[0] == "a":
            array = words[at + 1 : at + 2] if follows else [words[at][last.end() + 1 :]]
        at += 1 + follows
    return array or words[at:]


def _declared(root: Node, flags: str) -> set[str]:
    """Return the variables that are declared with one of these flags."""
    pattern = re.compile(rf"(declare|typeset|local|readonly)( -\w+)* -\w*[{flags}]")
    declared = (one for one in root.all("declaration_command") if pattern.match(one.text))
    found = [child for one in declared for child in one.children]
    names = [one.get("name") if one.type == "variable_assignment" else one for one in found]
    return {one.text for one in names if one is not None and one.type == "variable_name"}
