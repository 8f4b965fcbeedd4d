"""The launchers in the words of a program, behind wrappers and in ``bash -c TEXT``, too."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from jobgen.check.bash import literal, parse
from jobgen.check.launches import read_words
from jobgen.check.shell_commands import commands
from jobgen.check.wrappers import command_start
from jobgen.errors import JobgenError

_SHELLS = ("bash", "sh", "dash", "zsh", "ksh")
_DEEPEST = 5  # launchers and shells in each other
Words = tuple[str, ...]


class Launched(NamedTuple):
    """The launchers, the outermost first, with their options; the wrappers, and the program behind them.

    ``text`` is that of ``bash -c`` if there are other commands in it.
    """

    calls: tuple[tuple[str, Mapping[str, str | None]], ...]
    wrappers: Words
    program: Words
    text: str = ""


def launched_by(words: Words, depth: int = 0) -> Launched | None:
    """Return the launchers that a program starts; None without one."""
    start = command_start(words)
    wrappers, inner = words[:start], words[start:]
    if not inner or depth > _DEEPEST:
        return None
    if (text := _shell_text(inner)) is not None:
        found = _in_text(text, depth)
    elif (read := read_words(inner)) is not None:
        kind, options, program = read
        found = launched_by(program, depth + 1) or Launched((), (), program)
        found = found._replace(calls=((kind, options), *found.calls))
    else:
        return None
    return found and found._replace(wrappers=(*wrappers, *found.wrappers))


def _shell_text(words: Words) -> str | None:
    """Return the text of ``bash -c TEXT``; None if it is another command."""
    at = 1 if os.path.basename(words[0]) in _SHELLS else len(words)
    while at + 1 < len(words) and words[at].startswith("-"):
        if re.fullmatch(r"-[a-z]*c", words[at]):
            return words[at + 1]
        at += 2 if re.fullmatch(r"-[a-z]*o", words[at]) else 1
    return None


def _in_text(text: str, depth: int) -> Launched | None:
    code = text.strip().encode(errors="replace")
    try:
        root = parse(code)
    except JobgenError:  # tree-sitter is not installed
        return None
    for command in commands(root):
        words = tuple(word.text if (plain := literal(word)) is None else plain for word in command.words)
        if found := launched_by(words[words[0] == "exec" :], depth + 1):
            alone = (command.words[0].start, command.words[-1].end) == (0, len(code))
            return found if found.text or alone else found._replace(text=text)
    return None
