"""Conversion of a script for another scheduler: directives from its request, edits of its body."""

from __future__ import annotations

import re
from typing import NamedTuple

from jobgen.check.bash import Node, expansions
from jobgen.check.script import Script
from jobgen.convert import directive_options, launch_translation, request_reader, request_writer, variables
from jobgen.convert.remark import Definition, Edit, Remark, apply

_SLURM_COMMANDS = ("scontrol", "sbatch", "scancel", "squeue", "sacct", "sinfo", "sbcast", "sstat", "salloc")
_PBS_COMMANDS = ("qsub", "qdel", "qstat", "qalter", "qrerun", "qsig", "pbsdsh", "pbs_tmrsh", "pbsnodes")
_OF_BOTH = r"-l (vmem|pvmem|cput|pcput|file|nice)="  # limits with one name on PBS Pro and Torque
TITLES = {"slurm": "Slurm", "pbspro": "PBS Pro", "torque": "Torque"}


class Converted(NamedTuple):
    """The new script and the remarks on it."""

    text: str
    remarks: tuple[Remark, ...]


def convert(script: Script, target: str) -> Converted:
    """Return the script of the same job for ``target``: slurm, pbspro or torque."""
    if target == script.scheduler:
        return Converted(script.source.decode("utf-8", "replace"), ())
    wanted = request_reader.read(script)
    extra = directive_options.write(wanted.told, script.scheduler, target, wanted.request.queue)
    head, lost = request_writer.write(wanted, script.scheduler, target, extra)
    first = script.directives.live[0].number if script.directives.live else 0
    remarks = [Remark(first, what, why) for what, why in lost]
    remarks += [Remark(one.option.line, one.text, why) for one, why in extra.lost]
    for option, text, why in wanted.left:
        if "slurm" not in (script.scheduler, target) and re.match(_OF_BOTH, text):
            head.append(f"#PBS {text}")
        else:
            remarks.append(Remark(option.line, text, f"{why} in {TITLES[target]}"))
    body = _body(script, target)
    remarks += [one for one in body if isinstance(one, Remark)]
    remarks += _lookouts(script, target)
    defined = [one for one in body if isinstance(one, Definition)]
    edits = [one for one in body if isinstance(one, Edit)]
    head += [_comment(remark) for remark in remarks if remark.lost and remark.line <= _end(script)]
    edits += _directives(script, head) + _start(script, target, wanted, defined)
    return Converted(
        apply(script.source.replace(b"\r\n", b"\n"), edits).decode("utf-8", "replace"), _sorted(remarks)
    )


def _sorted(remarks: list[Remark]) -> tuple[Remark, ...]:
    return tuple(sorted(set(remarks)))


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


def _body(script: Script, target: str) -> list[Edit | Remark | Definition]:
    found: list[Edit | Remark | Definition] = list(launch_translation.launches(script, target))
    gone: list[Node] = []
    if script.scheduler == "slurm":
        for node, text in _host_lists(script):
            gone.append(node)
            found.append(Edit(node.start, node.end, text))
    found += _foreign_commands(script, target, gone)
    return found + list(variables.translate(script, target, gone))


def _foreign_commands(script: Script, target: str, gone: list[Node]) -> list[Remark]:
    """Return remarks on the scheduler's own commands in the body."""
    if "slurm" not in (script.scheduler, target):
        return []
    own = _SLURM_COMMANDS if script.scheduler == "slurm" else _PBS_COMMANDS
    title = TITLES[script.scheduler]
    return [
        Remark(command.line, command.node.text.split("\n")[0][:60], f"{command.name} is {title}'s")
        for command in script.named(*own)
        if command.node not in gone
    ]


def _host_lists(script: Script) -> list[tuple[Node, str]]:
    """Return each ``scontrol show hostnames``, with the command that lists the hosts on PBS."""
    lists = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
    return [
        (command.node, "awk '!seen[$1]++' \"$PBS_NODEFILE\"")
        for command in script.named("scontrol")
        if command.literals[:2] == ["show", "hostnames"]
        and all(name in lists for name, _ in expansions(command.node))
    ]


def _start(
    script: Script, target: str, wanted: request_reader.Wanted, defined: list[Definition]
) -> list[Edit]:
    """Return the edit that inserts lines before the first command, but after ``set``."""
    lines: list[str] = []
    if target == "slurm" and script.scheduler != "slurm":
        lines += _from_home(script)
        if any(name == "PBS_NODEFILE" for name, _ in script.expansions):
            lines += _node_file(script)
    elif target != "slurm" and script.scheduler == "slurm":
        lines += ['cd "$PBS_O_WORKDIR" || exit 1  # where Slurm starts a job']
        lines += [f"cd {wanted.directory} || exit 1"] if wanted.directory and wanted.directory != "." else []
    elif wanted.directory and target == "pbspro":
        lines += [f"cd {wanted.directory} || exit 1"]
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


def _from_home(script: Script) -> list[str]:
    """Return a cd to the home directory, where PBS starts a job, unless the script changes the directory."""
    wd = any(name == "wd" for name in script.request.totals) or any(
        one.flag in ("-d", "-w") for one in script.options
    )
    if wd or any(script.named("cd", "pushd")):
        return []
    return ['cd "$HOME" || exit 1  # where PBS starts a job']


def _node_file(script: Script) -> list[str]:
    slots = script.request.lines_per_node or 1
    each = f" | awk '{{ for (i = 0; i < {slots}; i++) print }}'" if slots > 1 else ""
    return [
        "# The hosts of the job, one line a slot, as PBS lists them.",
        "PBS_NODEFILE=${TMPDIR:-/tmp}/nodefile.$SLURM_JOB_ID",
        f'scontrol show hostnames "$SLURM_JOB_NODELIST"{each} > "$PBS_NODEFILE"',
        "export PBS_NODEFILE",
    ]


def _behind_set(script: Script) -> int:
    """Return the offset of the first line that is a command, but not ``set``."""
    starts = _lines(script)
    line = script.directives.first_command or len(script.lines) + 1
    for command in script.named("set"):
        if command.line == line:
            line += 1
    return starts[min(line, len(starts)) - 1]


def _lookouts(script: Script, target: str) -> list[Remark]:
    """Return remarks on translations that the user should check."""
    asked, found = script.request, []
    line = script.directives.live[0].number if script.directives.live else 1
    shell = next((option for option in script.options if option.flag == "-S" and script.is_pbs), None)
    if target == "slurm" and shell and script.lines[0].split()[:1] != [f"#!{shell.value}"]:
        why = f"Slurm takes the shell that the first line names: {script.lines[0]}"
        found.append(Remark(shell.line, f"-S {shell.value}", why))
    if (
        script.scheduler == "pbspro"
        and asked.several
        and "scatter" not in (asked.place or "scatter" * ("nodes" in asked.totals))
    ):
        found.append(Remark(line, "select=", "each chunk becomes a node", lost=False))
    if script.scheduler == "slurm" and any(
        name in ("SLURM_PROCID", "SLURM_LOCALID") for name, _ in script.expansions
    ):
        found.append(Remark(line, "SLURM_PROCID", "became Open MPI's variables", lost=False))
    return found
