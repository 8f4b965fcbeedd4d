"""The calls of launchers in a script, also by a variable that holds the launcher with its options."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from jobgen.convert.request_reader import has_directives
from jobgen.convert.result import Edit, Remark, hint, shown
from jobgen.convert.to_scheduler import mpirun_line
from jobgen.convert.to_scheduler.launch_line import LaunchLine, LaunchWords, Unreadable
from jobgen.convert.variable_names import is_exported, is_of_other_job
from jobgen.launch.launchers import MPI_FLAVOURS, MpiFlavour
from jobgen.launch.wrappers import CONTAINERS, command_start
from jobgen.schedulers.request import Request
from jobgen.script.command_kinds import PRINT, STATE, TOOLS, is_printed
from jobgen.script.commands import Command
from jobgen.script.dialects.base import Dialect
from jobgen.script.launches import looked_up
from jobgen.script.mpi_of_script import mpi_of, named_mpi, of_branch, with_own_options
from jobgen.script.script import Script
from jobgen.script.syntax import LOOPS, Node
from jobgen.script.word_lists import code_text, expanded
from jobgen.script.written_files import made

_HOSTS = {"--hostfile", "-hostfile", "-machinefile", "--machinefile", "-f", "-host", "--host", "-H", "-hosts"}
MPIRUNS = tuple(name for name in mpirun_line.NAMES if name != "aprun")
IN_CONTAINER = "is in the container: the line is unchanged"
_QUERIES = {"--version", "-version", "-V", "--help", "-h", "-help"}
_LAUNCHER = re.compile(r"(?<![\w.-])(mpi(run|exec)|orterun|aprun|srun)")
_VARIABLE = re.compile(r"\"?\$\{?(\w+)\}?\"?")
_DEFAULT = re.compile(r"\"?\$\{(\w+):?-[\"']?([^}\"']*)[\"']?\}\"?")
_OF_LAUNCHER = re.compile("RUN|MPI|LAUNCH", re.IGNORECASE)  # in the name of a variable that may hold one
# A launcher with words in a text, in a line that is no comment.
_TEXT = r"(?m)^(?!\s*#)(?:.*?[\s;&|(=/'\"])?({}mpirun|mpiexec(?:\.hydra)?|orterun)[ \t]+[-$.\w/{{].*"
_IN_TEXT, _START = re.compile(_TEXT.format("")), re.compile(_TEXT.format("srun|"))
_TEXTS = ("string", "raw_string", "heredoc_body")
_HOST_OPTION = re.compile(rf"\s({'|'.join(_HOSTS)})[ =]")
# Options for a list of hosts that other programs have, too.
_LISTS = {"--hostfile", "-hostfile", "-machinefile", "--machinefile", "--machine-file", "--hosts"}
_PLACES = {"--map-by", "-map-by", "--rankfile", "-rf", "--bynode", "-bynode"}


class Call(NamedTuple):
    """A call: the word of the launcher in the script, its name, the words before it, and those behind it."""

    command: Command
    word: Node
    name: str
    before: tuple[Node, ...]
    words: tuple[Node, ...]

    @property
    def start(self) -> int:
        return self.word.start

    @property
    def names(self) -> set[str]:
        return {word.text.partition("=")[0] for word in self.words}

    @property
    def what(self) -> str:
        """Return the beginning of the command, for a remark."""
        return shown(self.command.node)

    def hint(self, why: str, what: str = "") -> Remark:
        """Return a remark on the command, or on a part of it, that is translated."""
        return hint(self.command.line, what or self.what, why)


def is_contained(call: Call, script: Script) -> bool:
    """Return whether a container is around a launcher."""
    return any(os.path.basename(script.constants.value(word) or "") in CONTAINERS for word in call.before)


def calls(script: Script, names: Collection[str]) -> Iterator[Call]:
    """Yield the calls of a launcher, which may follow env, timeout and the like."""
    return (call for call in _all(script) if call.name in names)


def _all(script: Script) -> Iterator[Call]:
    """Yield all commands with a known name, except queries: ``command -v mpirun``, ``mpirun --version``."""
    for command in script.commands:
        query = command.name == "command" and command.literals[:1] in (["-v"], ["-V"])
        if query or command.name in script.functions:
            continue
        at = command_start([script.constants.value(word) for word in command.words])
        options = {word.text for word in command.words[at + 1 :]}
        if at >= len(command.words) or (options and options <= _QUERIES):
            continue
        word = command.words[at]
        first, *more = expanded(word, script.constants) or [word]
        found = script.constants.value(first) or looked_up(first, script.constants)
        if name := os.path.basename(found) or _other_in_variable(first):
            yield Call(command, word, name, command.words[:at], (*more, *command.words[at + 1 :]))


def _other_in_variable(word: Node) -> str:
    """Return the name of a launcher that stays unchanged, and whose folder is in a variable."""
    name = word.text.strip("'\"").rpartition("/")[2]
    return name if name not in mpirun_line.NAMES and mpirun_line.OTHERS.fullmatch(name) else ""


def beside_others(script: Script, names: Collection[str]) -> set[int]:
    """Return the starts of the calls of a launcher that may run at the same time as another one."""
    found, running = set[int](), list[Call]()
    waits = [one for one in script.named("wait") if not one.node.under("if_statement")]
    for call in calls(script, names):
        for wait in waits:
            if running and running[-1].start < wait.node.start < call.start:
                running = running[:0] if len(wait.arguments) in (0, len(running)) else running
        loop = _loop_in_background(call.command.node)
        again = loop is not None and not any(call.start < one.node.start < loop.end for one in waits)
        again |= any(_starts_beside(script, one, call.command) for one in call.command.node.above())
        others = [one for one in running if not _in_other_branch(one.command.node, call.command.node)]
        found |= {one.start for one in (call, *others)} if others or again else set()
        running += [call] * call.command.background
    return found


def _in_other_branch(one: Node, other: Node) -> bool:
    """Return whether two commands are in different branches of one ``if`` or ``case``."""
    choices = (above for above in one.above() if above.type in ("if_statement", "case_statement"))
    choice = next((above for above in choices if above.start <= other.start < above.end), None)
    return choice is not None and _branch_of(one, choice) != _branch_of(other, choice)


def _branch_of(node: Node, choice: Node) -> int:
    """Return where the branch of a choice begins that a node is in; 0 in the first of an ``if``."""
    found = (above for above in node.above() if above.parent is choice)
    return next((one.start for one in found if one.type in ("elif_clause", "else_clause", "case_item")), 0)


def _starts_beside(script: Script, node: Node, command: Command) -> bool:
    """Return whether a node is a function whose calls may run beside each other."""
    if node.type != "function_definition":
        return False
    calls = list(script.named(node.name))
    if node.name in script.exported_functions or any(one.background for one in calls):
        return True
    loops = [loop.end for one in calls for loop in one.node.above() if loop.type in LOOPS]
    places = sorted([*(one.node.start for one in calls), *loops])
    waits = [one.node.start for one in script.named("wait")]
    spans = [(command.node.start, node.end), (places[0], places[-1])] if places[1:] else []
    waited = any(start < one < end for one in waits for start, end in spans)
    return command.background and bool(spans) and not waited


def _loop_in_background(node: Node) -> Node | None:
    """Return the loop that starts a command, or a group around it, in the background in each turn."""
    background = False
    for one in (node, *node.above()):
        if background and one.type in LOOPS:
            return one
        background |= (after := one.next()) is not None and after.type == "&"
    return None


def unused(script: Script, done: Collection[Call]) -> Iterator[Edit]:
    """Yield edits that empty the variables with a launcher which nothing reads any more, but no folders."""
    words = {id(node) for one in done for node in one.word.all()}
    names = {node.text for one in done for node in one.word.all("variable_name")}
    names -= {name for name, use in script.expansions if id(use) not in words}
    for name, value, node in script.assignments:
        if name in names and value is not node and _LAUNCHER.search(value.text):
            yield Edit(value.start, value.end, "")


def completed(
    script: Script, target: Dialect, exports: Callable[[Call, MpiFlavour], list[str]]
) -> Iterator[Edit | Remark]:
    """Add to an mpirun what it gets from Slurm: the hosts, the environment, and the number of ranks."""
    short = {0: list[Remark]()}  # by the number of cores
    for call in calls(script, MPIRUNS):
        if is_contained(call, script):
            yield call.hint(IN_CONTAINER)
            continue
        line, fault = LaunchLine(), ""
        try:
            mpirun_line.read(LaunchWords(call.words, script, {}), stays=True, line=line)
        except Unreadable as error:
            fault = str(error)
        start = call.command.node.start
        if fault and any(one.source is not call.word.source or one.start < start for one in call.words):
            yield Remark(call.command.line, call.what, f"{fault}: the line is unchanged")
            continue
        given = call.names if fault else {*line.marks}
        key = mpi_of(script, given, call.start, target.name)
        mpi = MPI_FLAVOURS[key]
        yield from (call.hint(why, call.name) for why in other_options(script, key))
        yield from old_hosts(call, line, script)
        passed = exports(call, mpi)
        counted = [] if fault else _ranks(line, given, script, target, mpi)
        by_lines = not given & mpirun_line.OF_NODE and "-ppn" not in " ".join(counted)
        hosts = f'{mpirun_line.hosts_option(mpi, by_lines)} "${target.variable("node_file")}"'
        new = [hosts] * (not given & _HOSTS) + passed if script.request.nodes != 1 else []
        if fault:
            yield call.hint(f"{fault.replace(' has no counterpart', ' is unchanged')}: look at its ranks")
        else:
            if not counted and (why := _of_slots(line, given, script, target)):
                yield call.hint(f"no number of ranks is given: {why}")
            new += counted
        if not fault or "ranks" in line.numbers:
            short[_cores(line, script.request)[0]] = list(shortage(call, line, script))
        if passed and named_mpi(script, given) is None:
            why = f"no module or variable names the MPI: the options are for {mpi.title}"
            yield call.hint(why, call.name)
        yield Edit(call.word.end, call.word.end, "".join(f" {one}" for one in new))
    yield from short[max(short)]


def old_hosts(call: Call, line: LaunchLine, script: Script) -> Iterator[Remark]:
    """Yield a remark on nodes that a launcher names itself, or in a file that the script does not write."""
    names = line.values.get("named", line.values.get("hosts", "")).strip("\"'")
    if not re.fullmatch(r"(?!localhost\b|127\.)[^$`()*?]+", names):
        return
    if call.name not in MPIRUNS or "named" in line.values:
        yield call.hint("names nodes of the old cluster: write those of the new job", names)
    elif os.path.basename(names) not in map(os.path.basename, made(script)):
        yield call.hint("is not written by the script: it may name nodes of the old cluster", names)


def other_options(script: Script, key: str) -> Iterator[str]:
    """Yield the reasons why the MPI of a script may not have the options of a kind of MPI."""
    mpi = MPI_FLAVOURS[key].title
    if title := with_own_options(script, key):
        yield f"the mpirun of {title} has other options than that of {mpi}"
    if module := of_branch(script, key):
        yield f"the options are for {mpi}: with the module {module} it needs others"


def without_hosts(script: Script, target: Dialect, known: Collection[int]) -> Iterator[Remark]:
    """Yield a remark on each mpirun that gets the hosts of the job from Slurm, as a command of a job file.

    ``known`` are the offsets of the commands for which jobgen has its own.
    """
    if script.dialect.node_step is None or not script.request.several:
        return
    for call in calls(script, MPIRUNS):
        given = call.names
        if call.command.node.start not in known and not given & _HOSTS and not is_contained(call, script):
            mpi = MPI_FLAVOURS[mpi_of(script, given, call.start, target.name)]
            hosts = f'{mpirun_line.hosts_option(mpi, True)} "${target.variable("node_file")}"'
            why = f"gets the hosts from {script.dialect.title}: without the library of {target.title} "
            yield call.hint(f"{why}add {hosts}")


def shortage(call: Call, line: LaunchLine, script: Script) -> Iterator[Remark]:
    """Yield a remark if the ranks need more cores than the job requests, which whole nodes may have."""
    request = script.request
    if request.exclusive or request.unequal or not has_directives(script):
        return
    needed, cores = _cores(line, request)
    if "overcommit" in line.values:  # ranks share cores, but each has those to which it is bound
        needed, cores = line.numbers.get("pe", 0), -(-cores // (request.nodes or 1))
        line = LaunchLine()
    end = "of the request: on whole nodes request all of them"
    if needed > cores:
        yield call.hint(f"needs {needed} cores, more than the {cores} {end}")
    elif mpirun_line.NODES.fullmatch(line.values.get("ranks", "")):  # one on each
        return
    elif line.values.keys() & {"ranks", "each"} - line.numbers.keys() and cores == (request.nodes or 1):
        yield call.hint(f"has ranks that are counted when the job runs, and a node has 1 core {end}")


def _cores(line: LaunchLine, request: Request) -> tuple[int, int]:
    """Return the number of cores that the ranks need, and that of those that the job requests: of a node if
    only there they are too many."""
    nodes = request.nodes or 1
    ranks = line.numbers.get("ranks") or nodes * line.numbers.get("each", 1)
    cores = (request.ranks or nodes * (request.ranks_per_node or 1)) * (request.cpus_per_rank or 1)
    of_rank = line.numbers.get("cpus") or line.numbers.get("pe") or line.numbers.get("cores", 1)
    of_node = line.numbers.get("each", 0) * of_rank
    alone = ranks * of_rank <= cores and of_node > -(-cores // nodes)
    return (of_node, -(-cores // nodes)) if alone else (ranks * of_rank, cores)


def _ranks(
    line: LaunchLine, given: Collection[str], script: Script, target: Dialect, mpi: MpiFlavour
) -> list[str]:
    """Return the options for the ranks that Slurm counts, or that the lines of the node file do not."""
    request, counted = script.request, script.dialect.origin(script.heeded, "ranks")
    if ":" in given or "each" in line.values or not (request.submitted or (counted and request.ranks)):
        return []
    found = [] if "ranks" in line.values or request.submitted else [f"-n {request.ranks}"]
    each, placed = request.ranks_per_node, _PLACES.intersection(given)
    several = request.several or request.submitted
    by_core = target.scheduler.behaviour.hosts_by_core and (request.cpus_per_rank or 1) > 1
    if mpirun_line.is_of_lone_ranks(request, target):
        several, each = True, 1
    if by_core and several and each and not placed:
        found.append(f"-ppn {each}" if mpi.passes_all else f"--map-by ppr:{each}:node")
    return found


def _of_slots(line: LaunchLine, given: Collection[str], script: Script, target: Dialect) -> str:
    """Return how many ranks an mpirun without their number starts, if the slots of Slurm are others: the one
    of a job on one node that counts no ranks, or the cores of whole nodes."""
    request, source = script.request, script.dialect
    named = {"ranks", "each"} & set(line.values) or _HOSTS.intersection(given) or ":" in given
    known = line.program is not None and script.constants.value(line.program) is not None
    if named or not known or request.submitted or (request.ranks_per_node or 1) > 1:
        return ""
    if not (request.several or request.exclusive or (request.ranks or 1) > 1):
        return "without the slots of Slurm it may start one on each core"
    sizes = ("ranks", "ranks_per_node") if request.exclusive else ("ranks", "ranks_per_node", "cpus", "gpus")
    if target.scheduler.behaviour.hosts_by_core or any(source.origin(script.heeded, one) for one in sizes):
        return ""
    why = f"on whole nodes {source.title} has a slot for each core, {target.title} for each of mpiprocs"
    return f"{why}: request these with the cores"


def unknown(script: Script, target: Dialect, names: Collection[str]) -> Iterator[Remark]:
    """Yield a remark on each launcher that stays unchanged; ``names`` are those of the others."""
    yield from of_others(script, target, mpirun_line.NAMES if target.node_step else MPIRUNS)
    read = {call.command.node.start for call in calls(script, names)}
    for command in script.commands:
        word = command.node.get("name")
        if word is None or not command.arguments or script.constants.value(word) is not None:
            continue
        if command.node.start in read:  # it is translated, or has a remark of its own
            continue
        match = _VARIABLE.fullmatch(word.text) or _DEFAULT.fullmatch(word.text)
        if match is None:
            continue
        found = (_first_launcher(one, names) for one in (word, *script.values.get(match[1], ())))
        launchers = list(filter(None, found))
        if launchers:
            why = f"may be {' or '.join(dict.fromkeys(launchers))}: the line is unchanged"
            yield Remark(command.line, match[0], why)
        elif match[1] not in script.values and _OF_LAUNCHER.search(match[1]):
            why = f"comes from the environment: if it starts ranks, {target.title} needs another value"
            yield hint(command.line, match[0], why)


def of_others(
    script: Script, target: Dialect, names: Collection[str], known: Collection[int] = ()
) -> Iterator[Remark]:
    """Yield a remark on each launcher but these, and those at the offsets ``known``."""
    for call in other_launchers(script, names):
        why = f"is unchanged: how {call.name} starts ranks under {target.title} is not known"
        if call.command.node.start not in known:
            yield Remark(call.command.line, call.what, why)


def on_hosts(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on each program, other than a launcher, that gets a list of hosts."""
    launchers = (call.command for call in _all(script) if _is_launcher(call.name, MPIRUNS))
    known = {one.node.start for one in (*launchers, *(launch.command for launch in script.launches))}
    for command in script.commands:
        options = {word.text.partition("=")[0] for word in command.arguments}
        other = command.node.start in known or command.name in {*TOOLS, *STATE, *script.functions}
        if not other and not options.isdisjoint(_LISTS):
            why = f"starts processes on these hosts itself: how it does so under {target.title} is not known"
            yield hint(command.line, shown(command.node), why)


def in_texts(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on each mpirun in a text that another command runs, in a file that the script writes, or
    in the environment of a program.

    On several nodes it stays without their hosts.
    """
    done = [*calls(script, MPIRUNS), *other_launchers(script, MPIRUNS)]
    own = {node.text for one in done for node in one.word.all("variable_name")}
    own |= {match[1] for one in script.commands if (match := _VARIABLE.fullmatch(one.node.name))}
    ranges = [(one.command.node.start, one.command.node.end) for one in done]
    for node in script.tree.all(*_TEXTS):
        inside = any(start <= node.start < end or node.start <= start < node.end for start, end in ranges)
        found = None if inside or _is_text(node) else _IN_TEXT.search(node.text)
        name = next((name for name, one, _ in script.assignments if one.start <= node.start < one.end), None)
        if found is None or name in own or _HOST_OPTION.search(found[0]):
            continue
        uses = [one for read, one in script.expansions if read == name]
        if name is None or is_exported(script, name) or not all(is_printed(one) for one in uses):
            line = node.line + node.text[: found.start(1)].count("\n")
            why = "stays in this text: on several nodes it needs the hosts in "
            yield hint(line, found[1], f"{why}${target.variable('node_file')}")
    for name, value, node in script.assignments:
        alone = os.path.basename(code_text(value)) in MPIRUNS and name not in own
        if alone and is_exported(script, name):
            why = "is for programs: on several nodes it needs the hosts in "
            yield hint(node.line, node.text, f"{why}${target.variable('node_file')}")


def in_words(script: Script) -> bool:
    """Return whether a launcher is in a text, or in the words of a call of a function or ``eval``."""
    names = {*MPIRUNS, "srun"}
    words = (word for one in script.commands if one.name not in PRINT for word in one.arguments[:-1])
    texts = (one for one in script.tree.all(*_TEXTS) if not _is_text(one))
    return any(one.text in names for one in words) or any(_START.search(one.text) for one in texts)


def _is_text(node: Node) -> bool:
    """Return whether a text is printed or searched for, or is a script with directives of its own."""
    if node.type != "heredoc_body":
        searched = (command := node.around("command")) is not None and command.name in TOOLS - PRINT
        return searched or is_printed(node) or is_of_other_job(node)
    statement = node.around("redirected_statement")
    if re.search(r"(?m)^\s*#(SBATCH|PBS) ", node.text) or statement is None:
        return True
    goes_on = any(statement.all("file_redirect", "pipeline")) or statement.under("pipeline")
    return not goes_on and re.match(r"(cat|echo)\b", statement.text) is not None


def _first_launcher(value: Node, names: Collection[str]) -> str:
    """Return the name of the launcher that a value of a variable begins with; empty without one."""
    text = code_text(value)
    text = match[2] if (match := _DEFAULT.fullmatch(text)) else text
    name = os.path.basename((text.split() or [""])[0])
    return name if _is_launcher(name, names) else ""


def _is_launcher(name: str, names: Collection[str]) -> bool:
    return name in names or mpirun_line.OTHERS.fullmatch(name) is not None


def other_launchers(script: Script, known: Collection[str]) -> Iterator[Call]:
    """Yield the calls of launchers that are none of the known ones."""
    return (one for one in _all(script) if one.name not in known and mpirun_line.OTHERS.fullmatch(one.name))
