"""The components of a heterogeneous job as tables of a job file: each is read as a script of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from jobgen.convert.result import Edit, Remark, apply
from jobgen.convert.to_job_file import option_sizes as sizes
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_scheduler.srun_line import LONG, NAME, SHORT
from jobgen.jobfile.schema import COMPONENT_KEYS
from jobgen.launch.command_line import option_name
from jobgen.script.commands import Command
from jobgen.script.dialects.base import Dialect
from jobgen.script.script import Script
from jobgen.script.syntax import Node, literal
from jobgen.values import parsers

_GROUP = ("--het-group", "--pack-group")
_INHERITED = ("queue", "mem")  # from the component before


def scripts_of(script: Script) -> list[Script]:
    """Return a script for each component, with its directives and its part of each command of srun."""
    return [_of_component(script, number) for number in range(len(script.requests))]


def _of_component(script: Script, number: int) -> Script:
    begin, end = ([0, *script.components][number], [*script.components, len(script.lines) + 1][number])
    lines = script.source.split(b"\n")
    first = script.start_of
    others = [
        Edit(first(one.line), first(one.line) + len(lines[one.line - 1]), "#")
        for one in script.options
        if not begin < one.line < end
    ]
    parts = [edit for command in _of_ranks(script) for edit in _part(command, number)]
    return replace(script, source=apply(script.source, [*dict.fromkeys(others), *parts]))


class _SrunPart:
    """A part of a command of srun: its options, its program, and the components that it is for."""

    def __init__(self, words: Sequence[Node]) -> None:
        self.words, self.groups, at = words, "", 0
        while at < len(words) and (text := literal(words[at]) or words[at].text).startswith("-"):
            name = option_name(text)
            long = SHORT.get(text[1:2], "") if not text.startswith("--") else name
            follows = (
                LONG.get(long.removeprefix("--")) == "=" and "=" not in text and len(text) in (2, len(name))
            )
            if name in _GROUP:
                self.groups = text.partition("=")[2] or (words[at + 1].text if words[at + 1 :] else "")
            at += 1 + follows
        self.program = [word.text for word in words[at:]]

    def is_for(self, number: int, position: int) -> bool:
        """Return whether it is for a component; without an option the first part is for the first one."""
        if not self.groups:
            return number == position
        ranges = (one.partition("-") for one in self.groups.split(","))
        return any(
            first.isdecimal() and int(first) <= number <= int(last or first) for first, _, last in ranges
        )


def _parts(command: Command) -> list[_SrunPart]:
    """Return the parts of a command of srun, which colons divide."""
    words = list(command.arguments)
    ends = [at for at, word in enumerate(words) if word.text == ":"]
    return [
        _SrunPart(words[begin:end])
        for begin, end in zip([0, *(at + 1 for at in ends)], [*ends, len(words)], strict=True)
    ]


def _of_ranks(script: Script) -> list[Command]:
    """Return the last command of srun with a program, which starts the ranks; the others stay as they are."""
    return [one for one in script.named(NAME) if _parts(one)[0].program][-1:]


def _part(command: Command, number: int) -> Iterator[Edit]:
    """Yield the edits that leave of a command the part for a component, without the option for it."""
    parts = _parts(command)
    own = next((one for at, one in enumerate(parts) if one.is_for(number, at)), None)
    if own is None:  # then the component has no devices for it
        own = parts[0]
        devices = (word for word in own.words if re.match(r"(--g(res|pus)[\w-]*=|-G\d)", word.text))
        yield from (Edit(word.start, word.end, "") for word in devices)
    for one in parts:
        if one is not own and one.words:
            yield Edit(one.words[0].start, one.words[-1].end, "")
    for colon in (word for word in command.arguments if word.text == ":"):
        yield Edit(colon.start, colon.end, "")
    value = False
    for word in own.words:
        if option_name(word.text) in _GROUP or value:
            yield Edit(word.start, word.end, "")
            value = not value and "=" not in word.text


def join(files: Sequence[JobFile], script: Script) -> JobFile:
    """Return the job file of all components: that of the first one, and tables of what differs."""
    file = files[0]
    for number, one in enumerate(files):
        _set_own_numbers(one, script, number)
    for before, one in pairwise(files):
        for key in _INHERITED:
            if key not in one.values and key in before.values:
                one.values[key] = before.values[key]
    if any("gpus_per_node" in one.values for one in files):
        for one in files:
            one.values.setdefault("gpus_per_node", 0)
    kinds = {str(one.values.get("accelerator", "cuda")) for one in files}
    if len(kinds) > 1:
        for one in files:
            one.remarks = [remark for remark in one.remarks if remark.what != "accelerators"]
        file.values.pop("accelerator", None)
        if others := sorted(kinds - {"cpu", "cuda"}):
            file.values["accelerator"] = others[0]
    if mpi := next((one.values["mpi"] for one in files if "mpi" in one.values), None):
        file.values["mpi"] = mpi  # a component of one rank names none
    tables: list[dict[str, object]] = [{"nodes": one.values.get("nodes", 1)} for one in files]
    for key in COMPONENT_KEYS[1:]:
        values = [one.values.get(key) for one in files]
        if any(value != values[0] for value in values):
            for table, value in zip(tables, values, strict=True):
                table |= {key: value} if value is not None else {}
            file.values.pop(key, None)
    file.values.pop("nodes", None)
    file.components = tables
    for number, one in enumerate(files[1:], 1):
        begin = script.components[number - 1]
        end = [*script.components, len(script.lines) + 1][number]
        file.remarks += [remark for remark in one.remarks if begin < remark.line < end]
    file.remarks += _of_program(script)
    return file


def _of_program(script: Script) -> Iterator[Remark]:
    """Yield remarks on a program that is not that of all components."""
    commands = _of_ranks(script)
    if not commands:
        return
    parts = _parts(commands[-1])
    line = commands[-1].line
    for one in parts[1:]:
        if one.program != parts[0].program:
            text = " ".join(one.program)[:60]
            yield Remark(line, text, "jobgen starts one program with all ranks: this one is missing")
    for number in range(len(script.requests)):
        if not any(one.is_for(number, at) for at, one in enumerate(parts)):
            why = "srun starts no rank in it: jobgen starts the program there, too"
            yield Remark(line, f"component {number}", why)


def _set_own_numbers(file: JobFile, script: Script, number: int) -> None:
    """Set the ranks and the cores of a component in a script that jobgen has made."""
    found = re.search(r"\bjob_components='([^']*)'", script.tree.text)
    parts = found[1].split() if found else []
    if number < len(parts):
        _, ranks, cores = map(int, parts[number].split("x"))
        file.values |= {"ranks_per_node": ranks, "cpus_per_rank": cores // ranks}
        file.values.pop("cpus_per_node", None)
        if cores % ranks:
            file.values["cpus_per_node"] = cores


def of_chunks(file: JobFile, row: Dialect) -> None:
    """Replace chunks of PBS that differ in a script of jobgen with groups of nodes, or with components."""
    for remark, chunks in sizes.chunks_that_differ(file, row):
        tables = [_of_chunk(chunk) for chunk in chunks]
        if not all(tables):
            continue
        file.remarks.remove(remark)
        for key in (*sizes.OF_CHUNKS, "constraint"):
            file.values.pop(key, None)
        if groups := sizes.node_groups(chunks):
            file.values |= groups
        else:
            file.components = tables


def _of_chunk(chunk: Mapping[str, str]) -> dict[str, object]:
    """Return the component for a chunk; empty if it has none."""
    cores, devices, ranks = (
        sizes.of_chunk(chunk, names) for names in (sizes.CORES, sizes.DEVICES, sizes.PROCESSES)
    )
    ranks = ranks or devices
    features = chunk.keys() - {"", "mem", *sizes.CORES, *sizes.DEVICES, *sizes.PROCESSES}
    memory = parsers.mebibytes(chunk.get("mem", ""), "b")
    if not cores or not ranks or cores % ranks or not all(chunk[one] for one in features):
        return {}
    table = {
        "nodes": parsers.number(chunk[""]) or 1,
        "ranks_per_node": ranks,
        "gpus_per_node": devices or 0,
        "cpus_per_rank": cores // ranks,
        "mem": f"{memory}M" if memory else None,
        "constraint": ":".join(f"{one}={chunk[one]}" for one in chunk if one in features) or None,
    }
    return {key: value for key, value in table.items() if value is not None}
