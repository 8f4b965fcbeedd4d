"""The scripts beside a script that it sources, and that it starts itself or on the nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from jobgen.script.folder_words import path_here
from jobgen.script.launches import Start
from jobgen.script.script import Script, Starter

_LARGEST = 100_000  # bytes of a script that another one starts
_DEEPEST = 3  # scripts that start each other
_MOST = 20  # scripts that one starts
_SHELL = re.compile(rb"#!\s*\S*(/|env\s+)(ba|da|z|k)?sh\b")
_DIRECTIVE = re.compile(rb"(?m)^#(SBATCH|PBS)\s")


def started(script: Script, depth: int = 1) -> Iterator[tuple[str, Script]]:
    """Yield the path, from the folder of the script, and the script of each file that it starts.

    Those that these start follow. A script with directives is left out: it is one of its own.
    """
    seen = {script.name}
    for call in script.started[:_MOST]:
        name = path_here(script.constants.text(call.file))
        if name in seen or (source := _text(script, name)) is None or not _is_script(name, source):
            continue
        seen.add(name)
        starter = Starter(script, call)
        inner = Script(source, script.scheduler, script.folder, script.version, (), name, starter)
        yield name, inner
        if depth < _DEEPEST:
            yield from started(inner, depth + 1)


class Program(NamedTuple):
    """A call of a program beside a script that no shell runs, its path from the folder of the script and its
    text."""

    call: Start
    path: str
    text: str


@lru_cache(maxsize=4)  # several remarks look for words in them
def programs(script: Script) -> tuple[Program, ...]:
    """Return the calls of programs in Python and the like beside a script."""
    found: list[Program] = []
    for call in script.started[:_MOST] if script.folder is not None else ():
        path = next((one for one in call.texts if re.search(r"\w\.(py|pl|R|r|rb|jl)$", one)), "")
        name, source = name_and_text(script, path) if path else ("", None)
        if source is not None:
            found.append(Program(call, name, source.decode(errors="replace")))
    return tuple(found)


def sourced(script: Script, depth: int = 1) -> tuple[list[Script], list[str]]:
    """Return the scripts that a script sources, also through others, and the paths of others."""
    found: list[Script] = []
    others: list[str] = []
    for one in list(script.named("source", "."))[:_MOST]:
        name = path_here(script.constants.text(one.arguments[0])) if one.arguments else ""
        if depth > _DEEPEST or (source := _text(script, name)) is None:
            others.append(name)
            continue
        inner = Script(source, script.scheduler, script.folder, name=name)
        more, unread = sourced(inner, depth + 1)
        found += [inner, *more]
        others += unread
    return found, others


def name_and_text(script: Script, path: str, shell: bool = False) -> tuple[str, bytes | None]:
    """Return the path of a file from the folder of the script, and its text; None if it is not there.

    Behind variables without a known value it is the file of this name beside the script. ``shell``: it begins
    with the line of a shell.
    """
    name = path_here(path)
    source = _text(script, name)
    if source is None and "$" in name:
        source = _text(script, name.rpartition("/")[2])
        name = name if source is None else name.rpartition("/")[2]
    return name, None if source is None or (shell and not _SHELL.match(source)) else source


def _text(script: Script, name: str) -> bytes | None:
    """Return the text of a file in the folder of a script or below; None if it is no short text."""
    path = script.path(name)
    if path is None or os.path.isabs(name) or name.startswith(".."):
        return None
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            source = file.read()
    except (OSError, ValueError):
        return None
    return None if b"\0" in source else source


def _is_script(name: str, source: bytes) -> bool:
    """Return whether a text is a script for a shell that no scheduler runs."""
    shell = _SHELL.match(source) or (name.endswith((".sh", ".bash")) and not source.startswith(b"#!"))
    return bool(shell) and not _DIRECTIVE.search(source)
