"""The arguments and the indices of an array that a script expects from its submission."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from jobgen.convert import variable_names
from jobgen.convert.request_reader import has_directives
from jobgen.convert.result import Remark, hint
from jobgen.schedulers.request import Request
from jobgen.script import script_arguments
from jobgen.script.beside import name_and_text
from jobgen.script.command_kinds import PRINT, is_printed
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.script import Script
from jobgen.script.syntax import Node

_OF_SLOTS = ("node_file", "slots", "slots_per_node", "chunks")
_OF_NODES = ("nodes", "node_list", "ranks")
_OF_LISTS = {"-l", "--label", "-u", "--unbuffered"}  # options of a step that keep its ranks


def remarks(script: Script, target: Dialect, content: ScriptRequest) -> Iterator[Remark]:
    """Yield remarks on arguments and on an array that no directive names; note the latter in ``content``.

    A script without directives that writes those of another one is not submitted.
    """
    if not has_directives(script) and variable_names.writes_script(script.tree):
        return
    passes = script.dialect.scheduler.behaviour.passes_arguments and target.argument_rule
    why = f"{target.command} of {target.title} takes no arguments of the script: {target.argument_rule}"
    if passes and (found := argument(script)):
        yield Remark(*found, why, lost=not target.scheduler.behaviour.passes_arguments)
    elif passes:
        yield from _of_sourced(script, why)
    if read := index_read(script):
        roles = script.dialect.job_variables
        shown = all(is_printed(node) for name, node in script.expansions if roles.get(name) == "array_index")
        content.index_later, content.index_needed = True, script.is_array_by_command and not shown
        how = f"{target.command} {target.scheduler.request_forms.get('array', '').format('FIRST-LAST')}"
        why = f"no directive has the range of the array: {if_array(script, read[0])}submit with {how}"
        yield hint(*read, why)


def _of_sourced(script: Script, why: str) -> Iterator[Remark]:
    """Yield a remark on the first file, sourced without arguments, that reads those of the script."""
    for command in script.named("source", "."):
        if len(command.arguments) != 1 or command.node.under("function_definition"):
            continue
        name, code = name_and_text(script, script.constants.text(command.arguments[0]))
        text = script_arguments.first_read(code.decode(errors="replace")) if code is not None else ""
        if text or (code is None and os.path.basename(name) == "parse_options.sh"):
            yield hint(command.line, f"{name}: {text}" if text else name, why)
            return


def nodes_of(script: Script, target: Dialect, head: Sequence[str]) -> Iterator[Remark]:
    """Yield a remark if the script reads a number of nodes that it does not request; note it in the request.

    ``head`` are the new directives.
    """
    if (read := nodes_read(script)) is None:
        return
    given = [one.removeprefix(target.scheduler.prefix).strip() for one in head]
    named = [one for one in given if re.match("-l (select|nodes)=", one)]
    lines = named or target.scheduler.resources(Request(nodes=1), "", "")[0]
    how = f"{target.command} {' '.join(lines).replace('=1', '=N', 1)}"
    why = f"no directive requests nodes, and {script.dialect.title} gives one: for N, submit with {how}"
    yield hint(*read, why)
    script.request.submitted, script.request.nodes, script.request.ranks = True, None, None


def slots_of(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark if the script reads the slots of its nodes, and only the submission requests them."""
    if script.request.nodes or script.request.ranks or target.variable("node_file"):
        return
    slots = {name for name, one in script.dialect.job_variables.items() if one in _OF_SLOTS}
    for node, _ in variable_names.names_read(script.tree):
        if node.text in slots - variable_names.kept(script) and not is_printed(node, PRINT | {"cat"}):
            forms = target.scheduler.request_forms
            how = f"{target.command} {forms['nodes'].format('N')} {forms['ranks_per_node'].format('M')}"
            why = f"no directive requests nodes: for N nodes of M slots, submit with {how}"
            yield hint(node.line, f"${node.text}", why)
            return


def nodes_read(script: Script) -> tuple[int, str] | None:
    """Return the line and the text of the first use of the nodes of the job that is not only printed."""
    own, step = variable_names.kept(script), script.dialect.node_step
    for node, _ in variable_names.names_read(script.tree):
        name = node.text
        if script.dialect.job_variables.get(name) in _OF_NODES and name not in own and not is_printed(node):
            return node.line, f"${name}"
    for launch in script.launched(step) if step else ():
        lists = launch.program and os.path.basename(launch.program[0].text) == "hostname"
        if lists and launch.options.keys() <= _OF_LISTS and not is_printed(launch.program[0], {launch.kind}):
            return launch.line, f"{step} hostname"
    return None


def discarded(tree: Node) -> Iterator[Node]:
    """Yield the texts for ``:`` that bash takes as they stand: they are comments."""
    for command in tree.all("command"):
        if command.name == ":":
            yield from (one for one in command.children if one.type == "raw_string")
            if above := command.child_of("redirected_statement"):
                yield from (one for one in above.all("heredoc_body") if _is_quoted(one))


def argument(script: Script) -> tuple[int, str] | None:
    """Return the line and the text of the first argument of the script that it reads; None without one."""
    found = script_arguments.reads(script.tree, script.commands)
    if not script.tree.source and re.match(r"#!.*(sh|nix-shell)\b", script.line(1)):  # not bash
        for number, line in enumerate(script.lines, 1):
            read = re.search(r"\$(\{?[1-9@*]|argv\b)\}?", line)
            if read and not re.match(r"\s*#|.*\bawk\b", line):
                found.append((number, read[0]))
    return min(found, default=None)


def if_array(script: Script, line: int) -> str:
    """Return the condition of a remark on an index: the name of a log may have one without an array."""
    return "if the submission makes one, " if line < (script.directives.first_command or 0) else ""


def _is_quoted(body: Node) -> bool:
    """Return whether bash takes a here-document as it stands: its delimiter has quotes."""
    above = body.parent
    return above is not None and any(re.search(r"[\\\"']", one.text) for one in above.all("heredoc_start"))


def index_read(script: Script) -> tuple[int, str] | None:
    """Return the line and text of the first use of the index, if no directive makes an array."""
    source = script.dialect
    if script.request.array is not None:
        return None
    names = [name for name, meaning in source.job_variables.items() if meaning == "array_index"]
    own = variable_names.kept(script)
    start = script.directives.first_command or len(script.lines) + 1
    comments = {one.line: one.text for one in script.tree.all("comment")}
    of_jobs = rf"(?m)^\s*{source.scheduler.prefix} "
    inner = [one for one in script.tree.all("heredoc_body") if re.search(of_jobs, one.text)]
    texts = (one for one in script.tree.all("string", "raw_string") if re.search(of_jobs, one.text))
    inner += [one for one in texts if variable_names.is_of_other_job(one)]
    lines = {at: one for one in inner for at in range(one.line, one.line + one.text.count("\n") + 1)}
    ends = ((one.line, one.line + one.text.rstrip("\n").count("\n")) for one in discarded(script.tree))
    unused = {at for first, last in ends for at in range(first, last + 1)}
    for number, line in enumerate(script.lines[start - 1 :], start):
        for name in names if number not in unused else ():
            code = line.removesuffix(comments.get(number, ""))
            if number in lines:  # of the job in the text, which this script may expand
                plain = lines[number].type == "raw_string" or _is_quoted(lines[number])
                code = "" if plain else re.sub(r"\\\$\{?\w+", "", code)
            if name not in own and not code.lstrip().startswith("#") and re.search(rf"\b{name}\b", code):
                return number, f"${name}"
    index = r"%\d*a" if source.percent_codes else rf"\$\{{?({'|'.join(names)})\b"
    logs = (source.origin(script.heeded, field) for field in ("output", "error"))
    found = (one for one in logs if one is not None and re.search(index, one.value))
    return next(((one.option.line, one.text) for one in found), None)
