"""The components of a heterogeneous job as tables of a job file: each is read as a script of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from jobgen.convert.result import Remark, shortened
from jobgen.convert.to_job_file import option_sizes as sizes
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_scheduler.component_scripts import of_ranks, parts_of
from jobgen.jobfile.schema import COMPONENT_KEYS
from jobgen.script.dialects.base import Dialect
from jobgen.script.script import Script
from jobgen.values import parsers

_INHERITED = {"queue", "mem"}  # from the component before


def join(files: Sequence[JobFile], script: Script) -> JobFile:
    """Return the job file of all components: that of the first one, and tables of what differs."""
    file = files[0]
    for number, one in enumerate(files):
        _set_own_numbers(one, script, number)
    for before, one in pairwise(files):
        missing = before.values.keys() & _INHERITED - one.values.keys()
        one.values |= {key: before.values[key] for key in missing}
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
        begin = [0, *script.components][number if script.components else 0]
        end = [*script.components, len(script.lines) + 1][number if script.components else 0]
        file.remarks += [remark for remark in one.remarks if begin < remark.line < end]
    file.remarks += _of_program(script) if script.components else ()
    return file


def _of_program(script: Script) -> Iterator[Remark]:
    """Yield remarks on a program that is not that of all components."""
    if not (steps := of_ranks(script)):
        return
    parts, line = parts_of(steps[-1]), steps[-1].command.line
    for one in parts[1:]:
        if one.program != parts[0].program:
            text = shortened(" ".join(one.program))
            yield Remark(line, text, "jobgen starts one program with all ranks: this one is missing")
    for number in range(len(script.requests)):
        if not any(one.is_for(number, at) for at, one in enumerate(parts)):
            why = "srun starts no rank in it: jobgen starts the program there, too"
            yield Remark(line, f"component {number}", why)


def _set_own_numbers(file: JobFile, script: Script, number: int) -> None:
    """Set the ranks and the cores of a component in a script that jobgen has made."""
    parts = found[1].split() if (found := re.search(r"\bjob_components='([^']*)'", script.tree.text)) else []
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
    kinds = (sizes.CORES, sizes.DEVICES, sizes.PROCESSES)
    cores, devices, ranks = (sizes.of_chunk(chunk, names) for names in kinds)
    ranks = ranks or devices
    features = chunk.keys() - {"", "mem"}.union(*kinds)
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
