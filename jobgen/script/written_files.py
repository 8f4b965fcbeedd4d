"""The files that a script writes, and whether another job writes the same ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from jobgen.script.commands import Command
from jobgen.script.other_text import has_gap
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions

_JOB_ID = ("PBS_JOBID", "SLURM_JOB_ID", "SLURM_JOBID", "TMPDIR", "RANDOM", "SLURM_TMPDIR", "$")
_CHAIN = 20  # variables; no path is made of more
# Variables whose value is the same in all jobs that a user submits in one directory.
_SAME = r"HOME|USER|LOGNAME|PWD|PBS_O_WORKDIR|PBS_O_HOME|SLURM_SUBMIT_DIR|WORK|SCRATCH"


def written(script: Script) -> Iterator[tuple[Node, str, str]]:
    """Yield each file written with ``>`` or ``>>``: the redirection, the sign and the file's words."""
    for node in script.tree.all("file_redirect"):
        file = node.get("destination")
        signs = [child.text for child in node.children if child.field is None]
        if file is not None and signs and signs[-1] in (">", ">>", ">|", "&>", "&>>"):
            yield node, signs[-1].lstrip("&"), file.unquoted


def made(script: Script) -> set[str]:
    """Return the paths of the files that the script writes, copies or edits."""
    words = [file for one, _, _ in written(script) if (file := one.get("destination")) is not None]
    words += [one.arguments[-1] for one in script.named("cp", "ln", "mv", "tee", "sed") if one.arguments]
    return {script.path_text(word) for word in words}


def target(script: Script, redirection: Node) -> str:
    """Return the path of a redirection, or its words if the text does not determine it."""
    file = redirection.get("destination")
    return "" if file is None else script.constants.value(file) or file.unquoted


def of_this_job(script: Script, redirection: Node) -> bool:
    """Return whether a path contains something of this job only, also through other variables."""
    file = redirection.get("destination")
    return file is not None and is_own(script, file)


def is_own(script: Script, path: Node) -> bool:
    """Return whether a word contains something of this job only, also through other variables."""
    todo, seen = [path], set[str]()
    while todo and len(seen) < _CHAIN:
        node = todo.pop()
        if "mktemp" in node.text:
            return True
        for name, _ in expansions(node):
            if name in _JOB_ID or re.search(r"job|tmp|id\b|run|uniq", name, re.I):
                return True
            if name not in seen:
                seen.add(name)
                todo += script.values.get(name, [])
    return False


def may_have_reader(script: Script, node: Node) -> bool:
    """Return whether a command below a node starts a script of its own, which may read any file."""
    return _last_reader(script) > node.end


@lru_cache(maxsize=4)
def _last_reader(script: Script) -> int:
    shells = (
        one for one in script.commands if one.name in _SHELLS or re.match(r"\.{0,2}/", one.words[0].text)
    )
    return max((one.node.start for one in shells), default=-1)


_SHELLS = {"bash", "sh", "source", "."}


@lru_cache(maxsize=4)  # many files of one script
def _moves(script: Script) -> tuple[Command, ...]:
    return tuple(script.named("cd", "pushd"))


def is_shared(script: Script, path: Node) -> bool:
    """Return whether all jobs of a user that start in one directory mean the same file by this word."""
    if path.under("function_definition") or not _is_fixed(script, path):
        return False
    if path.unquoted.startswith(("/", "~")):
        return True
    moves = [one.arguments for one in _moves(script) if one.node.start < path.start]
    folders = [words[0] for words in moves if len(words) == 1]
    known = all(_is_fixed(script, one) and not _is_new(script, one) for one in folders)
    return not script.has_own_folder and len(folders) == len(moves) and known


def _is_new(script: Script, folder: Node) -> bool:
    """Return whether the script ends if a folder exists, before it makes it."""
    exists = re.compile(rf"-[ed]\s+[\"']?{re.escape(folder.text.strip(chr(34)))}[\"'\s]")
    for node in script.tree.all("if_statement"):
        condition = node.get("condition")
        if condition is not None and node.start < folder.start and exists.search(condition.text):
            return re.search(r"\bexit\b", node.text) is not None and "!" not in condition.text
    return False


def _is_fixed(script: Script, path: Node) -> bool:
    """Return whether the script, the user and the directory of submission determine a word."""
    todo, seen = [path], set[str]()
    while todo:
        node = todo.pop()
        open_parts = node.all("command_substitution", "process_substitution", "array", "subscript")
        if has_gap(node.text) or any(open_parts):
            return False
        for name, _ in expansions(node):
            if re.fullmatch(_SAME, name) and name not in script.values:
                continue
            value = script.constants.node(name)
            if value is None or name in seen or name in script.loop_variables:
                return False
            seen.add(name)
            todo.append(value)
    return True
