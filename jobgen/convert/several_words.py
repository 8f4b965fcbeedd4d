"""Words of a launch that may be several words, or none: arrays and arguments."""

from __future__ import annotations

import re

from jobgen.script.constants import ARGUMENTS
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions
from jobgen.script.word_lists import elements

_SEVERAL = re.compile(r"\$@|\$\{@|\[[@*]\]")
_PROGRAM = re.compile(r"[\"']?([\w./~]|\$\{?\w+\}?/)")


def may_have_options(script: Script, word: Node) -> bool:
    """Return whether an array, or the arguments, may begin with options of the launcher before it.

    Arguments of the submission are a program with its own.
    """
    if not _SEVERAL.search(word.text):
        return False
    command = word.around("command") or word
    found = [one for one in script.launches if one.command.node is command and one.program]
    if found and not any(_SEVERAL.search(one.program[0].text) for one in found):
        return any(node not in command for one in found for node in one.words)
    if (name := next((name for name, _ in expansions(word)), ARGUMENTS)) == ARGUMENTS:
        return ARGUMENTS in script.changed
    values = [elements(one) for one in script.values.get(name, ()) if one.type == "array"]
    first = values[0][0] if values and values[0] else word
    if first is not word and _SEVERAL.search(first.text) and name not in first.text:
        return may_have_options(script, first)
    return not (values and values[0] and _PROGRAM.match(script.constants.text(values[0][0])))
