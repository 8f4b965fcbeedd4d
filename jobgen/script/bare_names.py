"""Names that bash reads as variables without ``$``, in words that tree-sitter takes for text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from jobgen.script.syntax import Node

_IN_ARITHMETIC = rb"(?<![\w$])[A-Za-z_]\w*"
_NAMES = rb"(?<![\w$./-])[A-Za-z_]\w*(?![\w./(=])"
_IN_EXPRESSION = _IN_ARITHMETIC + rb"(?!\w|\s*=(?!=))"  # but those that it sets
_INTEGERS = re.compile(rb"\b(?:declare|typeset|local|export)[ \t]+-\w*i\w*[ \t]+([^;&|\n]*)")
_TEXTS = ("word", "string_content", "raw_string")


def bare_names(node: Node) -> Iterator[Node]:
    """Yield each name in the words below a node that bash reads as a variable without ``$``.

    ``[[ A -lt 1 ]]``, ``[[ -v A ]]``, ``let x=A+1``, ``declare -i x=A/2``, ``${list[A]}`` and
    ``${1:-$((A))}``; in other arithmetic it is no word.
    """
    found = [(word, _reads(word, word.parent)) for word in node.all("word") if word.parent is not None]
    found += [(text, _IN_EXPRESSION) for text in _expressions(node)]
    for word, pattern in found:
        for match in re.finditer(pattern, word.source[word.start : word.end]) if pattern else ():
            start, end = (word.start + at for at in match.span())
            name = Node("variable_name", None, start, end, word.line, word.source, None)
            name.parent = word.parent
            yield name


@lru_cache(maxsize=8)  # each statement of a script asks for it
def _integers(source: bytes) -> frozenset[str]:
    """Return the variables that a source declares with ``-i``."""
    texts = b" ".join(_INTEGERS.findall(source)).decode("utf-8", "replace")
    return frozenset(word.partition("=")[0] for word in texts.split())


def _expressions(node: Node) -> Iterator[Node]:
    """Yield the texts of arithmetic in arguments of ``let`` and in values of variables with ``-i``."""
    lets = (one for one in node.all("command") if one.name == "let")
    places = [word for one in lets for word in one.children if word.field == "argument"]
    integers = _integers(node.source)
    for one in node.all("variable_assignment") if integers else ():
        if one.name in integers and (value := one.get("value")) is not None:
            places.append(value)
    for place in places:
        for text in place.all(*_TEXTS):
            inner = text.around("command_substitution")
            if inner is None or inner.start < place.start:
                yield text


def _reads(word: Node, parent: Node) -> bytes | None:
    """Return the pattern of the names in a word that are variables; None if it has none."""
    if parent.type in ("binary_expression", "unary_expression"):
        sign = next((one.text for one in parent.children if one.type == "test_operator"), "")
        test = parent.around("test_command")
        inside = test is not None and test.text.startswith("[[")
        counts = inside and sign in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge")
        return _NAMES if counts or sign in ("-v", "-R") else None
    command = parent.parent if parent.type == "command_name" else parent
    group = command.parent if command is not None else None
    around = group.parent if group is not None and group.type == "subshell" else None
    if around is not None and re.fullmatch(r"\$\(\(.*\)\)", around.text) and around.under("expansion"):
        return _IN_ARITHMETIC
    return _NAMES if parent.type == "subscript" else None
