"""The first commands of a script that are options of a job file: modules, sourced files, variables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jobgen.convert.command_kinds import PRINT
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.script.commands import Command, commands
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments

_KINDS = ("module_use", "module", "source", "conda", "venv")  # in the order of jobgen's script
# Modules and activated environments change these: an option would set them again behind these.
_PATHS = re.compile(r"PATH|.*_PATH|PYTHONPATH|OMP_NUM_THREADS|CUDA_HOME")


def take(file: JobFile, script: Script, statements: Sequence[Node]) -> list[Node]:
    """Set the options of the first statements, until one that is none; return those that are options."""
    option_statements: list[Node] = []
    moved = 0
    for one in statements:
        if one.type in (";", "&"):
            if option_statements and option_statements[-1] is one.previous() and one.type == ";":
                option_statements.append(one)
        elif one.type == "variable_assignment" or one.text.startswith("set ") or _prints(one):
            continue
        elif one.type == "declaration_command" and _variables(file, script, one):
            option_statements.append(one)
        elif (command := _plain(one)) and (kind := _kind(file, script, command, moved)):
            moved = max(moved, _KINDS.index(kind) if kind in _KINDS else 0)
            option_statements.append(one)
        else:
            break
    return option_statements


def _prints(statement: Node) -> bool:
    command = next(commands(statement), None)
    return statement.type == "command" and command is not None and command.name in PRINT


def _plain(statement: Node) -> Command | None:
    """Return the command that a statement is, if all of its words are known and it has no variables."""
    if statement.type != "command" or any(one.type == "variable_assignment" for one in statement.children):
        return None
    found = list(commands(statement))
    plain = len(found) == 1 and len(found[0].literals) == len(found[0].arguments)
    return found[0] if plain else None


def _variables(file: JobFile, script: Script, statement: Node) -> bool:
    """Set exported variables that have one known value in the whole script; return whether all have."""
    pairs = list(assignments(statement))
    values = {name: script.constants.value(value) for name, value, _ in pairs}
    fit = statement.children[0].type == "export" and len(pairs) == len(statement.children) - 1
    once = all(len(script.values[name]) == 1 and not _PATHS.fullmatch(name) for name in values)
    if not (fit and once) or None in values.values():
        return False
    if not all(file.accepts("env", f"{name}={value}") for name, value in values.items()):
        return False
    for name, value in values.items():
        file.set_variable(name, str(value), statement.line)
    return True


def _kind(file: JobFile, script: Script, command: Command, moved: int) -> str:
    """Set the option that a command is, and return its key; empty if it is none, or comes too late."""
    words, name = command.literals, command.name
    if name == "cd":
        alone = len(list(script.named("cd", "pushd"))) == 1 and "workdir" not in file.values
        plain = alone and len(words) == 1 and words[0].startswith("/")
        return "workdir" if plain and file.try_add("workdir", words[0]) else ""
    kind, values = _environment(name, words)
    if kind in ("conda", "venv") and "container" in file.values:
        return ""  # they are those of the host
    if not kind or _KINDS.index(kind) < moved or (isinstance(values, str) and kind in file.values):
        return ""
    before = file.values.get(kind, [])
    joined = [*before, *values] if isinstance(before, list) and isinstance(values, list) else values
    return kind if file.try_add(kind, joined) else ""


def _environment(name: str, words: list[str]) -> tuple[str, str | list[str]]:
    if name in ("module", "ml") and words[:1] == ["load"] and words[1:]:
        return "module", words[1:]
    if name in ("module", "ml") and words[:1] == ["use"] and len(words) == 2:
        return "module_use", words[1:]
    if name in ("source", ".") and len(words) == 1 and words[0].startswith("/"):
        venv = words[0].removesuffix("/bin/activate")
        return ("source", words) if venv == words[0] else ("venv", venv)
    if name in ("conda", "mamba") and words[:1] == ["activate"] and len(words) == 2:
        return "conda", words[1]
    return "", ""
