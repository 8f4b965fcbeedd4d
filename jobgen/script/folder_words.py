"""Words that name files from the folder of a script, or the folder, by ``dirname "$0"`` and the like."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

OWN = r"0|BASH_SOURCE(?:\[0\])?"  # the path of the script


def folder_pattern(paths: Collection[str] = (), folders: Collection[str] = ()) -> str:
    """Return a pattern of the words for the folder, by variables with its path or that of the script."""
    own = "|".join((OWN, *paths))
    folder = rf"(?:{_output('dirname(?: --)?', resolved(expansion(own)))}|\$\{{(?:{own})%/\*\}})"
    start = rf"(?:{folder}|{expansion('|'.join(folders))})" if folders else folder
    moves = rf"(?:cd|pushd)(?: -\S+)* [\"']?{start}[\"']?(?:/\.\.)*[\"']?[^|;)]*(?:&&|;)\s*pwd(?: -\w+)*"
    return rf"(?:{resolved(folder)}|(?:\$\(|`)\s*{moves}\s*[)`])"


def expansion(names: str) -> str:
    return rf"\$(?:\{{(?:{names})\}}|(?:{names})\b)"


def resolved(path: str) -> str:
    """Return a pattern of a path, or of a command that prints its absolute form."""
    return rf"(?:[\"']?{path}[\"']?|[\"']?{_output('(?:realpath|readlink)(?: -[-a-z]+)*', path)}[\"']?)"


def _output(command: str, word: str) -> str:
    return rf"(?:\$\(|`)\s*{command} [\"']?{word}[\"']?\s*[)`]"


_HERE = re.compile(
    r"^(\./+|\$\{?(PWD|PBS_O_WORKDIR|SLURM_SUBMIT_DIR)\}?/+|\$\(pwd\)/+|`pwd`/+" rf"|{folder_pattern()}/+)+"
)
_REAL = re.compile(
    r"^(?:\$\(|(`))\s*(?:realpath|readlink)(?: -[\w-]+)*\s+"
    r"((?:\$\((?:[^()]|\([^()]*\))*\)|[^()`;&|])+?)\s*(?(1)`|\))"
)


def path_here(text: str) -> str:
    """Return a path from the folder of the script, as far as its text determines it."""
    return os.path.normpath(_HERE.sub("", real_path(text), count=1))


def real_path(text: str) -> str:
    """Return a path without quotes; that which ``$(realpath ...)`` or ``$(readlink -f ...)`` reads."""
    plain = text.strip("\"'")
    return _REAL.sub(lambda found: found[2].strip("\"'"), plain, count=1)
