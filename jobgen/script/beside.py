"""The scripts beside a script that it sources, and that it starts itself or on the nodes."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from jobgen.script.folder_words import path_here
from jobgen.script.launches import Start
from jobgen.script.script import Script, Starter

_LARGEST = 100_000  # bytes of a script that another one starts
_DEEPEST = 3  # scripts that start each other
_MOST = 20  # files that one starts, and calls of a program
_SUFFIXES = "py|pl|R|r|rb|jl|tcl|exp|m|lua|awk|php|js|c|cc|cpp"
_PROGRAM = re.compile(rf"\w\.({_SUFFIXES})$")
_IN_CODE = re.compile(rf"[\"']([\w./-]+\.(?:{_SUFFIXES}))[\"']")  # source('a.R')
# The files of tools, behind these options or with one of these names.
_OF_TOOLS = {
    "make": (r"-f *|--(?:make)?file=", ("GNUmakefile", "makefile", "Makefile")),
    "snakemake": (r"(?:-s|--snakefile)[ =]?", ("Snakefile", "workflow/Snakefile")),
}
_OF_MODULE = re.compile(r"-[bBdEiIOPqsSuvx]*m|--module")  # the option of Python and its launchers
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
    """A program beside a script that no shell runs: its first calls, its path from the folder of the script
    and its text."""

    calls: list[Start]
    path: str
    text: str


@lru_cache(maxsize=4)  # several remarks look for words in them
def programs(script: Script) -> tuple[Program, ...]:
    """Return the programs and the modules in Python and the like beside a script, each once."""
    found: dict[str, Program] = {}
    runs = (one for one in script.running("cd", "pushd") if one.arguments)
    moves = sorted(((one.node.start, one.arguments[-1]) for one in runs), key=itemgetter(0))
    read = cache(lambda paths: _program(script, paths))
    for call in script.started if script.folder is not None else ():
        before = bisect_right(moves, call.command.node.start, key=itemgetter(0))
        folder = path_here(script.constants.text(moves[before - 1][1])) if before else ""
        texts = [*call.texts, *_inputs(script, call)]
        program = read(_paths(texts, "" if re.match(r"[/~]|.*[$`]", folder) else folder))
        if program is not None:
            calls = found.setdefault(program.path, program).calls
            calls += [call] * (len(calls) < _MOST)
        if len(found) == _MOST:
            break
    return tuple(found.values())


def _paths(texts: Sequence[str], folder: str) -> tuple[str, ...]:
    """Return the paths that the program of a command may have, which runs in a folder: of a module, or else
    of the first file."""
    if (tool := _OF_TOOLS.get(os.path.basename(texts[0]).removeprefix("g"))) is not None:
        return tuple(os.path.join(folder, one) for one in _of_tool(*tool, " ".join(texts)))
    found: list[str] = []
    for word, following in pairwise((*texts, "")):
        if os.path.basename(texts[0]) == "matlab" and word in ("-r", "-batch"):
            return tuple(os.path.join(folder, f"{one}.m") for one in re.findall(r"\w+", following))
        if _PROGRAM.search(word):
            return (*found, *([] if re.match("[$`]", word) else [os.path.join(folder, word)]), word)
        if not found and _OF_MODULE.fullmatch(word) and re.fullmatch(r"[\w.]+", following):
            path = following.replace(".", "/")
            ends = (".py", "/__main__.py")
            found = [f"{one}{end}" for one in (os.path.join(folder, path), path) for end in ends]
        if inner := _IN_CODE.search(word):
            found.append(os.path.join(folder, inner[1]))
    without_suffix = "/" in texts[0] and "." not in os.path.basename(texts[0])
    return (*found, *([os.path.join(folder, texts[0])] if without_suffix and not found else []))


def _of_tool(option: str, names: Sequence[str], text: str) -> Iterator[str]:
    """Yield the paths that the file of a call of a tool may have."""
    file, place = (re.search(rf" (?:{one})(\S+)", text) for one in (option, "-C *|--directory[ =]"))
    yield from (os.path.join(place[1] if place else "", one) for one in ([file[1]] if file else names))


def _inputs(script: Script, call: Start) -> Iterator[str]:
    """Yield the files that a program reads as its input: matlab < a.m."""
    above = call.command.node.parent
    inputs = above.children if above is not None and above.type == "redirected_statement" else ()
    for one in inputs:
        if re.match("<[^<(&]", one.text) and (word := one.get("destination")) is not None:
            yield script.constants.text(word)


def _program(script: Script, paths: Sequence[str]) -> Program | None:
    for name, source in (name_and_text(script, path) for path in paths):
        own = re.search(r"\.\w+$|file$", name) or (source or b"").startswith(
            b"#!"
        )  # else a text without code
        if source is not None and own and not _SHELL.match(source):
            return Program([], name, source.decode(errors="replace"))
    return None


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
