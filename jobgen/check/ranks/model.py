"""The processes of a job: how many a command starts, where, and the cores and devices of each."""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from jobgen.check.ranks.launcher_config import launches as configured
from jobgen.check.ranks.program import RankProgram, program, stays
from jobgen.launch.command_line import SHELLS, is_python
from jobgen.launch.launchers import LAUNCHERS
from jobgen.launch.wrappers import command_start
from jobgen.schedulers.request import Request
from jobgen.script.commands import Command, commands
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import LOOPS, Node, parse
from jobgen.script.word_lists import runs_once, shell_text

# Programs of a step that prepare or report, and start no training.
_TRIFLES = """
hostname nvidia-smi npu-smi rocm-smi true echo date env printenv mkdir ls cat rm cp tar rsync mv ln df du
free lscpu nproc uname which pwd id ulimit unzip sleep touch chmod module sbcast ibstat kill pkill cd
"""
TRIFLES = frozenset(_TRIFLES.split())


# Programs of Python with commands of their own, which use the GPUs of their node.
_COMMANDS = ("vllm", "sglang", "lmdeploy", "composer", "tune", "llamafactory-cli", "axolotl", "fairseq-train")


class RankGroup(NamedTuple):
    """The processes of a program: what starts them, and what each gets. None: the text does not determine it.

    ``chain`` are the launchers, the outer one first; without any the shell of the script runs the program on
    the first node. ``command`` is that of the script, also for a launcher in code, and begins at ``start``.
    ``text`` is the code that a shell in each process runs, ``tasks`` the processes of the
    outer launcher on a node, ``each`` the ranks on a node, ``cores`` those of a rank, ``total`` all ranks.
    """

    line: int
    start: int
    command: Command
    chain: tuple[Launch, ...]
    program: RankProgram
    text: Node | None
    nodes: int | None
    tasks: int | None
    each: int | None
    cores: int | None
    total: int | None

    @property
    def outer(self) -> Launch | None:
        return self.chain[0] if self.chain else None

    @property
    def inner(self) -> Launch | None:
        return self.chain[-1] if self.chain else None

    @property
    def sets_ranks(self) -> bool:
        """Return whether a launcher sets RANK, WORLD_SIZE, LOCAL_RANK and the address of its own."""
        return any(launch.row.once_a_node for launch in self.chain)

    @property
    def is_step(self) -> bool:
        """Return whether srun starts the processes."""
        return self.outer is not None and self.outer.row.by_scheduler

    @property
    def name(self) -> str:
        """Return the program as messages name it."""
        inner = self.inner.title if self.inner is not None and self.inner.row.once_a_node else ""
        return inner or self.program.file or next(iter(self.program.arguments), "the program")


@lru_cache(maxsize=4)  # the many rules on ranks read the same script
def ranks(script: Script) -> tuple[RankGroup, ...]:
    """Return the processes of each program that the body starts, through launchers or without."""
    return tuple(_ranks(script))


def _ranks(script: Script) -> Iterator[RankGroup]:
    launches = configured(script)
    outers = {id(launch.outer.options) for launch in launches if launch.outer is not None}
    readable = stays(script)
    for launch in launches:
        if id(launch.options) not in outers:
            yield _of_launch(script, launch, readable)
    started = {id(launch.command.node) for launch in launches}
    last: Command | None = None
    for command in script.own_runs:
        of_last = last is not None and last.node is command.node
        if last is not None and of_last and command.words == last.words[-len(command.words) :]:
            continue  # what a wrapper runs
        last = command
        words = [script.constants.value(word) for word in command.words]
        at, name = start_of(words)
        if id(command.node) in started:
            continue
        if name in _COMMANDS or (is_python(name) and "-c" not in words[at + 1 : at + 2]):
            found = program(script, words[at:], readable)
            start, cores = command.node.start, cores_of_script(script)
            yield RankGroup(command.line, start, command, (), found, None, 1, 1, 1, cores, 1)


def beside(script: Script, *, steps: bool = False, calls: bool = False) -> Iterator[list[RankGroup]]:
    """Yield the processes in the background that run at the same time; one in a loop is there twice.

    ``steps``: also those that srun starts; ``calls``: also those of functions.
    """
    waits = [one.node for one in script.named("wait")]
    starts = sorted(wait.start for wait in waits)
    found: list[RankGroup] = []
    branch: Node | None = None
    end = 0
    for node, one in _in_background(script, calls):
        if (one.is_step and not steps) or any(launch.remote for launch in one.chain):
            continue
        around = node.around(*_BRANCHES)
        if around is not branch:
            if len(found) > 1:
                yield found
            found, branch = [], around
        loops = [above for above in node.above() if above.type in LOOPS]
        if any(wait in loop for wait in waits for loop in loops):
            continue  # it waits between the iterations
        if found and bisect_right(starts, end) < bisect_left(starts, node.start):
            yield found
            found = []
        end = node.end
        found += [one] * (1 if all(runs_once(loop, script.constants) for loop in loops) else 2)
    if len(found) > 1:
        yield found


def _in_background(script: Script, calls: bool) -> list[tuple[Node, RankGroup]]:
    """Return the processes in the background, each with its command, or a call of the function around it."""
    found: list[tuple[Node, RankGroup]] = []
    groups: dict[int, list[RankGroup]] = {}
    for one in ranks(script):
        if not one.command.node.under("function_definition"):
            found += [(one.command.node, one)] if one.command.background else []
        elif calls:
            groups.setdefault(one.command.node.start, []).append(one)
    by_name: dict[str, list[Command]] = {}
    for command in script.commands if groups else ():
        by_name.setdefault(command.name, []).append(command)
    waits = {around.start for one in by_name.get("wait", ()) if (around := _function(one))}
    for together in groups.values():  # one for each call, if they differ in its arguments
        command = together[0].command
        around = _function(command)
        own = by_name.get(around.name, []) if around is not None and around.start not in waits else []
        if len(together) in (1, len(own)) and not any(map(_function, own)):
            both = zip(own, together * len(own), strict=False)
            found += [(call.node, one) for call, one in both if command.background or call.background]
    return sorted(found, key=lambda row: row[0].start)


def _function(command: Command) -> Node | None:
    return command.node.around("function_definition")


_BRANCHES = ("if_statement", "elif_clause", "else_clause", "case_item")


def cores_of_script(script: Script) -> int | None:
    """Return the cores that the script has on its node; None if the request does not determine them."""
    request = script.request
    if _has_more_cores(script):
        return None
    return (request.cpus_per_rank or 1) * _tasks_of_node(request)


def _tasks_of_node(request: Request) -> int:
    """Return the tasks of the job on a node, on the one with most of them."""
    return request.ranks_per_node or -(-(request.ranks or 1) // (request.nodes or 1))


def _has_more_cores(script: Script) -> bool:
    """Return whether a node may have more cores than its tasks need."""
    options = ("--cpus-per-gpu", "--mincpus", "--cores-per-socket")
    return script.request.exclusive or any(option in script.heeded for option in options)


def _of_launch(script: Script, launch: Launch, readable: bool) -> RankGroup:
    chain: list[Launch] = [launch]
    while chain[0].outer is not None:
        chain.insert(0, chain[0].outer)
    words = [script.constants.value(word) for word in _program(script, launch)[0]]
    text = next((text for one in chain if (text := _program(script, one)[1]) is not None), None)
    outer = chain[0]
    nodes, tasks = size(script, outer)
    each = tasks
    if launch.row.once_a_node:
        each = launch.number(*launch.row.line.local_ranks) or ranks_of_machine(launch)
        each = each * tasks if each and tasks and outer is not launch else each
    cores = _cores(script, outer, tasks, each)
    return RankGroup(
        launch.line,
        outer.command.node.start,
        outer.command._replace(words=launch.whole),
        tuple(chain),
        program(script, words, readable),
        text,
        nodes,
        tasks,
        each,
        cores,
        nodes * each if nodes and each else _total(script, outer, launch),
    )


def _total(script: Script, outer: Launch, launch: Launch) -> int | None:
    """Return the number of tasks that srun starts on any number of nodes."""
    if launch.row.once_a_node or not outer.row.by_scheduler:
        return None
    own = outer.has(*outer.row.line.ranks, *outer.row.line.nodes, "--ntasks-per-node")
    return outer.number(*outer.row.line.ranks) if own else script.request.ranks


def start_of(words: Sequence[str | None]) -> tuple[int, str]:
    """Return where the command behind wrappers begins, and its name without directories; empty if unknown."""
    at = command_start(words)
    return at, os.path.basename(words[at] or "") if at < len(words) else ""


def _program(script: Script, launch: Launch) -> tuple[tuple[Node, ...], Node | None]:
    """Return the words of a launcher's program, and the text that a shell runs as ``bash -c TEXT``."""
    own = launch.whole[launch.behind :]
    at, name = start_of([script.constants.value(word) for word in own])
    if name in ("bash", "sh") and at + 1 < len(own):
        joined = (one for flag, one in pairwise(own[at:]) if re.fullmatch(r"-[a-z]*c", flag.text))
        texts = [one for one in own[at + 1 :] if one.type in ("string", "raw_string")]
        whole = ("concatenation", "word")
        text = next((one for one in joined if one.type in whole), next(iter(texts), None))
        if text is not None:
            last = list(commands(code(text)))[-1:]
            functions = {one.name: one for one in script.functions_named(text.text)} if last else {}
            if last and last[0].name in functions:
                last = list(commands(functions[last[0].name]))[-1:]
            inner = [word for command in last for word in command.words]
            return tuple(inner[command_start(forms(script, inner)) :]), text
    return own[at:], None


def last_words(script: Script, launch: Launch) -> list[str | None]:
    """Return the words of the command with which a task of a launcher ends."""
    return forms(script, _program(script, launch)[0])


def forms(script: Script, words: Sequence[Node]) -> list[str | None]:
    """Return the values of words, or the text of one whose value is unknown; None for one that may be
    several words."""
    found: list[str | None] = []
    for word in words:
        value = script.constants.value(word)
        plain = word.type == "string" or "/" in word.text or "=" in word.text
        found.append(value if value is not None else word.text.strip('"') if plain else None)
    return found


def code(text: Node) -> Node:
    """Return the tree of the code in a string; its lines are those of the script."""
    return parse(shell_text(text).encode(), text.line)


# Options of a step that runs on some nodes of the job.
SOME_NODES = ("-w", "--nodelist", "-r", "--relative", "-x", "--exclude")
# Options of an MPI with a file of hosts, and with the ranks of a node.
HOSTFILES = ("--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f")
A_NODE = LAUNCHERS["mpirun"].line.of_node


def ranks_of_node(launch: Launch) -> int | None:
    """Return the ranks on a node that an option of an MPI sets, also as ``--map-by ppr:4:node``."""
    return launch.number(*A_NODE) if launch.mapped is None else launch.mapped


def ranks_of_machine(launch: Launch) -> int | None:
    """Return the ranks on a node that accelerate starts, which gets the number of those on all machines."""
    total, machines = launch.number("--num-processes"), launch.number("--num-machines") or 1
    in_file = launch.has("--config-file") and not launch.has("--num-machines")
    if not counts_all_ranks(launch) or total is None or in_file:
        return None
    return total // machines if total % machines == 0 else None


def counts_all_ranks(launch: Launch) -> bool:
    """Return whether ``--num-processes`` of a launcher is the number of the ranks on all machines."""
    return launch.row.line.same.get("--num-processes") == "ranks" and not launch.has("--cpu", "--tpu")


def cores_of_option(launch: Launch) -> int | None:
    """Return the cores of each rank that an option of an MPI sets, as ``--map-by ppr:4:node:PE=8``."""
    if not launch.row.of_mpi:
        return None
    width = re.search(r"(?i):PE=(\d{1,3})\b", launch.text("--map-by", "-map-by"))
    return int(width[1]) if width else launch.number("--depth", "-depth", "-d")


def size(script: Script, launch: Launch) -> tuple[int | None, int | None]:
    """Return the nodes on which an outer launcher starts processes, and how many on each."""
    request, line = script.request, launch.row.line
    if not line.reaches_nodes or (launch.row.once_a_node and launch.outer is None):
        hosts = launch.has("--hostfile", "-H", "--host")
        return (request.nodes or (None if request.several else 1)) if hosts else 1, 1
    total = launch.number(*line.ranks)
    if launch.row.by_scheduler:
        return _step_size(script, launch, total)
    if (each := ranks_of_node(launch)) is not None or launch.has(*A_NODE):
        nodes = request.nodes or (1 if total == 1 else None)
        if nodes and each and total and -(-total // each) < nodes:
            return -(-total // each), min(each, total)
        return nodes, each
    if launch.has(*line.ranks) and total is None:
        return request.nodes, None
    nodes = request.nodes or (1 if total == 1 else None)
    if total is not None and nodes:
        return min(nodes, total), (total // nodes if total % nodes == 0 else None) if total >= nodes else 1
    return nodes, request.ranks_per_node


def _step_size(script: Script, launch: Launch, total: int | None) -> tuple[int | None, int | None]:
    request, names = script.request, ("-N", "--nodes")
    nodes = launch.number(*names) if launch.has(*names) else request.nodes
    if launch.has(*SOME_NODES) and not launch.has(*names):
        nodes = None
    each = None if ignores_tasks_of_node(script, launch) else launch.number("--ntasks-per-node")
    if total == 1 or (request.ranks == 1 and not launch.has("-n", "--ntasks", "--ntasks-per-node", *names)):
        return 1, 1
    if launch.has("-n", "--ntasks"):
        if total is None:
            return nodes, each
        if nodes is None and request.nodes is None:
            return None, each
        if each is None and nodes:
            each = total // nodes if total % nodes == 0 else None
        return nodes, each
    if launch.has("--ntasks-per-node") and launch.number("--ntasks-per-node") is None:
        return nodes, None
    if launch.has(*names) and each is None:
        return nodes, request.ranks_per_node
    if each is None and request.ranks is None and request.ranks_per_node is None:
        asks = {"--ntasks-per-gpu", "--gpus-per-task"} & set(script.heeded) or launch.has("--ntasks-per-gpu")
        return nodes or (1 if request.nodes is None else None), None if asks else 1
    if each is None and request.ranks_per_node is None and request.ranks:
        each = request.ranks // nodes if nodes and request.ranks % nodes == 0 else None
    one_node = script.dialect.default_nodes == 1 and request.ranks in (None, 1)
    return nodes or (1 if one_node else None), each or request.ranks_per_node


def _cores(script: Script, outer: Launch, tasks: int | None, each: int | None) -> int | None:
    """Return the cores of a rank; None if the request does not determine them."""
    request = script.request
    own = outer.number("-c", "--cpus-per-task")
    if _has_more_cores(script) and not (own and outer.row.by_scheduler):
        return None
    if own is None and outer.has("-c", "--cpus-per-task"):
        return None
    task = own or request.cpus_per_rank or (1 if not script.is_pbs else None)
    if (width := cores_of_option(outer)) is not None:
        task = width
    elif not outer.row.by_scheduler:
        task = task * _tasks_of_node(request) if task else None
        tasks = 1
    if task is None or each is None or not tasks:
        return None
    return task * tasks // each if each >= tasks else None


def kind_of(script: Script, launch: Launch | None) -> str:
    """Return what starts tasks, for a sentence with their number: with an option that it ignores."""
    title = launch.title if launch else "the script"
    ignores = launch is not None and ignores_tasks_of_node(script, launch)
    return f"{title} ignores --ntasks-per-node, which is not that of the job, and" if ignores else title


def ignores_tasks_of_node(script: Script, launch: Launch) -> bool:
    """Return whether a step ignores its --ntasks-per-node: the number of tasks of the job comes first if it
    differs (measured with 22.05 and 24.11; with --nodes beside it only some versions do so)."""
    each, request = launch.number("--ntasks-per-node"), script.request
    own = launch.has("-n", "--ntasks", "-N", "--nodes", "-w", "--nodelist", "--het-group")
    if not launch.row.by_scheduler or own or each is None or not request.nodes:
        return False
    tasks = request.ranks or request.nodes * (request.ranks_per_node or each)
    return tasks != request.nodes * each


def step_of_script(script: Script) -> Launch | None:
    """Return the launcher whose tasks are the script that another one starts."""
    return script.starter.call.outer if script.starter is not None else None


def trees_of_tasks(script: Script, one: RankGroup) -> list[Node]:
    """Return the code of the text that a shell runs in each process, and of the exported functions in it."""
    return [] if one.text is None else [code(one.text), *script.functions_named(one.text.text)]


class TaskCode(NamedTuple):
    """Code that every task of a launcher runs: a text for a shell, of the processes ``group``, or the whole
    of a script that a launcher in another one starts; the nodes, and the tasks on each."""

    tree: Node
    nodes: int | None
    tasks: int | None
    group: RankGroup | None
    sets_ranks: bool  # a launcher in it gives the ranks their numbers

    @property
    def total(self) -> int:
        """Return the number of tasks that certainly run it."""
        return (self.nodes or 1) * (self.tasks or 1)


def code_of_tasks(script: Script) -> Iterator[TaskCode]:
    """Yield the code that every task of a launcher runs: in its words or in a file of the script."""
    for one in ranks(script):
        if one.outer is None or not one.outer.row.line.reaches_nodes:
            continue
        trees = trees_of_tasks(script, one)
        if one.text is None and (file := file_of_tasks(script, one.outer)) is not None:
            trees = list(filter(None, [script.written_code(file)]))
        for tree in trees:
            yield TaskCode(tree, one.nodes, one.tasks, one, one.sets_ranks)
    outer = step_of_script(script)
    if script.starter is not None and outer is not None and outer.row.line.reaches_nodes:
        sets_ranks = any(launch.row.once_a_node for launch in script.launches)
        yield TaskCode(script.tree, *size(script.starter.script, outer), None, sets_ranks)


def file_of_tasks(script: Script, launch: Launch) -> Node | None:
    """Return the word of the file that the tasks of a launcher run, behind wrappers and a shell."""
    own = launch.whole[launch.behind :]
    at, name = start_of(words := forms(script, own))
    behind = range(at + bool(name in SHELLS), len(own))
    known = (own[one] for one in behind if words[one] is not None or own[one].text[0] != "$")
    return next((one for one in known if not one.text.startswith("-")), None)


def is_work(script: Script, launch: Launch) -> bool:
    """Return whether a launcher starts more than a command that prepares or reports."""
    words = [script.constants.value(word) for word in launch.program]
    at, name = start_of(words)
    if name in ("bash", "sh"):
        texts = [word for word in launch.program[at + 1 :] if word.type in ("string", "raw_string")]
        names = {one.name for text in texts for one in commands(code(text))}
        return not names or not names <= TRIFLES
    short = is_python(name) and "-c" in words[at + 1 : at + 2]
    return name not in TRIFLES and not short and "version" not in " ".join(filter(None, words))
