"""The launchers in the words of a program, behind wrappers and in ``bash -c TEXT``, too."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from itertools import groupby
from typing import NamedTuple

from jobgen.launch.command_line import read_call
from jobgen.launch.wrappers import command_start

_SHELLS = ("bash", "sh", "dash", "zsh", "ksh")
_DEEPEST = 5  # launchers and shells in each other
Words = tuple[str, ...]


class LauncherChain(NamedTuple):
    """The launchers, the outermost first, with their options; the wrappers, and the program behind them.

    ``text`` is that of ``bash -c`` if there are other commands in it.
    """

    calls: tuple[tuple[str, Mapping[str, str | None]], ...]
    wrappers: Words
    program: Words
    text: str = ""


def launchers_in(words: Words, depth: int = 0) -> LauncherChain | None:
    """Return the launchers that a program starts; None without one."""
    start = command_start(words)
    wrappers, inner = words[:start], words[start:]
    if not inner or depth > _DEEPEST:
        return None
    if (text := _shell_text(inner)) is not None:
        found = _in_text(text, depth)
    elif (call := read_call(inner)) is not None:
        found = launchers_in(call.program, depth + 1) or LauncherChain((), (), call.program)
        found = found._replace(calls=((call.kind, call.options), *found.calls))
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


def _in_text(text: str, depth: int) -> LauncherChain | None:
    commands = _commands(text)
    for words in commands:
        if found := launchers_in(words[words[0] == "exec" :], depth + 1):
            return found if found.text or len(commands) == 1 else found._replace(text=text)
    return None


def _commands(text: str) -> list[Words]:
    """Return the words of each command in a text of a shell; none if its quotes do not match."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return []
    groups = groupby(words, lambda word: not word.strip(";&|()\n"))
    return [tuple(some) for between, some in groups if not between]
