"""``--expand``: values in the words of a program that are known only when the job runs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from jobgen.launch.launchers import LAUNCHERS, MPI_FLAVOURS

if TYPE_CHECKING:
    pass

# Whatever else a shell would expand is text. The numbers are the arguments of the script.
_REFERENCE = r"\$(?:\{([A-Za-z_]\w*|[1-9])\}|([A-Za-z_]\w*|[1-9]))"


_SHELLS = r"(?:ba|da|z|k)?sh|python[\d.]*"


def parts(words: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Return each word as pairs of text and the name that follows it, of which the last is empty.

    Code, as after ``bash -c``, contains no names: a value must not become a part of it.
    """
    code = code_at(words)
    return [[(word, "")] if at == code else _parts(word) for at, word in enumerate(words)]


def code_at(words: Sequence[str]) -> int:
    """Return the index of the word that a shell or Python runs as code; -1 if there is none."""
    for at, word in enumerate(words):
        if re.fullmatch(_SHELLS, os.path.basename(word)):
            behind = at + 1
            while behind < len(words) and words[behind].startswith("-"):
                if re.fullmatch(r"-[a-zA-Z]*c", words[behind]):
                    return behind + 1
                behind += 2 if re.fullmatch(r"-[a-z]*o|-[WX]", words[behind]) else 1
            return -1
    return -1


def _parts(word: str) -> list[tuple[str, str]]:
    found, at = [], 0
    for match in re.finditer(_REFERENCE, word, re.ASCII):
        found.append((word[at : match.start()], match[1] or match[2]))
        at = match.end()
    return [*found, (word[at:], "")]


def names(words: Sequence[str]) -> tuple[str, ...]:
    """Return the names in some words, each once."""
    return tuple(dict.fromkeys(name for word in parts(words) for _, name in word if name))


def of_the_script(words: Sequence[str]) -> tuple[str, ...]:
    """Return the names in some words whose values the script has, before the ranks start."""
    return tuple(name for name in names(words) if name not in of_ranks())


@cache
def of_ranks() -> frozenset[str]:
    """Return the variables that differ between the ranks; only the ranks have their values."""
    own = [word for row in LAUNCHERS.values() if row.ranks for word in (row.ranks.rank, row.ranks.local_rank)]
    own += [word for row in MPI_FLAVOURS.values() for word in row.ranks]
    common = (
        *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "SLURM_NODEID"),
    )
    return frozenset(name for word in own for name in re.findall(r"\$\{?(\w+)", word)).union(common)
