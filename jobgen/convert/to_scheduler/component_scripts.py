"""The components of a job, each as a script of its own: those of a heterogeneous job of Slurm, and the chunks
of a request of PBS that differ. Every byte of such a script has the place that it has in the whole script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from jobgen.convert.launch_nodes import ALL
from jobgen.convert.result import Edit, apply
from jobgen.convert.to_scheduler import launch_calls
from jobgen.convert.to_scheduler.srun_line import LONG, NAME, SHORT
from jobgen.launch.command_line import option_name
from jobgen.schedulers.request import DirectiveOption, Request
from jobgen.script.request import of_components
from jobgen.script.script import Script
from jobgen.script.syntax import Node, literal

_GROUP = ("--het-group", "--pack-group")
_DEVICES = re.compile(r"--g(res|pus)[\w-]*=|-G\d")
_SIZES = ("--ntasks", "--nodes", "--ntasks-per-node", "--cpus-per-task")


def scripts_of(script: Script) -> list[Script]:
    """Return a script for each component, with its request and part of each launch; or the only one."""
    if script.components:
        return [_of_component(script, at) for at in range(len(script.components) + 1)]
    chunks = option.value.split("+") if (option := chunks_option(script)) is not None else []
    parts = [_of_chunk(script, option, one) for one in chunks if option is not None]
    if len(parts) < 2 or not all(len(one.request.chunks) == 1 for one in parts):
        return [script]
    ranks, nodes = sum(ranks_of(one.request) for one in parts), sum(one.request.nodes or 1 for one in parts)
    return [replace(one, source=apply(one.source, _with_numbers(one, ranks, nodes))) for one in parts]


def joined(script: Script, parts: Sequence[Script]) -> Script:
    """Return the script with the directives of the first component and the request of all nodes, and without
    the sizes of the launches of a heterogeneous job."""
    if len(parts) == 1:
        return script
    if script.components:
        blanks = [_blank(parts[0], one) for call in calls(parts[0]) for one in SrunPart(call.words).sizes]
        whole = replace(script, source=apply(parts[0].source, blanks))
    else:
        option = chunks_option(script)
        assert option is not None
        whole = _of_chunk(script, option, option.value.split("+")[0])
    requests = [one.request for one in parts]
    whole.request = of_components(requests)
    whole.request.chunks, whole.request.ranks = requests[0].chunks, sum(map(ranks_of, requests))
    return whole


def ranks_of(request: Request) -> int:
    """Return the ranks of a component, by default one a node."""
    nodes = request.nodes or 1
    return nodes * request.ranks_per_node if request.ranks_per_node else request.ranks or nodes


def chunks_option(script: Script) -> DirectiveOption | None:
    """Return the option with chunks that differ."""
    found = (script.heeded.get(key) for key in ("-l select", "-l nodes"))
    return next((one for one in found if one is not None and "+" in one.value), None)


def calls(script: Script) -> Iterator[launch_calls.Call]:
    """Yield the calls of srun."""
    return launch_calls.calls(script, (NAME,))


def of_ranks(script: Script) -> list[launch_calls.Call]:
    """Return the last call of srun with a program, which starts the ranks; the others stay as they are."""
    return [one for one in calls(script) if parts_of(one)[0].program][-1:]


def _of_chunk(script: Script, option: DirectiveOption, chunk: str) -> Script:
    start, end = script.start_of(option.line), script.start_of(option.line + 1)
    line = script.source[start:end].decode("utf-8", "replace")
    text = line.rstrip("\r\n").replace(option.value, chunk)
    ending = line[len(line.rstrip("\r\n")) :]
    edit = Edit(start, end, text.ljust(len(line) - len(ending)) + ending)
    return replace(script, source=apply(script.source, [edit]))


def _with_numbers(part: Script, ranks: int, nodes: int) -> Iterator[Edit]:
    """Yield the edits that leave of the numbers of all ranks and nodes in a launch those of a component."""
    each = {name: (ranks, ranks_of(part.request)) for name in ALL}
    for launch in part.launches:
        own = {**each, **dict.fromkeys(launch.row.line.nodes, (nodes, part.request.nodes or 1))}
        for name, (of_job, of_part) in own.items():
            word, given = launch.nodes.get(name), launch.number(name)
            if word is None or given != of_job or word.source is not part.tree.source:
                continue
            if word.text.endswith(text := str(given)):
                yield Edit(word.end - len(text), word.end, str(of_part).ljust(len(text)))


def _of_component(script: Script, at: int) -> Script:
    begin, end = ([0, *script.components][at], [*script.components, len(script.lines) + 1][at])
    lines, others = script.source.split(b"\n"), list[Edit]()
    for one in (one.line for one in script.options if not begin < one.line < end):
        first, size = script.start_of(one), len(lines[one - 1])
        others.append(Edit(first, first + size, "#".ljust(size)))
    parts = [edit for call in of_ranks(script) for edit in _part(script, call, at)]
    return replace(script, source=apply(script.source, [*dict.fromkeys(others), *parts]))


class SrunPart:
    """A part of a command of srun: its options and sizes, its program, and its components."""

    def __init__(self, words: Sequence[Node]) -> None:
        self.words, self.groups, self.sizes, self.options, at = words, "", list[Node](), list[Node](), 0
        while at < len(words) and (text := literal(words[at]) or words[at].text).startswith("-"):
            name, short = option_name(text), not text.startswith("--")
            long = SHORT.get(text[1:2], "") if short else name
            alone = len(text) == 2 if short else "=" not in text
            follows = alone and LONG.get(long.removeprefix("--")) == "="
            if name in _GROUP:
                self.groups = text.partition("=")[2] or (words[at + 1].text if words[at + 1 :] else "")
                self.options += words[at : at + 1 + follows]
            elif long in _SIZES:
                self.sizes += words[at : at + 1 + follows]
            at += 1 + follows
        self.program = [word.text for word in words[at:]]

    def is_for(self, component: int, position: int) -> bool:
        """Return whether it is for a component; without an option the first part is for the first one."""
        if not self.groups:
            return component == position
        ranges = [one.partition("-") for one in self.groups.split(",")]
        known = [(int(first), int(last or first)) for first, _, last in ranges if first.isdecimal()]
        return any(first <= component <= last for first, last in known)


def parts_of(call: launch_calls.Call) -> list[SrunPart]:
    """Return the parts of a command of srun, which colons divide."""
    words = list(call.words)
    ends = [-1, *(at for at, word in enumerate(words) if word.text == ":"), len(words)]
    return [SrunPart(words[before + 1 : end]) for before, end in pairwise(ends)]


def _part(script: Script, call: launch_calls.Call, component: int) -> Iterator[Edit]:
    """Yield the edits that leave of a command the part for a component, without the option for it."""
    parts = parts_of(call)
    own = next((one for at, one in enumerate(parts) if one.is_for(component, at)), None)
    if own is None:  # then the component has no devices for it
        own = parts[0]
        yield from (_blank(script, one) for one in own.words if _DEVICES.match(one.text))
    others = [word for one in parts if one is not own for word in one.words]
    colons = [word for word in call.words if word.text == ":"]
    for word in (*others, *colons, *own.options):
        if word.source is script.tree.source:
            yield _blank(script, word)


def _blank(script: Script, word: Node) -> Edit:
    """Return the edit that leaves blanks of a word."""
    return Edit(word.start, word.end, re.sub(rb"[^\n]", b" ", script.source[word.start : word.end]).decode())
