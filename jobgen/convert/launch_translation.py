"""Translation of srun to mpirun and of mpirun to srun, option by option."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jobgen.check.bash import Node, literal
from jobgen.check.script import Script
from jobgen.check.shell_commands import Command
from jobgen.convert import variables
from jobgen.convert.launch_options import MPI_FLAGS, MPI_VALUES, SRUN_FLAGS, SRUN_VALUES
from jobgen.convert.remark import Edit, Remark, apply
from jobgen.launchers import LAUNCHERS, MPI_FLAVOURS
from jobgen.schedulers.base import Scheduler

_MPIRUNS = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun")


@dataclass
class _Read:
    """The command line of a launcher: its options by their meaning, and the node where the program begins."""

    said: dict[str, str] = field(default_factory=dict)
    exports: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    program: Node | None = None
    mpi: str = "pmix"


class _Launcher(NamedTuple):
    """The commands of a launcher, and the functions that read and write its options."""

    names: tuple[str, ...]
    read: Callable[[Sequence[Node], Mapping[str, str]], _Read | str]
    write: Callable[[Script, _Read, Command, Scheduler, Scheduler], str]


def launches(script: Script, source: Scheduler, target: Scheduler) -> Iterator[Edit | Remark]:
    """Yield the edits of all launchers that the other scheduler does not have."""
    if source.node_step == target.node_step or not {source.node_step, target.node_step} <= _LAUNCHERS.keys():
        return
    old, other = _LAUNCHERS[source.node_step], variables.names(source, target)
    for command in script.named(*old.names):
        yield from _replaced(command, script, old.read(command.words[1:], other), source, target)


def _replaced(
    command: Command,
    script: Script,
    read: _Read | str,
    source: Scheduler,
    target: Scheduler,
) -> Iterator[Edit | Remark]:
    what = command.node.text.split("\n")[0][:60]
    if isinstance(read, str):
        yield Remark(command.line, what, f"{read}: the line is unchanged")
        return
    if read.program is None:
        yield Remark(command.line, what, "it has no program: the line is unchanged")
        return
    if "hosts" in read.said:
        yield Remark(command.line, read.said["hosts"], "srun uses the hosts of the job", lost=False)
    fewer = read.said.get("ranks", "")
    if target.node_step is None and fewer.isdigit() and int(fewer) < (script.request.ranks or 0):
        why = "srun uses a free node, mpirun always starts on the first"
        yield Remark(command.line, what, why, lost=False)
    for option in read.lost:
        yield Remark(command.line, option, "has no counterpart")
    text = _LAUNCHERS[target.node_step].write(script, read, command, source, target)
    yield Edit(command.words[0].start, read.program.start, f"{text} ")


def _begun(read: _Read, word: Node, text: str) -> _Read | str:
    """Return the command line whose program begins at this word, or the reason why it cannot be read."""
    if word.type in ("simple_expansion", "expansion"):
        return f"the value of {text} is not known"
    read.program = word
    return read


def _srun(words: Sequence[Node], other: Mapping[str, str]) -> _Read | str:
    read = _Read()
    at = 0
    while at < len(words):
        text = _source(words[at], other)
        if not text.startswith("-"):
            return _begun(read, words[at], text)
        name, equals, value = text.partition("=")
        if not name.startswith("--") and len(name) > 2 and name[:2] in SRUN_VALUES:
            name, equals, value = name[:2], "=", text[2:]
        meaning = SRUN_VALUES.get(name)
        if meaning is None:
            if name not in SRUN_FLAGS:
                read.lost.append(text)
            at += 1
            continue
        if not equals:
            at += 1
            value = _source(words[at], other) if at < len(words) else ""
        at += 1
        if meaning == "lost":
            read.lost.append(f"{name} {value}")
        elif meaning == "export" and value != "ALL":
            read.lost.append(f"{name}={value}")
        elif meaning:
            read.said[meaning] = value
    return read


def _exported(script: Script, command: Command, source: Scheduler, target: Scheduler) -> Iterator[str]:
    """Yield the variables that srun exports by itself: those of the script, and those used in ``bash -c``."""
    for node in script.tree.all("declaration_command"):
        if node.children[0].type == "export" and node.start < command.node.start:
            yield from (part.text for part in node.children if part.type == "variable_name")
            yield from (part.children[0].text for part in node.children if part.type == "variable_assignment")
    other, ranks = variables.names(source, target), variables.rank_names(source, target)
    defined = variables.definitions(script.request, source, target)
    for word in command.arguments:
        for name in variables.inner_names(word):
            if name in other and name not in ranks:
                yield other[name]
            elif name in defined:
                yield name


def _as_mpirun(script: Script, read: _Read, command: Command, source: Scheduler, target: Scheduler) -> str:
    asked = script.request
    each = read.said.get("each") or (str(asked.ranks_per_node) if asked.ranks_per_node else None)
    ranks = read.said.get("ranks")
    nodes = read.said.get("nodes") or (str(asked.nodes) if asked.nodes else None)
    if ranks is None and each and nodes and (each + nodes).isdigit():
        ranks = str(int(each) * int(nodes))
    hosts = target.variable("node_file")
    words = [f"mpirun -np {ranks or asked.ranks or 1}", f'--hostfile "${hosts}"']
    if each:
        words.append(f"--map-by ppr:{each}:node")
    words.append("--bind-to none")
    words += [f"-x {name}" for name in dict.fromkeys(["PATH", *_exported(script, command, source, target)])]
    return " ".join(words)


def _mpirun(words: Sequence[Node], other: Mapping[str, str]) -> _Read | str:
    read = _Read()
    at = 0
    while at < len(words):
        text = _source(words[at], other)
        if not text.startswith("-"):
            return _begun(read, words[at], text)
        name, equals, value = text.partition("=")
        meaning = MPI_VALUES.get(name)
        at += 1
        if meaning is None:
            if name in ("--oversubscribe", "-oversubscribe"):
                read.said["overcommit"] = "yes"
            elif name not in MPI_FLAGS:
                return f"{text} has no counterpart"
            continue
        count = 2 if meaning in ("mca", "genv") else 1
        values = [value] if equals else [_source(word, other) for word in words[at : at + count]]
        at += 0 if equals else count
        _mean(read, name, meaning, values)
    return read


def _mean(read: _Read, name: str, meaning: str, values: list[str]) -> None:
    read.mpi = next((mpi.srun for mpi in MPI_FLAVOURS.values() if name in mpi.marks), read.mpi)
    value = values[0] if values else ""
    if meaning == "export":
        read.exports += [value] * ("=" in value)
    elif meaning == "genv":
        read.exports.append("=".join(values))
    elif meaning == "mca":
        read.lost.append(" ".join([name, *values]))
    elif meaning == "map":
        match = re.fullmatch(r"ppr:(\w+|\"?\$\{?\w+\}?\"?):node(:PE=(\d+))?", value)
        if match:
            read.said["each"] = match[1]
        elif value not in ("node", "slot", "core"):
            read.lost.append(f"{name} {value}")
    elif meaning:
        read.said[meaning] = value


def _as_srun(script: Script, read: _Read, command: Command, source: Scheduler, target: Scheduler) -> str:
    asked = script.request
    words = ["srun"]
    if "ranks" in read.said:
        words.append(f"--ntasks={_quoted(read.said['ranks'])}")
    if "each" in read.said:
        words.append(f"--ntasks-per-node={_quoted(read.said['each'])}")
    cpus = read.said.get("cpus") or (asked.cpus_per_rank if (asked.cpus_per_rank or 1) > 1 else None)
    if cpus:
        words.append(f"--cpus-per-task={_quoted(str(cpus))}")
    bind = {"none": "none", "core": "cores", "socket": "sockets"}.get(read.said.get("bind", ""))
    words += [f"--cpu-bind={bind}"] * bool(bind)
    words += ["--overcommit"] * ("overcommit" in read.said)
    if "chdir" in read.said:
        words.append(f"--chdir={read.said['chdir']}")
    words += ["--kill-on-bad-exit=1", *([f"--mpi={read.mpi}"] if read.mpi != "none" else [])]
    return " ".join([*(["env", *read.exports] if read.exports else []), *words])


def _quoted(text: str) -> str:
    return f'"{text}"' if text.startswith("$") else text


def _source(word: Node, other: Mapping[str, str]) -> str:
    """Return the new text of a word: plain text without its quotes, variables with their new names."""
    text = literal(word)
    if text is not None and re.fullmatch(r"[\w=:.,/+@%-]+", text):
        return text
    edits = [
        Edit(node.start - word.start, node.end - word.start, other[node.text])
        for node in word.all("variable_name")
        if node.text in other
    ]
    return apply(word.text.encode(), edits).decode("utf-8", "replace")


# By the command of a scheduler that starts processes on its nodes.
_LAUNCHERS = {
    "srun": _Launcher(LAUNCHERS["srun"].names, _srun, _as_srun),
    None: _Launcher(_MPIRUNS, _mpirun, _as_mpirun),
}
