"""Conversion of a script for another scheduler: directives from its request, edits of its body."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobgen.check.bash import Node, expansions
from jobgen.check.script import Script
from jobgen.convert import directive_options, launch_translation, request_reader, request_writer, variables
from jobgen.convert.remark import Definition, Edit, Remark, apply
from jobgen.launchers import DEFAULT_MPI, MPI_FLAVOURS
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.table import SCHEDULERS
from jobgen.schedulers.wanted import Wanted


class Converted(NamedTuple):
    """The new script and the remarks on it."""

    text: str
    remarks: tuple[Remark, ...]


def convert(script: Script, to: str) -> Converted:
    """Return the script of the same job for the scheduler ``to``: slurm, pbspro or torque."""
    source, target = SCHEDULERS[script.scheduler], SCHEDULERS[to]
    if target is source:
        return Converted(script.source.decode("utf-8", "replace"), ())
    wanted = request_reader.read(script)
    extra = directive_options.write(wanted.told, source, target, wanted.request.queue)
    head, lost = request_writer.write(wanted, source, target, extra)
    remarks = [Remark(_first(script, 0), what, why) for what, why in lost]
    remarks += [Remark(one.option.line, one.text, why) for one, why in extra.lost]
    limits = tuple(f"-l {name}=" for name in source.common_limits if source.family == target.family)
    for option, text, why in wanted.left:
        if text.startswith(limits):
            head.append(f"{target.prefix} {text}")
        else:
            remarks.append(Remark(option.line, text, f"{why} in {target.title}"))
    body = _body(script, source, target)
    remarks += [one for one in body if isinstance(one, Remark)]
    remarks += _lookouts(script, source, target)
    defined = [one for one in body if isinstance(one, Definition)]
    edits = [one for one in body if isinstance(one, Edit)]
    head += [_comment(remark) for remark in remarks if remark.lost and remark.line <= _end(script)]
    edits += _directives(script, head) + _start(script, source, target, wanted, defined)
    text = apply(script.source.replace(b"\r\n", b"\n"), edits).decode("utf-8", "replace")
    return Converted(text, tuple(sorted(set(remarks))))


def _first(script: Script, default: int) -> int:
    """Return the line of the first directive."""
    return script.directives.live[0].number if script.directives.live else default


def _comment(remark: Remark) -> str:
    return f"# not translated: {remark.what}: {remark.why}"


def _end(script: Script) -> int:
    """Return the number of the last line before the first command."""
    return (script.directives.first_command or len(script.lines) + 1) - 1


def _lines(script: Script) -> list[int]:
    """Return the offset in bytes where each line begins, and the end of the last one."""
    source = script.source.replace(b"\r\n", b"\n")
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    return [min(start, len(source)) for start in starts]


def _directives(script: Script, head: list[str]) -> list[Edit]:
    """Return edits that put the new directives at the first old one or the top, and remove the old ones."""
    starts, live = _lines(script), script.directives.live
    text = "".join(f"{line}\n" for line in head)
    if not live:
        at = starts[1] if script.lines and script.lines[0].startswith("#!") else 0
        return [Edit(at, at, text)]
    edits = [Edit(starts[one.number - 1], starts[one.number], "") for one in live]
    return [edits[0]._replace(text=text), *edits[1:]]


def _body(script: Script, source: Scheduler, target: Scheduler) -> list[Edit | Remark | Definition]:
    found: list[Edit | Remark | Definition] = list(launch_translation.launches(script, source, target))
    gone = _host_lists(script, source)
    found += [Edit(node.start, node.end, target.hosts) for node in gone]
    if source.family != target.family:
        found += [
            Remark(command.line, command.node.text.split("\n")[0][:60], f"is a command of {source.title}")
            for command in script.named(*source.commands)
            if command.node not in gone
        ]
    return found + list(variables.translate(script, source, target, gone))


def _host_lists(script: Script, source: Scheduler) -> list[Node]:
    """Return the commands that print the hosts of the job."""
    lists = [name for name, meaning in source.job_variables.items() if meaning == "node_list"]
    return [
        command.node
        for command in script.named(*source.host_list[:1])
        if tuple(command.literals[: len(source.host_list) - 1]) == source.host_list[1:]
        and all(name in lists for name, _ in expansions(command.node))
    ]


def _start(
    script: Script, source: Scheduler, target: Scheduler, wanted: Wanted, defined: list[Definition]
) -> list[Edit]:
    """Return the edit that inserts lines before the first command, but after ``set``."""
    lines = _directory(script, source, target, wanted.directory) + _node_file(script, source, target)
    lines += [f"{name}={value}" for name, value in defined]
    lines += ["export " + " ".join(name for name, _ in defined)] if defined else []
    lines += [f"export {name}={_shell(value)}" for name, value in wanted.exports]
    at = _behind_set(script)
    text = "".join(f"{line}\n" for line in lines)
    return [Edit(at, at, text)] if lines else []


def _shell(value: str) -> str:
    return (
        value if re.fullmatch(r"[\w./:,+@%=-]*", value, re.ASCII) else "'" + value.replace("'", "'\\''") + "'"
    )


def _directory(script: Script, source: Scheduler, target: Scheduler, directory: str | None) -> list[str]:
    """Return lines that change to the directory where the source starts the job."""
    lines = []
    moved = source.starts_at_home != target.starts_at_home
    if moved and not (source.starts_at_home and _changes_directory(script)):
        start = target.variable("home" if source.starts_at_home else "submit_dir")
        lines.append(f'cd "${start}" || exit 1  # where {source.family} starts a job')
    if directory and "directory" not in target.request_forms and not (moved and directory == "."):
        lines.append(f"cd {directory} || exit 1")
    return lines


def _changes_directory(script: Script) -> bool:
    """Return whether the script or one of its directives sets the directory."""
    flags = any(option.flag in ("-d", "-w") for option in script.options)
    return flags or "wd" in script.request.totals or any(script.named("cd", "pushd"))


def _node_file(script: Script, source: Scheduler, target: Scheduler) -> list[str]:
    """Return lines that write the node file, if the script uses it and only the source has one."""
    file = source.variable("node_file")
    if target.variable("node_file") or not any(name == file for name, _ in script.expansions):
        return []
    slots = script.request.lines_per_node or 1
    comment = f"# The hosts of the job, one line a slot, as {source.family} lists them."
    lines = target.write_node_file(str(file), slots)
    return [comment, *lines] if lines else []


def _behind_set(script: Script) -> int:
    """Return the offset of the first line that is a command, but not ``set``."""
    starts = _lines(script)
    line = script.directives.first_command or len(script.lines) + 1
    for command in script.named("set"):
        if command.line == line:
            line += 1
    return starts[min(line, len(starts)) - 1]


def _lookouts(script: Script, source: Scheduler, target: Scheduler) -> list[Remark]:
    """Return remarks on translations that the user should check."""
    asked, found, line = script.request, [], _first(script, 1)
    shell = next((option for option in script.options if option.flag == source.shell_option), None)
    if shell and not target.shell_option and script.lines[0].split()[:1] != [f"#!{shell.value}"]:
        why = f"{target.title} uses the shell of the first line: {script.lines[0]}"
        found.append(Remark(shell.line, f"{shell.flag} {shell.value}", why))
    place = asked.place or "scatter" * ("nodes" in asked.totals)
    if source.chunks_share_nodes and asked.several and "scatter" not in place:
        found.append(Remark(line, "select=", "each chunk becomes a node", lost=False))
    ranks = variables.rank_names(source, target)
    if any(name in ranks for name, _ in script.expansions):
        why = f"replaced by the variables of {MPI_FLAVOURS[DEFAULT_MPI].title}"
        found.append(Remark(line, next(iter(ranks)), why, lost=False))
    return found
