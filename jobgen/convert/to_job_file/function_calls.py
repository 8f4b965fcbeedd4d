"""A function with arguments that is called once: its body with these, as other statements of the script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from jobgen.convert.result import Edit, apply
from jobgen.script.calls import shifted
from jobgen.script.commands import Command
from jobgen.script.script import Script
from jobgen.script.syntax import LATER, Node, expansions, literal

_ALL = re.compile(r'"?\$(?:[@*]|\{[@*](?::(\d+))?\})"?')
_ONE = re.compile(r"\$(?:([1-9])|\{([1-9]\d*)(?::?[-?][^{}]*)?\})")
_PLAIN = re.compile(r"[\w./:=,@%+-]+")
_INNER = ("function_definition", "subshell", "command_substitution", "heredoc_body")


def with_arguments(script: Script) -> Script:
    """Return the script with the arguments of each function that starts the program, and is called once,
    written in its body; every line has the number that it has."""
    edits: list[Edit] = []
    for function in script.tree.all("function_definition"):
        calls = list(script.named(function.name))
        starts = any(one.command.node in function for one in script.launches)
        if starts and len(calls) == 1 and calls[0].arguments and calls[0].node.child_of("program"):
            try:
                edits += list(_written(script, function, calls[0]))  # all or none
            except _NotKnown:
                continue
    return replace(script, source=apply(script.source, edits)) if edits else script


class _NotKnown(Exception):
    """The arguments of a part of a function are not those of its call."""


def _written(script: Script, function: Node, call: Command) -> Iterator[Edit]:
    """Yield the edits that write the arguments of a call in the body of its function.

    Raises:
        _NotKnown: a part of the body needs more of them than their values, or one may be several words.
    """
    given = [word.text for word in call.arguments]
    unknown = [word for word in call.arguments if literal(word) is None]
    if any(one.type != "string" or "$@" in one.text or "[@]" in one.text for one in unknown):
        raise _NotKnown
    inside = [one for one in script.commands if one.node in function]
    shifts = [one for one in inside if one.name == "shift"]
    if any(one.name in ("set", "getopts", "return", "source", "eval") for one in inside):
        raise _NotKnown
    for one in shifts:
        depth = sum(above.type in (*LATER, *_INNER, "list", "pipeline") for above in one.node.above())
        if depth != 1:  # that of the function
            raise _NotKnown
        after = one.node.next()
        yield Edit(one.node.start, after.end if after is not None and after.type == ";" else one.node.end, "")
    for node in function.all("declaration_command"):
        words = [one for one in node.children if one.text != "-r"]
        if node.text.startswith("local "):
            plain = all(one.type == "variable_assignment" for one in words[1:])
            if not plain or any(_is_global(script, function, one) for one in words[1:]):
                raise _NotKnown
            yield Edit(words[0].start, words[1].start, "")
    for word in _words(function):
        first = sum(_count(one) for one in shifts if one.node.start < word.start)
        yield Edit(word.start, word.end, _value(word, given[first:]))
    yield Edit(call.arguments[0].start, call.arguments[-1].end, "")


def _is_global(script: Script, function: Node, local: Node) -> bool:
    """Return whether a local variable has the name of one that the rest of the script sets or reads."""
    places = [node for name, node in script.expansions if name == local.name]
    places += [node for name, _, node in script.assignments if name == local.name]
    return not all(one in function for one in places)


def _count(shift: Command) -> int:
    if (count := shifted(shift)) is None:
        raise _NotKnown
    return count


def _words(function: Node) -> Iterator[Node]:
    """Yield what reads arguments: whole words where one is no more than that.

    Raises:
        _NotKnown: something else than a word of the body reads them.
    """
    for name, node in expansions(function):
        if not (name in "@*#" or name.isdecimal()) or name == "0":
            continue
        if any(one.type in _INNER for one in takewhile(lambda one: one is not function, node.above())):
            raise _NotKnown
        whole = node.parent
        alone = whole is not None and whole.type == "string" and whole.text == f'"{node.text}"'
        yield whole if alone and whole is not None else node


def _value(word: Node, given: Sequence[str]) -> str:
    """Return the arguments that a word reads, as the call writes them."""
    in_string = word.type != "string" and word.under("string")
    if word.text in ("$#", "${#}"):
        return str(len(given))
    if every := _ALL.fullmatch(word.text):
        return _every(word, given[int(every[1]) - 1 if every[1] else 0 :], in_string)
    if (one := _ONE.fullmatch(word.text.strip('"'))) is None:
        raise _NotKnown
    if (at := int(one[1] or one[2])) > len(given):
        raise _NotKnown
    text = given[at - 1]
    if _PLAIN.fullmatch(text):
        return text if word.type != "string" else f'"{text}"'
    if word.type == "string" or (text[0] in "\"'" and not in_string and " " not in text):
        return text
    raise _NotKnown


def _every(word: Node, given: Sequence[str], in_string: bool) -> str:
    """Return all arguments: as one word in an assignment, and for ``$*`` in quotes."""
    text, above = " ".join(given), word.parent
    is_value = above is not None and above.type == "variable_assignment"
    if not is_value and not in_string and not (word.type == "string" and "*" in word.text):
        if above is None or above.type == "concatenation":
            raise _NotKnown
        return text
    if not all(map(_PLAIN.fullmatch, given)) or (in_string and "@" in word.text):
        raise _NotKnown
    return text if in_string else f'"{text}"'
