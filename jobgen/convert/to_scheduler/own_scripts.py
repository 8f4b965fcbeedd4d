"""Scripts and programs of the user that a script sources or starts: they stay as they are, and may read its
scheduler or submit jobs to it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping

from jobgen.convert import unread_files, variable_names
from jobgen.convert.result import Remark, hint
from jobgen.convert.to_scheduler import variables
from jobgen.convert.unread_files import files, is_of_system, of_engines, read_of
from jobgen.launch.wrappers import command_start
from jobgen.script.beside import name_and_text
from jobgen.script.command_kinds import PRINT, STATE, TOOLS, is_printed
from jobgen.script.dialects.base import Dialect
from jobgen.script.mpi_of_script import mpi_of
from jobgen.script.script import Script
from jobgen.script.syntax import parse

# Programs of the user, and languages, that may start ranks themselves.
_HAS_RANKS = re.compile(r"\.(py|jl|R|m|pl|c?sh|bash|exe|out)$|^(julia|matlab|Rscript|python[\d.]*)$")
_DEEPEST = 3  # scripts that start each other
# What starts programs on the other nodes of a job, or prints their names.
_ON_NODES = re.compile(
    r"\b(\w*mpi(run|exec)\w*|[ajps]run|ssh|rsh|pbsdsh|pdsh|clush|parallel(?!/)|charmrun|torchrun|deepspeed|horovodrun"
    r"|accelerate|ray|dask|hostnames|show\s+hostname|generate_pbs_nodefile)\b"
)
# For the path of a command, and the setting of an mpirun that the script does not start.
_QUERY = re.compile(r"\b(which|type|whereis|hash|command -[vV])\s[^\n;|&)`]*|\w*BOOTSTRAP\w*=\w+")


def remarks(script: Script, target: Dialect, text: str) -> Iterator[Remark]:
    """Yield remarks on what such files read of the source; ``text`` is the new script.

    Those that are not beside the script have one remark together.
    """
    source, alike = script.dialect, script.dialect.family == target.family
    set_here = {one.children[0].text for one in parse(text.encode()).all("variable_assignment")}
    set_here |= (
        source.environment - (source.job_variables.keys() - target.job_variables.keys()) if alike else set()
    )
    unread = []
    for file in files(script):
        name, code = name_and_text(script, file.path)
        if code is None:
            unread += [] if is_of_system(file) else [file]
            continue
        inner = Script(code, script.scheduler, script.folder, name=name)
        for what, why, printed in _inside(script, inner, target, set_here, 1):
            yield Remark(file.line, what, why, lost=not printed)
    # A file of the first node.
    local = {source.variable("node_file")} if script.request.several and not alike else set()
    yield from unread_files.of_programs(script, target.title, set_here - local | target.owners.keys())
    if alike:
        return
    yield from unread_files.remark(script, unread, target.title, set_here - local)
    yield from alone(script, target, set_here, {os.path.basename(one.path) for one in unread})
    if "export OMP_NUM_THREADS=" in text and not variable_names.is_own_export(script, "OMP_NUM_THREADS"):
        for one in of_engines(script, "snakemake"):  # which sets it for its jobs
            why = f"{target.command} gives its jobs OMP_NUM_THREADS of this one"
            yield hint(one.line, one.path.rpartition(" ")[2], why)


def alone(
    script: Script, target: Dialect, set_here: Collection[str], known: Collection[str]
) -> Iterator[Remark]:
    """Yield a remark on a program without a launcher in a job of several nodes, which variables may name, or
    of several tasks on one node, which may have ranks of its own.

    The ``known`` files have another remark, and the new script sets the variables ``set_here``.
    """
    request = script.request  # of several nodes, or maybe so: of tasks without nodes
    several = request.several or (request.nodes is None and (request.ranks or 1) > 1)
    tasks = max(request.ranks or 1, request.ranks_per_node or 1)
    program = alone_on_nodes(script) if several or tasks > 1 else None
    if program and program[1] not in known and (several or _HAS_RANKS.search(program[1])):
        what = f"{request.nodes} nodes" if several and request.nodes else f"{tasks} tasks"
        why = f"no launcher starts it on the {what}"
        why += f": what it reads of {read_of(script, set_here)} and so on is not set by {target.title}"
        why += ", and an mpirun in it may start another number of ranks" * (tasks > 1)
        yield hint(program[0], program[1], why)


def alone_on_nodes(script: Script) -> tuple[int, str] | None:
    """Return the line and the name of the last program of a script that starts nothing on its other nodes."""
    hosts = {name for name, one in script.dialect.job_variables.items() if one in ("node_file", "node_list")}
    read = (node for name, node in script.expansions if name in hosts)
    if script.launches or not all(is_printed(node, PRINT | {"cat"}) for node in read):
        return None
    if _ON_NODES.search(_QUERY.sub("", re.sub(r"(?m)(^|\s)#.*$", "", script.tree.text))):
        return None
    found = None
    for command in script.commands:
        texts = [script.constants.text(word).strip("\"'") for word in command.words]
        texts = texts[command_start(texts) :]
        known = STATE | TOOLS | script.dialect.owners.keys() | script.functions.keys()
        if texts and texts[0] not in known and re.search(r"\w", texts[0]):
            file = next((text for text in texts[1:] if re.search(r"\.(py|jl|R|m|pl)$", text)), texts[0])
            found = command.line, os.path.basename(file)
    return found


def _inside(
    script: Script, inner: Script, target: Dialect, set_here: set[str], depth: int
) -> Iterator[tuple[str, str, bool]]:
    """Yield the places in a file, and in those that it starts, what it has of the source there, and whether
    it only prints it."""
    source, new = script.dialect, counterparts(script, target)
    own = variable_names.kept(inner) | set_here
    for node, _ in variable_names.names_read(inner.tree):
        name = node.text
        known = name in variable_names.meanings(source) or name in source.environment
        if known and name.startswith(source.variable_prefix) and name not in own:
            own.add(name)
            use = f": use {new[name]} there" if name in new else ""
            why = f"reads {name}, which is not set by {target.title}{use}"
            yield f"{inner.name}:{node.line}", why, is_printed(node)
    for command in inner.named(*filter(None, ({*source.owners} - {*target.owners}) | {source.node_step})):
        why = f"{command.name} is a command of {source.owners.get(command.name, source.title)}"
        yield f"{inner.name}:{command.line}", why, False
    for one in of_engines(inner) if source.family != target.family else ():
        yield f"{inner.name}:{one.line}", f"{one.path} is not read: it may be for {source.title}", True
    for file in files(inner) if depth < _DEEPEST else ():
        name, code = name_and_text(inner, file.path)
        if code is not None:
            more = Script(code, script.scheduler, script.folder, name=name)
            yield from _inside(script, more, target, own, depth + 1)


def counterparts(script: Script, target: Dialect) -> Mapping[str, str]:
    """Return what has the value of each variable of the source under the target."""
    request, meanings = script.request, variable_names.meanings(script.dialect)
    counts = {name: target.counts[one] for name, one in meanings.items() if one in target.counts}
    new = variables.names(request, script.dialect, target, mpi_of(script, target=target.name))
    return {**target.foreign_variables, **counts, **variables.definitions(script, target), **new}
