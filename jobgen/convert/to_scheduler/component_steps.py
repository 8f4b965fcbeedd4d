"""The request and the launches of a job with components for another scheduler: components of Slurm become
chunks of PBS, and chunks components."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from jobgen.convert.result import Edit, Remark, apply
from jobgen.convert.to_scheduler import launch_calls, mpirun_line
from jobgen.convert.to_scheduler.component_scripts import calls, chunks_option, parts_of, ranks_of, scripts_of
from jobgen.convert.to_scheduler.launch_line import LaunchWords, Unreadable
from jobgen.convert.to_scheduler.srun_line import NAME, read
from jobgen.convert.variable_names import meanings, names_read
from jobgen.errors import counted
from jobgen.schedulers.request import Request
from jobgen.script.dialects.base import Dialect
from jobgen.script.script import Script

# What the variables of a heterogeneous job of Slurm are for the first component only.
_OF_NODES = {
    *("nodes", "chunks", "ranks", "slots", "ranks_per_node", "slots_per_node", "cpus_per_rank"),
    *("cpus_per_chunk", "cpus_per_node", "gpus_per_node", "gpus", "gpu_file", "node_list", "mem_per_node"),
    *("mem_per_cpu", "cpus_of_nodes", "ranks_of_nodes"),
}
# Options of a component of Slurm that become parts of a chunk.
_SIZES = re.compile(r"--(nodes|ntasks.*|cpus-per-.*|gpus.*|gres|mem|mem-per-.*)")
# Options of the target that a component has for itself; the others are those of the job.
_OF_COMPONENT = re.compile(
    r"--(nodes|ntasks-per-node|cpus-per-task|gpus-per-node|gres|mem|time|partition|account|exclusive|qos"
    r"|reservation|constraint)\b"
)

Refusal = tuple[int, str] | None  # the line and the reason


def refusal(script: Script, target: Dialect | None) -> Refusal:
    """Return the line and the reason if the components have no counterpart; None without components.

    Without a target they become those of a job file.
    """
    parts = scripts_of(script)
    if len(parts) == 1 or target is script.dialect:
        return None
    if script.components:
        if target is None:
            return None
        reason = _of_options(script, target) or _of_steps(script, parts) or _of_names(script, target)
        return reason or _of_processes(parts, target, script.components[0])
    option = chunks_option(script)
    assert option is not None
    sizes = ("mem", "vmem") if target is not None and target.family == script.dialect.family else ("mem",)
    if name := next((one for one in sizes if one in script.request.totals), None):
        why = f"has nodes that differ, and -l {name} is the memory of all: request that of each node"
        return option.line, why
    if target is None:
        return _of_mpirun(script, parts)
    if not target.scheduler.component_line:
        return _of_processes(parts, target, option.line)
    if script.request.array:
        return option.line, f"has nodes that differ, and {target.title} refuses arrays of heterogeneous jobs"
    if any(before.request.mem and not one.request.mem for before, one in pairwise(parts)):
        why = f"{target.title} gives a component the memory of the one before"
        return option.line, f"requests the memory of some nodes only, and {why}: request it of all"
    return _of_names(script, target) or _of_mpirun(script, parts)


def _of_options(script: Script, target: Dialect) -> Refusal:
    """Refuse options that differ between components: chunks have sizes only."""
    first = script.heeded_by_component[0]
    for at, given in enumerate(script.heeded_by_component[1:], 1):
        for key in [*given, *(one for one in first if one not in given)]:
            own, of_first = given.get(key), first.get(key)
            if not key or _SIZES.fullmatch(key) or (own is None and key not in _OF_EACH):
                continue
            if own is None or of_first is None or own.value != of_first.value:
                shown = own or of_first
                assert shown is not None
                text = f"{key}={shown.value}".rstrip("=")
                which = f"is for component {at if own else 0} only"
                return shown.line, f"{text} {which}: {target.title} has one for the whole job"
    return None


_OF_EACH = ("--constraint", "--exclusive", "--nodelist", "--exclude", "--reservation", "--qos")


def _of_steps(script: Script, parts: Sequence[Script]) -> Refusal:
    """Refuse launches that are not one of all ranks of all components."""
    for call, *others in zip(calls(script), *(calls(one) for one in parts), strict=True):
        line, found = call.command.line, parts_of(call)
        owners = [[at for at, one in enumerate(found) if one.is_for(n, at)] for n in range(len(parts))]
        order = [at for one in owners for at in one]
        if not all(owners):
            missing = owners.index([])
            return line, f"{NAME} starts no rank in component {missing}: only a launch over all is translated"
        if order != sorted(order):
            return line, f"{NAME} starts the components in another order than that of the job"
        if any(one.program != found[0].program for one in found):
            return line, f"{NAME} starts different programs in the components: one for all is translated"
        for at, (own, part) in enumerate(zip(others, parts, strict=True)):
            try:
                step = read(LaunchWords(own.words, part, {}), part.request)
            except Unreadable as error:
                return line, str(error)
            if (ranks := mpirun_line.ranks_of(step, part.request)) != str(ranks_of(part.request)):
                all_ranks = counted(ranks_of(part.request), "rank")
                return line, f"{NAME} starts {ranks or 'other'} of the {all_ranks} of component {at}"
    row = next((one for one in script.launches if not one.row.by_scheduler and one.outer is None), None)
    if row is not None:
        return row.line, f"{row.kind} finds the nodes of the first component only: only {NAME} is translated"
    return None


def _of_mpirun(script: Script, parts: Sequence[Script]) -> Refusal:
    """Refuse launches of other ranks than those of the node file, in its order."""
    total = sum(ranks_of(one.request) for one in parts)
    for call in launch_calls.calls(script, mpirun_line.NAMES):
        line = call.command.line
        if ":" in call.command.literals:
            return line, "several programs have no counterpart in a heterogeneous job"
        try:
            given = mpirun_line.read(LaunchWords(call.words, script, {}))
        except Unreadable as error:
            return line, str(error)
        if {"each", "cyclic", "cpus"} & given.values.keys():
            return line, f"{call.name} places the ranks itself, and the nodes of the job differ"
        if (ranks := given.numbers.get("ranks", total)) != total:
            return line, f"{call.name} starts {ranks} of {total} ranks: only all are translated"
    return None


def unread_ranks(script: Script, parts: Sequence[Script]) -> Iterator[Remark]:
    """Yield a remark on each mpirun with an unknown number of ranks: the new job starts all."""
    total = sum(ranks_of(one.request) for one in parts)
    for call in launch_calls.calls(script, mpirun_line.NAMES):
        try:
            given = mpirun_line.read(LaunchWords(call.words, script, {}))
        except Unreadable:
            continue
        number = given.values.get("ranks", "")
        names = re.findall(r"\$\{?(\w+)", number)
        values = [one.text for name in names for one in script.values.get(name, ())]
        counted_hosts = any(str(script.dialect.variable("node_file")) in one for one in values)
        if number and "ranks" not in given.numbers and not counted_hosts:
            why = f"is not known: the new job starts a rank on each of its {total} slots"
            yield call.hint(why, f"-n {number}")


def _of_names(script: Script, target: Dialect) -> Refusal:
    """Refuse variables and commands for the nodes of the job, on Slurm those of the first component."""
    source, known = script.dialect, meanings(script.dialect)
    of_slurm = (source if script.components else target).title
    for node, _ in names_read(script.tree):
        if known.get(node.text) in _OF_NODES or re.search("_HET_(GROUP|SIZE)", node.text):
            why = f"is that of one component in a heterogeneous job of {of_slurm}"
            return node.line, f"${node.text} {why}, and not of all nodes"
    for command in script.named(*source.host_list[:1]) if script.components else ():
        if command.literals[:1] == ["show"] and not command.literals[2:]:
            return command.line, f"{command.name} lists the hosts of the first component only"
    return None


def _of_processes(parts: Sequence[Script], target: Dialect, line: int) -> Refusal:
    """Refuse cores and memory counted for each process, of which the nodes have different numbers."""
    requests = [one.request for one in parts] if target.scheduler.behaviour.hosts_by_core else []
    if any(one.mem for one in requests):
        why = target.scheduler.lacks_in_component["mem"]
        return line, f"the memory of a component has no counterpart: {why}"
    if any((one.cpus_per_rank or 1) > 1 for one in requests):
        why = f"the node file of {target.title} has a line for each core, and mpirun starts a rank for each"
        return line, f"ranks with several cores on nodes that differ have no counterpart: {why}"
    return None


def request_lines(heads: Sequence[list[str]], target: Dialect) -> list[str]:
    """Return the directives of a job from those that each component would have as a job."""
    if target.scheduler.component_line:
        prefix = f"{target.scheduler.prefix} "
        lines = [*heads[0]]
        for head in heads[1:]:
            lines.append(prefix + target.scheduler.component_line.removeprefix(prefix))
            lines += [one for one in head if _OF_COMPONENT.match(one.removeprefix(prefix))]
        return lines
    chunks = re.compile(rf"({re.escape(target.scheduler.prefix)} -l (?:select|nodes)=)(.*)")
    found = [next(match for one in head if (match := chunks.fullmatch(one))) for head in heads]
    first = "+".join([found[0][0], *(one[2] for one in found[1:])])
    return [first if one == found[0][0] else one for one in heads[0]]


def steps(whole: Script, requests: Sequence[Request], edits: Sequence[Edit], target: Dialect) -> list[Edit]:
    """Return the edits of a script with a part of each launch for each component, or with one for all."""
    found = list(edits)
    for call in launch_calls.calls(whole, mpirun_line.NAMES if target.scheduler.component_line else (NAME,)):
        if (edit := next((one for one in edits if one.start == call.start and one.text), None)) is None:
            continue
        found.remove(edit)
        if not target.scheduler.component_line:
            placed = re.sub(r" (--map-by ppr:\d+:node(:\w+(=\d+)?)*|-ppn \d+)(?= )", "", edit.text)
            found.append(edit._replace(text=placed))
            continue
        end = call.words[-1].end
        inside = (one for one in edits if edit.end <= one.start and one.end <= end)
        inner = [Edit(one.start - edit.end, one.end - edit.end, one.text) for one in inside]
        program = apply(whole.source[edit.end : end], inner).decode("utf-8", "replace")
        before, _, options = edit.text.partition(NAME)
        options = re.sub(r" --(ntasks|nodes|ntasks-per-node|cpus-per-task)=\S+", "", options)
        parts = [f"{_part(at, one)}{options}" for at, one in enumerate(requests)]
        found.append(edit._replace(text=f"{before}{NAME} {parts[0]}"))
        found.append(Edit(end, end, "".join(f" \\\n  : {one}{program}" for one in parts[1:])))
    return found


def rest_of_steps(script: Script) -> Iterator[Edit]:
    """Yield the edits that remove the parts of a launch for the components behind the first."""
    for call in calls(script):
        first, *others = parts_of(call)
        if others:
            yield Edit(first.words[-1].end, others[-1].words[-1].end, "")


def _part(at: int, request: Request) -> str:
    """Return the sizes of a component in a step, all of them: srun takes others from the first component."""
    ranks, nodes, cores = ranks_of(request), request.nodes or 1, request.cpus_per_rank or 1
    sizes = f"--nodes={nodes} --ntasks={ranks} --ntasks-per-node={-(-ranks // nodes)} --cpus-per-task={cores}"
    return f"--het-group={at} {sizes}"
