"""The names of variables in a script: those that it sets, those that it reads, and those of its scheduler."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from jobgen.script.bare_names import bare_names
from jobgen.script.beside import programs, started
from jobgen.script.command_kinds import PRINT, TOOLS
from jobgen.script.constants import certain
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.script import Script
from jobgen.script.syntax import Node, exported, parse

_EXPORT = re.compile(r"export\b|(declare|typeset) -\w*x")
# Directives of a script that another one writes.
_DIRECTIVE = re.compile(r"(?m)(?:^|\\n)['\s]*(#(?:PBS|SBATCH|BSUB) [^\n\\]*)")
_IN_QUOTES = re.compile(rb"(?m)(?:^|[\"']|\\n)[ \t]*#(?:PBS|SBATCH|BSUB) ")
_OF_HEREDOC = re.compile(r"(?m)^[ \t]*#(?:PBS|SBATCH|BSUB) ")


def meanings(source: Dialect) -> dict[str, str]:
    """Return the variables of a scheduler and its dialects, with their meanings."""
    known = (one.job_variables for one in DIALECTS.values() if one.family == source.family)
    found = {name: meaning for variables in known for name, meaning in variables.items()}
    return {**found, **source.job_variables, **source.local_variables}


def names_own_job(script: Script, text: str) -> bool:
    """Return whether a text has the id of the job: a variable of a scheduler, or one with its value."""
    known = (pair for one in DIALECTS.values() for pair in one.job_variables.items())
    ids = {name for name, meaning in known if meaning in ("job_id", "array_job")}
    words = set(re.findall(r"\w+", text))
    values = (value.text for name in words for value in script.values.get(name, ()))
    return not ids.isdisjoint(words.union(*(re.findall(r"\w+", value) for value in values)))


def kept(script: Script) -> set[str]:
    """Return the variables that the script sets in any case before it reads them."""
    read: dict[str, int] = {}
    for name, node in script.expansions:
        read.setdefault(name, node.start)
    found = ((name, node) for name, _, node in script.assignments if certain(node))
    return {name for name, node in found if read.get(name, node.end) >= node.end}


def shared(script: Script) -> set[str]:
    """Return the variables that the script sets in some cases only: otherwise they are the scheduler's."""
    return script.values.keys() - kept(script)


@lru_cache(4)
def exported_names(script: Script) -> frozenset[str]:
    """Return the variables that a script passes on to programs: to all by an export, or to one before it."""
    return _for_all(script).union(name for name, _, node in script.assignments if exported(node))


def _for_all(script: Script) -> frozenset[str]:
    """Return the variables that a script exports by their names or with their values."""
    declared = [node for node in script.tree.all("declaration_command") if _EXPORT.match(node.text)]
    names = (child.text for node in declared for child in node.children if child.type == "variable_name")
    return frozenset([*names, *(name for name, _, node in script.assignments if node.parent in declared)])


def exports_all(script: Script) -> bool:
    """Return whether a script passes on all variables that it sets: ``set -a``."""
    return script.allexport


def is_exported(script: Script, name: str) -> bool:
    """Return whether a script itself passes a variable on to its programs."""
    return exports_all(script) or name in exported_names(script)


def is_for_all(script: Script, name: str) -> bool:
    """Return whether a script exports a variable, for all programs behind."""
    return (exports_all(script) and name in script.values) or name in _for_all(script)


def is_own_export(script: Script, name: str) -> bool:
    """Return whether a script names a variable that programs get: ``set -a`` alone names none."""
    return is_for_all(script, name) or name in exported_names(script)


# Variables by which OpenMP binds the threads of a program to the cores that it has.
_OF_THREADS = ("OMP_PLACES", "OMP_PROC_BIND", "KMP_AFFINITY")


def binds_threads(script: Script, more: Mapping[str, str | None] | None = None) -> str:
    """Return the variable by which programs of a script bind their threads to cores; empty without one.

    ``more`` are variables that they have beside those of the script.
    """
    more = more or {}
    values = {name: script.constants.value(value) for name, value, _ in script.assignments} | {**more}
    for name in _OF_THREADS if (values.get("OMP_PROC_BIND") or "").lower() != "false" else ():
        unbound = re.search(r"^$|\b(none|disabled)\b", values.get(name) or "x")
        if name in values and not unbound and (name in more or is_exported(script, name)):
            return name
    return ""


# Programs of Ray and Dask, and code for Python, that start workers. Without OMP_NUM_THREADS these have their
# share of the threads: Ray, a nanny of Dask, and joblib set it.
_WORKERS = re.compile(
    r"(?m)^[^#\n]*\b(ray\s+start\b|start[-_](ray[-_])?head\.sh\b"  # the name in examples of Ray
    r"|dask([- ]worker|-mpi|-scheduler)\b(?!(\\\n|[^\n])*--no-nanny))"
)
_WORKERS_OF_PYTHON = re.compile(
    r"(?m)^[^#\n]*\b((ray\.init|LocalCluster|LocalCUDACluster)\(|Parallel\(n_jobs"
    r"|Client\(\s*(\)|(n_workers|processes|threads_per_worker|memory_limit) ?=))"
)
_MODULE_OF_WORKERS = re.compile(
    r"(?m)^[^#\n]*\b(module\s+(load|add)|ml|(pip3?|conda|mamba)\s+install|(conda|source)\s+activate)\s"
    r"[^#\n]*(?<=[\s\"'])(?:ray|dask)(?![^\s/;\[\"'=<>~])"
)


# What submits jobs with the environment of the job, in a program for Python or a script: libraries with
# classes for Slurm, a launcher of Hydra, and commands.
_SUBMITS = re.compile(
    r"(?m)^[^#\n]*(?<![\w.-])(sbatch(?![\w.-])|qsub\s[^\n]*-V\b|submitit(\.\w+\(|_slurm)"
    r"|((?i:slurm)\w*|Auto)(Cluster|Executor|Provider)\()"
)


def starts_workers(script: Script, node: Node) -> bool:
    """Return whether a part of a script starts workers that choose their threads without OMP_NUM_THREADS, or
    a program for Python does: one beside the script, or one with the module or package of Ray or Dask."""
    has_module = "python" in node.text and _MODULE_OF_WORKERS.search(script.tree.text)
    own = _WORKERS.search(node.text) or has_module
    return bool(own) or _starts_with(script, node, _WORKERS, _WORKERS_OF_PYTHON)


def submits_jobs(script: Script, node: Node) -> bool:
    """Return whether a program or a script beside this one, in a part of it, submits jobs that get its
    environment."""
    return "submitit_slurm" in node.text or _starts_with(script, node, _SUBMITS, _SUBMITS)


def _starts_with(script: Script, node: Node, of_shells: re.Pattern[str], of_python: re.Pattern[str]) -> bool:
    """Return whether a part of a script starts a file beside it with a text."""
    beside = (one.text for one in programs(script) if any(call.command.node in node for call in one.calls))
    return any(map(of_python.search, beside)) or any(start in node for start in _starts(script, of_shells))


@lru_cache(8)
def _starts(script: Script, pattern: re.Pattern[str]) -> tuple[Node, ...]:
    """Return the commands that start scripts beside the script which have a text."""
    found = [one.starter for _, one in started(script) if pattern.search(one.tree.text)]
    return tuple(one.call.command.node for one in found if one is not None)


def read_names(root: Node) -> set[str]:
    """Return the names that are read."""
    return {node.text for node, _ in names_read(root)}


def names_read(root: Node, offset: int = 0) -> Iterator[tuple[Node, int]]:
    """Yield each name that is read, also in the text of ``bash -c '...'``, and the offset of that text."""
    for node in root.all("variable_name", "raw_string", "string_content", "$"):
        if node.type == "$":
            # tree-sitter ends a word at a second expansion in it: $A.$B
            if node.parent is not None and node.parent.type == "concatenation":
                yield from ((one, offset) for one in _named_at(node, node.end))
        elif node.type in ("raw_string", "string_content"):
            yield from ((one, offset + at) for one, at in _of_other_shells(node))
        elif node.parent is None or (
            (node.field, node.parent.type) != ("name", "variable_assignment")
            and node.parent.type != "unset_command"
        ):
            yield node, offset
    yield from ((node, offset) for node in bare_names(root))


def _of_other_shells(node: Node) -> Iterator[tuple[Node, int]]:
    """Yield each name in a quoted text that another shell expands, and the offset of its source."""
    if node.type == "string_content":
        if not is_of_other_job(node):
            yield from ((one, 0) for one in _escaped(node))
        return
    command = node.around("command")
    if command is not None and any(re.fullmatch(r"-[a-z]*c", child.text) for child in command.children):
        yield from names_read(parse(node.text[1:-1].encode(), node.line), node.start + 1)


def directive_of_text(root: Node) -> tuple[int, str] | None:
    """Return the line and the text of the first directive of a scheduler in a text for another script."""
    if not _IN_QUOTES.search(root.source):
        return None
    for text in root.all("raw_string", "string_content"):
        if (found := _DIRECTIVE.search(text.text)) and _is_for_script(text):
            return text.line + text.text.count("\n", 0, found.start(1)), found[1].strip("' ")
    return None


def is_written(node: Node) -> bool:
    """Return whether echo or printf writes a node, its command or a text of it, to a file."""
    command = node if node.type == "command" else node.around("command")
    around = (above for above in node.above() if above.type == "redirected_statement")
    files = (child.text for above in around for child in above.children if child.type == "file_redirect")
    prints = command is not None and command.name in ("echo", "printf")
    return prints and any("&" not in file for file in files)


def _is_for_script(text: Node) -> bool:
    """Return whether a text with a directive becomes a script: it is written to a file, is the input of a
    command, or stays in a variable. A text that a command prints or searches for does not."""
    for above in text.above():
        if above.type in ("variable_assignment", "herestring_redirect"):
            return True
        if above.type == "command":
            named = os.path.basename(above.name)
            goes_on = is_written(text) or above.under("pipeline", "command_substitution")
            return goes_on if named in PRINT else named not in {*TOOLS, ":"}
    return False


def is_of_other_job(text: Node) -> bool:
    """Return whether a text has directives of another job, or is written to the file of its script."""
    whole = text.parent if text.type == "string_content" and text.parent is not None else text
    if _DIRECTIVE.search(whole.text[1:]) and _is_for_script(text):
        return True
    return is_written(text) and writes_script([text, *text.above()][-1])


@lru_cache(4)
def writes_script(root: Node) -> bool:
    """Return whether a script writes the directives of another one."""
    bodies = root.all("heredoc_body")
    return directive_of_text(root) is not None or any(_OF_HEREDOC.search(body.text) for body in bodies)


def _escaped(node: Node) -> Iterator[Node]:
    """Yield the names after ``\\$`` in a string, which the shell that gets the string expands."""
    at = node.text.find("\\$")
    while at >= 0:
        start = node.start + len(node.text[: at + 2].encode())
        yield from _named_at(node, start + node.text[at + 2 :].startswith("{"))
        at = node.text.find("\\$", at + 2)


def _named_at(node: Node, start: int) -> Iterator[Node]:
    """Yield the name at an offset of the source, as a node without a parent."""
    if match := re.compile(rb"\w+").match(node.source, start):
        line = node.line + node.source.count(b"\n", node.start, start)
        yield Node("variable_name", None, start, match.end(), line, node.source, None)


def inner_reads(script: Script) -> Iterator[tuple[Node, Node]]:
    """Yield each name in quoted text that another shell expands, and the text."""
    for node in script.tree.all("raw_string", "string_content"):
        yield from ((one, node) for one, _ in _of_other_shells(node))


def inner_names(script: Script) -> dict[str, int]:
    """Return the variables in quoted text that another shell expands, with the line of their first use."""
    found: dict[str, int] = {}
    for one, _ in inner_reads(script):
        found.setdefault(one.text, one.line)
    return found
