"""The precedence of repeated directives, and the place where a user's directives override jobgen's own.

Measured with OpenPBS 23.06, Torque 6.1.3 and Slurm 22.05. Each resource of ``-l`` and each attribute of
``-W`` is one option: ``-l walltime`` is one key, ``-l mem`` another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from jobgen.schedulers.table import SCHEDULERS, of_script

Heeded = Literal["first", "last", "all"]
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""")


def heeded(key: str, row: str) -> Heeded:
    """Return which of repeated options applies: ``-N``, ``-l walltime``, ``-W depend``, ``--time``."""
    scheduler = of_script(row)
    if key in scheduler.heeds_all:
        return "all"
    return "first" if key.split(" ")[0] in scheduler.heeds_first else "last"


def split_user_directives(lines: Iterable[str], row: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a user's directives in two parts: those that override jobgen's only if they come first, and
    those that must follow.

    A line with options of both kinds becomes two.
    """
    first: list[str] = []
    last: list[str] = []
    for line in lines:
        options = _options(line, row) if SCHEDULERS[row].heeds_first else [("", line)]
        early = [text for letter, text in options if heeded(letter, row) == "first"]
        late = [text for letter, text in options if heeded(letter, row) != "first"]
        if early:
            first.append(" ".join(early) if late else line)
        if late:
            last.append(" ".join(late) if early else line)
    return tuple(first), tuple(last)


def _options(line: str, row: str) -> list[tuple[str, str]]:
    """Return each option, such as ``-l``, with its text; the line as a whole if its quotes do not match."""
    if _WORD.sub("", line).strip():
        return [("", line)]
    found: list[tuple[str, str]] = []
    words = _WORD.findall(line)
    while words:
        word = words.pop(0)
        option, complete = _option(word, row)
        if option and not complete and words:
            word = f"{word} {words.pop(0)}"
        if not option and found:  # neither an option nor a value: qsub refuses it in any place
            option, word = found[-1][0], f"{found.pop()[1]} {word}"
        found.append((option, word))
    return found


def _option(word: str, row: str) -> tuple[str, bool]:
    """Return the option in a word (the last of several letters), and whether the word has its value."""
    if not re.match(r"-[^-]", word):
        return "", True
    for at, letter in enumerate(word[1:], 2):
        if f"{letter}:" in SCHEDULERS[row].letters:
            return f"-{letter}", len(word) > at
    return word[:2], True
