"""Recorded answers of the commands of schedulers, and programs that print them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from itertools import dropwhile
from pathlib import Path
from typing import NamedTuple

from support import ROOT
from support.jobs import path_with

ANSWERS = ROOT / "tests/answers"


class Answer(NamedTuple):
    """A command and what it printed."""

    words: tuple[str, ...]
    out: str
    err: str
    status: int


def read(path: Path) -> list[Answer]:
    """Return the answers of a file: the command after ``$``, the output after ``|``, the errors after ``!`` and the
    status after ``=``."""
    found = []
    for block in re.findall(r"^\$ .*?^= \d+$", path.read_text(), re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        out, err = (
            "".join(f"{line[2:]}\n" for line in lines if line.startswith(mark)) for mark in ("|", "!")
        )
        words = tuple(dropwhile(lambda word: "=" in word, lines[0][2:].split()))  # variables
        found.append(Answer(words, out, err, int(lines[-1][2:])))
    return found


def commands(folder: Path, answers: Iterable[Answer]) -> str:
    """Write programs that print these answers; another question ends with status 99. Return a PATH. The time and the
    user of qselect are any."""
    programs: dict[str, list[str]] = {}
    for number, answer in enumerate(answers):
        name, *words = answer.words
        for kind, text in (("out", answer.out), ("err", answer.err)):
            (folder / f"{number}.{kind}").write_text(text)
        words = ["-tc.ge.*" if word.startswith("-tc.ge.") else shlex.quote(word) for word in words]
        if name == "qselect":
            words[-1] = "*"
        pattern = r"\ ".join(words)
        shown = f"/bin/cat {folder}/{number}.out; /bin/cat {folder}/{number}.err >&2; exit {answer.status}"
        programs.setdefault(name, []).append(f"{pattern}) {shown} ;;")
    last = '*) echo "not recorded: $0 $*" >&2; exit 99 ;;'
    texts = {name: "\n".join(['case "$*" in', *cases, last, "esac"]) for name, cases in programs.items()}
    return f"{path_with(folder / 'bin', **texts)}:/usr/bin:/bin"
