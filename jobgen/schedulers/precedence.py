"""The precedence of repeated directives, and the place where a user's directives override jobgen's own.

Measured with OpenPBS 23.06, Torque 6.1.3 and Slurm 22.05. Each resource of ``-l`` and each attribute of
``-W`` counts by itself: ``-l walltime`` is one key, ``-l mem`` another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Heeded = Literal["first", "last", "all"]
# The options of qsub and sbatch as getopt(3) takes them: a colon follows a letter that has a value.
LETTERS = {
    "pbspro": "a:A:c:C:e:fhIj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:Xz",
    "torque": "a:A:b:c:C:d:D:e:fFhIj:k:K:l:L:m:M:nN:o:p:P:q:r:S:t:T:u:v:Vw:W:xXz",
    "slurm": "a:A:b:B:c:C:d:D:e:F:G:hHi:IJ:k:K:L:m:M:n:N:o:Op:q:QsS:t:uvVw:Wx:",
}
_FIRST = {"pbspro": {"-l"}}  # by the letter; all others: the last
_ALL = {
    "pbspro": {"-W depend"},
    "torque": {"-W stagein", "-W stageout", "-W x"},
    "slurm": {"--mail-type"},
}
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""")


def heeded(key: str, row: str) -> Heeded:
    """Return which of repeated options applies: ``-N``, ``-l walltime``, ``-W depend``, ``--time``."""
    if key in _ALL.get(row, ()):
        return "all"
    return "first" if key.split(" ")[0] in _FIRST.get(row, ()) else "last"


def split_user_directives(lines: Iterable[str], row: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a user's directives in two parts: those that override jobgen's only from a place before them,
    and those that must follow.

    A line with options of both kinds becomes two.
    """
    first: list[str] = []
    last: list[str] = []
    for line in lines:
        options = _options(line, row) if _FIRST.get(row) else [("", line)]
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
        if f"{letter}:" in LETTERS[row]:
            return f"-{letter}", len(word) > at
    return word[:2], True
