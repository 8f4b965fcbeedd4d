"""The program that every rank runs: the words after ``--`` on the command line."""

import os
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from jobgen.errors import JobgenError, shown
from jobgen.values.text_files import check_word

_OURS = ("python3", "-m", "jobgen.train")


class Program(NamedTuple):
    """The command of one rank.

    ``file`` is the script that must exist, ``command`` the program that must be found; for a Python program,
    ``head`` is the number of words before its options.
    """

    words: tuple[str, ...]
    file: str | None = None
    command: str | None = None
    head: int | None = None

    @property
    def is_ours(self) -> bool:
        """Return whether the program is the training module of jobgen."""
        return self.words[:3] == _OURS

    @property
    def is_python(self) -> bool:
        """Return whether Python runs the program, also behind wrappers such as ``numactl`` and ``uv run``."""
        if self.head is not None:
            return True
        from jobgen.launch.wrappers import command_start  # late: few jobs need it

        name = os.path.basename("".join(self.words[command_start(self.words) :][:1]))
        return re.fullmatch(rf"{_PYTHON}|.+\.py", name) is not None


def read_program(words: tuple[str, ...]) -> Program:
    """Return the program. ``train.py ARG...`` and ``-m MODULE ARG...`` run under Python, a command runs as it
    is, and no words, or only options, run the training module.

    Raises:
        JobgenError: the name of the program is missing.
    """
    if not words or (words[0].startswith("-") and words[0] != "-m"):
        return Program((*_OURS, *words), head=3)
    if words[0] == "-m":
        if len(words) == 1 or not all(part.isidentifier() for part in words[1].split(".")):
            given = " ".join(["-m", *map(shown, words[1:2])])
            raise JobgenError(f"{given} (after --): must be followed by the name of a module")
        return Program(("python3", *words), head=3)
    if not words[0]:
        raise JobgenError("the program after -- is an empty word: name a script, -m MODULE or a command")
    if words[0].endswith(".py"):
        return Program(("python3", *words), file=words[0], head=2)
    return Program(words, command=words[0])


def script_of(words: Sequence[str]) -> str:
    """Return the name of the file that a program runs: a script, that of Python, or a command with a folder
    in its name; empty if it is unknown, or in a container or a directory that a wrapper names."""
    from jobgen.launch.wrappers import runs_elsewhere  # late: few jobs need it

    if runs_elsewhere(words):
        return ""
    name = "".join(words[(at := _script_at(words)) : at + 1])
    return name if name.endswith(".py") or (name[:1] != "-" and "/" in name) else ""


def _script_at(words: Sequence[str]) -> int:
    """Return the index of the command behind wrappers, or of the script of Python."""
    from jobgen.launch.wrappers import command_start  # late: few jobs need it

    at = command_start(words)
    if re.fullmatch(_PYTHON, os.path.basename("".join(words[at : at + 1]))):
        at += 1
        while at < len(words) and re.fullmatch(r"-(?![cm])\w+|--[\w-]+", words[at]):
            at += 1 + (words[at] in ("-W", "-X"))
    return at


_PYTHON = r"(python|pypy)[\d.]*"


def joined_words(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return a word that is a command with its arguments, as quotes make it, and its parts; None without one.

    A file whose name contains blanks has a folder in its name, and no options behind it.
    """
    for word in (words[at] for at in (0, _script_at(words)) if at < len(words)):
        try:
            parts = shlex.split(word)
        except ValueError:
            continue
        head = os.path.basename("".join(parts[:1]))
        runs = head.endswith((".py", ".sh")) or re.fullmatch(rf"{_PYTHON}|(ba|z|da|k)?sh", head)
        if len(parts) > 1 and ("/" not in word or runs or any(one.startswith("-") for one in parts)):
            return word, parts
    return None


def has_operator(words: Sequence[str]) -> bool:
    """Return whether a word is an operator of a shell, such as ``&&``, or ends with a semicolon."""
    return any(re.fullmatch(r"&&|\|\|?|&|[\w.-]+;|;|\d?(>>?|<)(&\d)?", word) for word in words)


def check_words(words: Sequence[str], origin: str) -> None:
    """Refuse words that cannot be the arguments of a program.

    Raises:
        JobgenError: one holds a NUL, or is too long.
    """
    for word in words:
        try:
            check_word(word)
        except ValueError as error:
            raise JobgenError(f"program = {shown(word)} ({origin}): a word {error}") from None
