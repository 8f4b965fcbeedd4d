"""Scripts and programs of the user that a script sources or starts: they stay as they are, and may read its
scheduler or submit jobs to it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from jobgen.convert import variable_names
from jobgen.convert.result import Remark
from jobgen.convert.submission import is_printed
from jobgen.convert.to_scheduler import variables
from jobgen.convert.workflow_engines import commands_of_shells, workflows
from jobgen.launch.command_line import is_python
from jobgen.launch.wrappers import command_start, inputs_start
from jobgen.schedulers.request import Request
from jobgen.script.beside import name_and_text
from jobgen.script.command_kinds import PRINT, STATE, TOOLS
from jobgen.script.dialects.base import Dialect
from jobgen.script.mpi_of_script import mpi_of
from jobgen.script.script import Script
from jobgen.script.syntax import Node, literal, parse
from jobgen.script.written_files import written

_SHELLS = ("bash", "sh", "ksh", "zsh", "dash")
_SHELL_FILE = re.compile(
    r".*\.(sh|bash|ksh|zsh|t?csh|cmd|job|slurm|sbatch|pbs)$|.*/(jobs|scripts|ush)/[^/.]+$"
)
_DEEPEST = 3  # scripts that start each other
# Files of environments, which read nothing of a scheduler.
_OF_SYSTEM = re.compile(
    r"(?i)activate|(\b|_)profile(\.d/|s?$|\.\w+$)|bashrc|bash_login|conda|mamba|module|lmod|spack|venv|vars\b|GMXRC|setup-env\.sh"
    r"|^/ext3/|cmsset_default|FOAM|SetUpFreeSurfer|(?<!dirname )\$\((?!dirname|pwd)|`(?!dirname|pwd)|<\("
    r"|^/etc/|/\.config/"
    r"|^\$?\{?\w*(HOME|ROOT|PREFIX|PATH)\}?/(bin|etc|share)/|^/(?!home)\w+/(bin|etc|gcc)/"
    r"|^/(?!home)(\w+/)?(opt|usr|cvmfs)/|^/(.*/)?(sw|s?soft(ware)?|apps?|[\w.]*install)/"
)
_OF_JOBS = re.compile(r"(?i)(job|batch|slurm|pbs|queue)[^/]*$")  # in the name of a file of a site
_NAMED = 3  # files in a remark
# What starts programs on the other nodes of a job, or prints their names.
_ON_NODES = re.compile(
    r"\b(\w*mpi(run|exec)\w*|[ajps]run|ssh|rsh|pbsdsh|pdsh|clush|parallel|charmrun|torchrun|deepspeed|horovodrun"
    r"|accelerate|ray|dask|hostnames)\b"
)

_QUERY = re.compile(r"\b(which|type|whereis|hash|command -[vV])\s[^\n;|&)`]*")  # for the path of a command


def remarks(script: Script, source: Dialect, target: Dialect, text: str) -> Iterator[Remark]:
    """Yield remarks on what such files read of the source; ``text`` is the new script.

    Those that are not beside the script have one remark together.
    """
    if source.scheduler.family == target.scheduler.family:
        return
    set_here = {one.children[0].text for one in parse(text.encode()).all("variable_assignment")}
    unread: dict[str, int] = {}
    for word in _files(script):
        name, code = name_and_text(script, word)
        if code is None:
            path = script.constants.text(word).strip("\"'")
            if _OF_JOBS.search(path) or not _OF_SYSTEM.search(path):
                unread.setdefault(os.path.basename(name), word.line)
            continue
        inner = Script(code, script.scheduler, script.folder, name=name)
        for what, why, printed in _inside(script, inner, source, target, set_here, 1):
            yield Remark(word.line, what, why, lost=not printed)
    meanings = ["job_id", "submit_dir", "node_file" if source.variable("node_file") else "node_list"]
    meanings += ["array_index"] * bool(script.request.array)
    variables_read = [source.variable(one) for one in meanings]
    read = ", ".join(name for name in variables_read if name and name not in set_here)
    unset = f"of {read} and so on is not set by {target.title}"
    if unread:
        verb, pronoun = ("are", "they read") if len(unread) > 1 else ("is", "it reads")
        names, more = list(unread)[:_NAMED], len(unread) - _NAMED
        what = ", ".join(names) + f" and {more} more" * (more > 0)
        yield Remark(unread[names[0]], what, f"{verb} not read: what {pronoun} {unset}", lost=False)
    program = alone_on_nodes(script, source) if _may_be_several(script.request) else None
    if program and program[1] not in unread:
        what = f"{script.request.nodes} nodes" if script.request.nodes else f"{script.request.ranks} tasks"
        why = f"no launcher starts it on the {what}"
        yield Remark(program[0], program[1], f"{why}: what it reads {unset}", lost=False)
    threads = "export OMP_NUM_THREADS=" in text and not variable_names.is_exported(script, "OMP_NUM_THREADS")
    passed = f"; {target.command} gives its jobs OMP_NUM_THREADS of this one" * threads
    for one in workflows(script):
        why = "submits jobs as its configuration says, which is not read: what names "
        yield Remark(one.line, one.engine, f"{why}{source.title} stays{passed}", lost=False)


def _may_be_several(request: Request) -> bool:
    """Return whether a job may have several nodes: they are requested, or tasks without nodes."""
    return request.several or (request.nodes is None and (request.ranks or 1) > 1)


def alone_on_nodes(script: Script, source: Dialect) -> tuple[int, str] | None:
    """Return the line and the name of the last program of a script that starts nothing on its other nodes."""
    hosts = {name for name, one in source.job_variables.items() if one in ("node_file", "node_list")}
    read = (node for name, node in script.expansions if name in hosts)
    if script.launches or not all(is_printed(node, PRINT | {"cat"}) for node in read):
        return None
    if _ON_NODES.search(_QUERY.sub("", re.sub(r"(?m)(^|\s)#.*$", "", script.tree.text))):
        return None
    found = None
    for command in script.commands:
        texts = [script.constants.text(word).strip("\"'") for word in command.words]
        texts = texts[command_start(texts) :]
        known = STATE | TOOLS | source.owners.keys() | script.functions.keys()
        if texts and texts[0] not in known and re.search(r"\w", texts[0]):
            file = next((text for text in texts[1:] if re.search(r"\.(py|jl|R|m|pl)$", text)), texts[0])
            found = command.line, os.path.basename(file)
    return found


def _files(script: Script) -> Iterator[Node]:
    """Yield the words that name a shell script of the user, each file once."""
    seen = {script.name}
    made = {os.path.basename(name) for _, _, name in written(script)}
    every = [*script.commands, *commands_of_shells(script)]
    found = [word for command in every if (word := _file(script, command.words)) is not None]
    found += [word for one in script.programs if (word := _file(script, (one.file, *one.arguments)))]
    for word in sorted(found, key=lambda one: one.start):
        text = script.constants.text(word).strip("\"'")
        name = os.path.basename(text)
        if name not in {*seen, *made}:
            seen.add(name)
            yield word


def _file(script: Script, words: tuple[Node, ...]) -> Node | None:
    """Return the word of the shell script that a command sources or starts; None without one."""
    words = words[command_start([literal(one) for one in words]) :]
    if words and (at := inputs_start(texts := [literal(one) for one in words], 0)):
        words = words[at + command_start(texts[at:]) :]
    name = os.path.basename(script.constants.text(words[0])) if words else ""
    if name in ("source", "."):
        return next(iter(words[1:]), None)
    if name in _SHELLS:
        rest = [one for one in words[1:] if not one.text.startswith(("-", "+"))]
        plain = all(
            re.fullmatch(r"[-+][a-bd-rt-z]+|--\w+", one.text) for one in words[1:2] if one not in rest
        )
        return rest[0] if rest and plain and rest[0] in words[1:4] else None
    text = script.constants.text(words[0]).strip("\"'") if words else ""
    if _SHELL_FILE.match(text) or ("/" in text and name_and_text(script, words[0], shell=True)[1]):
        return words[0]
    if name not in TOOLS | STATE | script.dialect.owners.keys() and not is_python(
        name
    ):  # a command that starts it
        text = script.constants.text(words[1]).strip("\"'") if words[1:] else ""
        return words[1] if "/" in text and _SHELL_FILE.match(text) else None
    return None


def _inside(
    script: Script, inner: Script, source: Dialect, target: Dialect, set_here: set[str], depth: int
) -> Iterator[tuple[str, str, bool]]:
    """Yield the places in a file, and in those that it starts, what it has of the source there, and whether
    it only prints it."""
    new = counterparts(script, source, target)
    own = variable_names.kept(inner) | set_here
    for node, _ in variable_names.names_read(inner.tree, 0):
        name = node.text
        known = name in variable_names.meanings(source) or name in source.environment
        if known and name.startswith(source.variable_prefix) and name not in own:
            own.add(name)
            use = f": use {new[name]} there" if name in new else ""
            yield (
                f"{inner.name}:{node.line}",
                f"reads {name}, which is not set by {target.title}{use}",
                is_printed(node),
            )
    for command in inner.named(*filter(None, (*source.owners, source.scheduler.node_step))):
        why = f"{command.name} is a command of {source.owners.get(command.name, source.title)}"
        yield f"{inner.name}:{command.line}", why, False
    for word in _files(inner) if depth < _DEEPEST else ():
        name, code = name_and_text(inner, word)
        if code is not None:
            more = Script(code, script.scheduler, script.folder, name=name)
            yield from _inside(script, more, source, target, own, depth + 1)


def counterparts(script: Script, source: Dialect, target: Dialect) -> Mapping[str, str]:
    """Return what has the value of each variable of the source under the target."""
    request, meanings = script.request, variable_names.meanings(source)
    counts = {name: target.counts[one] for name, one in meanings.items() if one in target.counts}
    defined = variables.definitions(request, source, target)
    new = variables.names(request, source, target, mpi_of(script, target=target.name))
    return {**target.foreign_variables, **counts, **defined, **new}
