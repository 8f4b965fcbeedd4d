"""The precedence of repeated directives, and the place where a user's directives override jobgen's own.

Measured with OpenPBS 23.06, Torque 6.1.3 and Slurm 22.05. Each resource of ``-l`` and each attribute of
``-W`` is one option: ``-l walltime`` is one key, ``-l mem`` another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jobgen.schedulers.base import Grammar

_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""")


def split_user_directives(lines: Iterable[str], grammar: Grammar) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a user's directives in two parts: those that override jobgen's only if they come first, and
    those that must follow.

    A line with options of both kinds becomes two.
    """
    first: list[str] = []
    last: list[str] = []
    for line in lines:
        options = _options(line, grammar) if grammar.heeds_first else [("", line)]
        early = [text for letter, text in options if grammar.precedence(letter) == "first"]
        late = [text for letter, text in options if grammar.precedence(letter) != "first"]
        if early:
            first.append(" ".join(early) if late else line)
        if late:
            last.append(" ".join(late) if early else line)
    return tuple(first), tuple(last)


def _options(line: str, grammar: Grammar) -> list[tuple[str, str]]:
    """Return each option, such as ``-l``, with its text; the line as a whole if its quotes do not match."""
    if _WORD.sub("", line).strip():
        return [("", line)]
    found: list[tuple[str, str]] = []
    words = _WORD.findall(line)
    while words:
        word = words.pop(0)
        option, complete = _option(word, grammar)
        if option and not complete and words:
            word = f"{word} {words.pop(0)}"
        if not option and found:  # neither an option nor a value: qsub refuses it in any place
            option, word = found[-1][0], f"{found.pop()[1]} {word}"
        found.append((option, word))
    return found


def _option(word: str, grammar: Grammar) -> tuple[str, bool]:
    """Return the option in a word (the last of several letters), and whether the word has its value."""
    if not re.match(r"-[^-]", word):
        return "", True
    for at, letter in enumerate(word[1:], 2):
        if f"{letter}:" in grammar.letters:
            return f"-{letter}", len(word) > at
    return word[:2], True
