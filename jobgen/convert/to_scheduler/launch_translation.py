"""Translation of srun to mpirun and of mpirun to srun, option by option."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from jobgen.convert import aprun, differences, misreadings
from jobgen.convert.result import Edit, Remark, hint
from jobgen.convert.to_scheduler import aprun_line, launch_calls, mpirun_line, srun_line, variables
from jobgen.convert.to_scheduler.launch_calls import Call, other_options
from jobgen.convert.to_scheduler.launch_line import LaunchLine, LaunchWords, OfContainer, Unreadable
from jobgen.convert.variable_names import binds_threads, inner_names, is_exported, names_own_job
from jobgen.launch.command_line import is_python
from jobgen.launch.launchers import BINDS_NONE, LAUNCHERS, MPI_FLAVOURS, SRUN_VARIABLES, MpiFlavour
from jobgen.launch.wrappers import command_start
from jobgen.script import mpi_of_script
from jobgen.script.changed_variables import changed_variables
from jobgen.script.command_kinds import TOOLS
from jobgen.script.dialects.base import Dialect
from jobgen.script.loop_input import reads_list
from jobgen.script.mpi_of_script import mpi_of, named_mpi, plugin_of
from jobgen.script.script import Script
from jobgen.script.syntax import LOOPS, Node, assignments
from jobgen.script.written_files import written
from jobgen.values.parsers import number

_ARITHMETIC = re.compile(r"\(\((.*?)\)\)|\b(?:expr|let)\b([^`)\n]*)|\becho\b([^|\n]*)\| *bc\b")
_COMMAND = r"\$\((?!\()[^()]*\)?|`[^`]*`"
_SRUN = LAUNCHERS["srun"].names
_SHELLS = ("function_definition", "subshell", "command_substitution")  # whose variables others do not have
_INHERITED = {"numactl", "taskset", "nice", "ionice", "chrt"}  # whose effect the processes of a command have


def launches(script: Script, target: Dialect) -> Iterator[Edit | Remark]:
    """Yield the edits of all launchers that the other scheduler does not have."""
    steps = {script.dialect.node_step, target.node_step}
    if len(steps) == 1 or not steps <= {None, *_SRUN}:
        return
    old = mpirun_line.NAMES if script.dialect.node_step is None else _SRUN
    done, general = list[Call](), set[str]()
    beside = launch_calls.beside_others(script, launch_calls.MPIRUNS if old is mpirun_line.NAMES else old)
    by_cray = launch_calls.beside_others(script, (aprun.NAME,)) if old is mpirun_line.NAMES else set[int]()
    for call in launch_calls.calls(script, old):
        found = list(_replaced(call, general, script, target, call.start in beside))
        found += _beside_on_cray(call, found) if call.start in by_cray and script.request.nodes != 1 else []
        yield from found
        done += [call] if any(isinstance(one, Edit) for one in found) else []
    yield from launch_calls.unused(script, done)
    completed: list[Edit | Remark] = []
    if target.node_step is None:
        completed += launch_calls.completed(script, target, lambda call, mpi: _exports(script, call, mpi))
    starts = [one.start for one in completed if isinstance(one, Edit)]
    for command in script.commands:
        name = command.node.name
        if command.name or not name or any(one.start == command.node.start for one in done):
            continue
        counted = {"-n", "-np"}.intersection(command.literals) and "/mpi" in name
        if counted and old is _SRUN and script.request.nodes == 1:
            continue
        if any(command.node.start <= start < command.node.end for start in starts):
            continue
        if re.search(r"\$.*/(mpi(run|exec)|aprun|srun)\b", name):
            yield Remark(command.line, name, "its path is in a variable: the line is unchanged")
    if target.node_step is None:
        yield from completed
    if target.node_step is None and script.request.nodes != 1:
        yield from launch_calls.in_texts(script, target)
        yield from launch_calls.on_hosts(script, target)
    yield from launch_calls.unknown(script, target, (*_SRUN, *mpirun_line.NAMES))


def _replaced(
    call: Call, general: set[str], script: Script, target: Dialect, beside: bool
) -> Iterator[Edit | Remark]:
    """Yield the edit of a call, which may run ``beside`` others, and its remarks but those in ``general``."""
    source, to_srun = script.dialect, script.dialect.node_step is None
    if launch_calls.is_contained(call, script):  # without srun in the new job it is lost
        yield Remark(call.command.line, call.what, launch_calls.IN_CONTAINER, not to_srun)
        return
    names = variables.names(script.request, source, target, mpi_of(script, target=target.name))
    names |= dict.fromkeys(source.zeros - target.zeros, "0")
    others = {name: new for name, new in names.items() if name not in script.values}
    words = LaunchWords(call.words, script, others, call.name == "mpirun_rsh")
    try:
        if ":" in call.command.literals:
            raise Unreadable("several programs have no counterpart")
        if to_srun:
            line = (aprun_line if call.name == "aprun" else mpirun_line).read(words)
        else:
            line = srun_line.read(words, script.request)
        if line.program is None:
            raise Unreadable("it has no program")
        if line.program.start >= call.command.node.end > call.start:
            raise Unreadable("a redirection is before the program")
        known = script.request.nodes is not None or source.scheduler.keys.nodes not in script.heeded
        if not (to_srun or known or {"nodes", "ranks", "hosts"} & line.values.keys()):
            raise Unreadable("the number of nodes is not known")
        late: list[Remark] = []
        alone = not to_srun and _alone(line, call, script, target)
        if to_srun:
            line.values |= {"overlap": ""} if beside else {}
            line.values |= _of_own_hosts(line, script) | _unbound(line, call, script)
            line.values |= _of_run_time(line, call, script)
            plugin = plugin_of(script, mpi_of(script, line.marks, call.start), call.start)
            text = srun_line.write(line, script.request, plugin)
        else:
            mpi = MPI_FLAVOURS[mpi_of(script, at=call.start, target=target.name)]
            if "unbuffered" in line.values and (alone or mpi.passes_all):
                late += _without_terminal(call, line, script)
        if alone:
            text = " ".join(["env", *line.exports] if line.exports else [])
        elif not to_srun:
            line.values |= _threads(line, script)
            text = mpirun_line.write(line, script.request, target, mpi, _exports(script, call, mpi))
            late += _split_otherwise(call, script) if f"$({mpirun_line.EXPORTS})" in text else []
    except Unreadable as error:
        boxed = isinstance(error, OfContainer)
        yield Remark(call.command.line, call.what, f"{error}: the line is unchanged", of_program=boxed)
        return
    yield from _remarks(call, line, script, target)
    if beside and not to_srun:
        yield from _beside_steps(call, line, script)
    of_all = (_of_alone if alone else _of_all)(call, line, script, target)
    hosts = list(_hosts(call, line) if to_srun else launch_calls.old_hosts(call, line, script))
    for remark in (*hosts, *of_all, *late, *_environment(call, line, script, to_srun)):
        key = f"{remark.what} {remark.why}" if remark in hosts else remark.why
        if key not in general:
            general.add(key)
            yield remark
    files = srun_line.redirections(line)
    yield Edit(call.start, line.program.start, "".join(f"{one} " for one in (text, files) if one))


def _split_otherwise(call: Call, script: Script) -> Iterator[Remark]:
    """Yield a remark on the last IFS of the shell before a call, if the new command needs another one."""
    found = [(node, value) for name, value, node in script.assignments if name == "IFS"]
    own = [(node, value) for node, value in found if node.start < call.start and not node.child_of("command")]
    resets = [one.start for one in script.tree.all("unset_command") if "IFS" in one.text]
    for node, value in own[-1:]:
        kept = re.search(r"\$[{\w]|^\$' \\t\\n'$", value.text)  # that of before, or the default
        if not (kept or any(node.start < one < call.start for one in resets) or node.under(*_SHELLS)):
            why = f"does not split the words of $({mpirun_line.EXPORTS}): unset it before the launcher"
            yield hint(node.line, node.text, why)


def _beside_on_cray(call: Call, found: Sequence[Edit | Remark]) -> Iterator[Remark]:
    """Yield a remark on an aprun beside others, which gets nodes of its own, if its srun takes all nodes."""
    text = "".join(one.text for one in found if isinstance(one, Edit))
    if text and not re.search(r"--nodes=|--ntasks=1 ", text):
        why = f"runs beside others, each on its own nodes: {srun_line.NAME} waits until all nodes are free, "
        why += "unless you write --nodes, or --exact and --mem"
        yield call.hint(why, call.name)


def _of_own_hosts(line: LaunchLine, script: Script) -> dict[str, str]:
    """Return how a file of hosts that the script makes places the ranks: in turn, or unknown."""
    file = _plain(line.values.get("hosts", ""))
    names = re.findall(r"\$(\w+)", file)
    texts = [file, *(one.text for name in names for one in script.values.get(name, ()))]
    if not file or any(str(script.dialect.variable("node_file")) in one for one in texts):
        return {}
    made = [node for node, _, name in written(script) if _plain(name) == file]
    commands = [one.text for node in made for one in node.above() if one.type == "redirected_statement"]
    each_once = any(re.search(r"\buniq\b|\bsort +-u", one) for one in commands)
    each_once &= not any(re.search(r"\b(for|while|repeat|seq)\b", one) for one in commands)
    return {"cyclic": ""} if each_once else {"own_hosts": ""}


def _of_run_time(line: LaunchLine, call: Call, script: Script) -> dict[str, str]:
    """Return that the ranks may be fewer than the slots of the job: their number is another one in each turn
    of a loop, or the script does not count it by the hosts of the job, or computes a part of it."""
    if not (text := line.values.get("ranks", "")) or "ranks" in line.numbers:
        return {}
    loops = [one for one in call.command.node.above() if one.type in LOOPS]
    names = {name for one in loops for name in changed_variables(one)}
    names |= {name for one in loops for name, _, _ in assignments(one)}
    texts, used = [text], dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text))
    for one in (found := list(used)):
        values = [node.text for node in script.values.get(one, ())]
        texts += values
        new = [name for value in values for name in re.findall(r"\$\{?(\w+)|\b([A-Z]\w*)", value)]
        found += [name for pair in new for name in pair if name and name not in found]
    of_job = any(one.startswith(f"{script.dialect.variable_prefix}N") for one in found)
    parts = re.sub(_COMMAND, "", " ".join("".join(one) for one in _ARITHMETIC.findall("\n".join(texts))))
    selected = re.search(r"\*\s*\d|\bsort\b|\buniq\b|\bawk\b", "\n".join(texts))
    part_of_job = re.search(r"[-/]", parts) or ("each" not in line.values and selected)
    return {} if of_job and not part_of_job and not names & used.keys() else {"varies": ""}


def _threads(line: LaunchLine, script: Script) -> dict[str, str]:
    """Return the variable by which threads are bound to the cores of their rank, to which srun binds it."""
    request = script.request
    unknown = request.exclusive and request.cpus_per_rank is None and "cores" not in line.numbers
    name = "" if unknown or "bind" in line.values else binds_threads(script)
    return {"threads": name} if name else {}


def _unbound(line: LaunchLine, call: Call, script: Script) -> dict[str, str]:
    """Return that the ranks are not bound, if a variable and no option of their launcher says so."""
    before = (one for one in script.assignments if one[2].start < call.start)
    found = [f"{name}={script.constants.value(value)}" for name, value, _ in before]
    off = any(re.fullmatch(BINDS_NONE, one) for one in [*found, *line.exports])
    return {"bind": "none"} if off and "bind" not in line.values else {}


def _plain(text: str) -> str:
    return re.sub(r"\$\{(\w+)\}", r"$\1", text.strip("\"'"))


def _alone(line: LaunchLine, call: Call, script: Script, target: Dialect) -> bool:
    """Return whether srun starts one rank here, which needs no MPI: then the script starts it itself.

    Where other calls start several ranks, all find the variables of one launcher, except programs that are
    known to read none.
    """
    names = variables.rank_names(script.dialect, target, mpi_of(script, target=target.name))
    own = {"hosts", "chdir", "label"} & set(line.values) or line.marks or inner_names(script).keys() & names
    if own or _ranks(call, script) != "1":
        return False
    name = _program_name(call, line, script)
    if (
        name in TOOLS
        or name in launch_calls.MPIRUNS
        or (is_python(name) and not mpi_of_script.names_mpi_of_python(script))
    ):
        return True
    others = any(mpirun_line.OTHERS.fullmatch(command.name) for command in script.commands)
    several = any(_ranks(one, script) != "1" for one in launch_calls.calls(script, _SRUN))
    return not (several or others) and named_mpi(script) is None


def _without_terminal(call: Call, line: LaunchLine, script: Script) -> Iterator[Remark]:
    """Keep the output of Python unbuffered, to which ``srun -u`` gives a terminal, as Open MPI does; yield a
    remark on that of other programs."""
    name = _program_name(call, line, script)
    words = [word.text for word in _program(call, line)]
    if "PYTHONUNBUFFERED" in script.values or name in TOOLS or re.search(r"(?<!\S)-u(?!\S)", " ".join(words)):
        return
    if is_python(name):
        line.exports.append("PYTHONUNBUFFERED=1")
    else:
        yield call.hint(f"{differences.NO_TERMINAL}, or PYTHONUNBUFFERED=1 for Python", "--unbuffered")


def _program(call: Call, line: LaunchLine) -> list[Node]:
    return [word for word in call.words if line.program and word.start >= line.program.start]


def _program_name(call: Call, line: LaunchLine, script: Script) -> str:
    """Return the name of the program of a call, behind env and the like."""
    texts = [os.path.basename(script.constants.value(word) or "") for word in _program(call, line)]
    return texts[command_start(texts)] if command_start(texts) < len(texts) else ""


def _ranks(call: Call, script: Script) -> str | None:
    """Return the number of ranks that srun starts; None if it is not known."""
    try:
        line = srun_line.read(LaunchWords(call.words, script, {}), script.request)
    except Unreadable:
        return None
    return mpirun_line.ranks_of(line, script.request)


def _of_alone(call: Call, line: LaunchLine, script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on the variables of a rank that the script itself starts, which sets none, or on the
    hosts of an mpirun, or on the input of a loop, which srun and mpirun read."""
    name = _program_name(call, line, script)
    if name not in launch_calls.MPIRUNS and "input" not in line.values and _takes_lines(call):
        why = "reads the input of the loop, which ends after its first turn: the new command leaves it"
        yield call.hint(why, call.name)
    if name in launch_calls.MPIRUNS:
        if script.request.nodes != 1:
            yield call.hint(f"on several nodes it needs the hosts in ${target.variable('node_file')}", name)
    elif name not in TOOLS:
        old = next(iter(variables.rank_names(script.dialect, target, mpi_of(script, target=target.name))))
        why = "is not set for a program that the script starts itself: a program that reads it finds none"
        yield call.hint(why, old)


def _of_all(call: Call, line: LaunchLine, script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield remarks that hold for all launches: on the MPI, and on the variables of a rank."""
    key = mpi_of(script, line.marks, call.start, target.name)
    mpi, to_srun = MPI_FLAVOURS[key], script.dialect.node_step is None
    several = mpirun_line.ranks_of(line, script.request) != "1"
    program, plugin = _program_name(call, line, script), plugin_of(script, key, call.start)
    if to_srun and mpi.srun == "pmix" and (old := mpi_of_script.first_open_mpi(script, call.start)):
        why = "has no PMIx: --mpi=pmi2 requires one with the PMI of Slurm, else keep mpirun"
        yield call.hint(why, old)
    elif to_srun and mpi.pmi_library and several and mpi.pmi_library not in script.tree.text:
        why = f"finds the other ranks by {mpi.pmi_library}, the path of Slurm's libpmi2.so, or libpmi.so "
        why += "before version 2017, which modules often set: without it each rank is alone"
        yield call.hint(why, mpi.title)
    elif to_srun and plugin == "none":
        why = "MpiDefault of the cluster must fit the MPI of the program: srun --mpi=list shows the others"
        yield call.hint(why, call.name)
    elif named_mpi(script, () if to_srun and plugin == "pmi2" else line.marks, target=target.name) is None:
        what = f"--mpi={plugin} is" if to_srun else "the options are"
        why = f"no module or variable names the MPI: {what} for {mpi.title}"
        yield call.hint(why, call.name)
    yield from (call.hint(why, call.name) for why in other_options(script, key) if not to_srun)
    if not to_srun and (module := mpi_of_script.late_module(script, call.start)):
        why = f"is above the line that loads {module}, which may bring {mpi.command}: load it before"
        yield call.hint(why)
    if "overlap" in line.values:
        why = "runs beside other launchers: with --overlap they share cores, memory and GPUs, as on PBS; "
        why += "to divide them, write --exact, --mem and --gpus instead"
        yield call.hint(why, call.name)
    if not several and program in TOOLS:
        return
    if several and not to_srun:
        refused = line.values.get("kill") == "0"
        if refused or ("kill" not in line.values and not mpi_of_script.end_together(script, program)):
            why = f"{mpi.command} ends all ranks if one fails; {srun_line.NAME} without -K lets the others "
            yield call.hint(f"{why}go on", call.name)
        yield from differences.functions(script, mpi, call.command.line, call.command.node.text)
    if not to_srun and program in launch_calls.MPIRUNS:
        yield call.hint(
            f"starts {program} in {mpi.command}: that of {MPI_FLAVOURS['openmpi'].title} refuses it"
        )
    if program in TOOLS - {"env"}:
        return
    names = variables.rank_names(script.dialect, target, key)
    own = [next(iter(names))]
    if to_srun:
        kept = SRUN_VARIABLES.get(plugin, ())
        own = [mpi.ranks.rank[1:], mpi.ranks.local_rank[1:], *mpi.more_ranks]
        own = [name for name in own if not name.endswith("_SIZE") and name not in kept]
    why = f"programs that read {'them' if to_srun else 'it'} find {names[own[0]]}, and so on"
    yield hint(call.command.line, ", ".join(own), why)


def _hosts(call: Call, line: LaunchLine) -> Iterator[Remark]:
    """Yield a remark on a file of hosts, which srun does not read.

    Without a number of ranks mpirun starts one for each of its lines.
    """
    if file := line.values.get("hosts"):
        why = f"{srun_line.NAME} uses the hosts of the job"
        if not {"ranks", "each"} & line.values.keys() and "PBS_NODEFILE" not in file:
            why += ", and starts its tasks, not a rank for each line of the file"
        yield call.hint(why, file)


def _environment(call: Call, line: LaunchLine, script: Script, to_srun: bool) -> Iterator[Remark]:
    """Yield a remark on variables that a directive keeps from the ranks of srun."""
    if not to_srun and "export" not in line.values and (value := misreadings.narrow_export(script)):
        yield call.hint(misreadings.WHOLE_ENVIRONMENT.format(value), call.name)


def _variables_of_job(call: Call, script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on each variable of the job that ``-x`` passes on, and that the other one has not."""
    known = {*target.environment, *script.values, *(name for name, _ in script.expansions)}
    for name in re.findall(r"\s-x[= ](\w+)(?=\s)", call.command.node.text):
        if name in script.dialect.environment and name not in known:
            yield call.hint(f"is not set by {target.title}, so that the ranks do not get it", f"-x {name}")


def _remarks(call: Call, line: LaunchLine, script: Script, target: Dialect) -> Iterator[Remark]:
    number, to_srun = call.command.line, target.node_step is not None
    for name in _INHERITED.intersection(script.constants.value(word) or "" for word in call.before):
        why = "holds for the ranks that mpirun starts on its node, too, but for none of srun"
        yield call.hint(f"{why}: write it before the program" if to_srun else why, name)
    if to_srun:
        if line.program is not None and line.program.text in ("omplace", "dplace"):
            why = f"places the ranks of HPE MPT: {srun_line.NAME} binds them itself"
            yield hint(number, line.program.text, why)
        if srun_line.fills_unknown_nodes(line, script.request):
            each = line.values["each"]
            yield call.hint(f"fills nodes with {each} ranks each, and the job requests one node: add --nodes")
        if srun_line.fills_whole_nodes(line, script.request):
            why = f"fills one node after the other, {srun_line.NAME} uses all: add --nodes with their number"
            yield call.hint(why)
        yield from _more_threads(call, line, script)
        yield from _variables_of_job(call, script, target)
    yield from launch_calls.shortage(call, line, script)
    several = mpirun_line.ranks_of(line, script.request) != "1"
    mpi = MPI_FLAVOURS[mpi_of(script, target=target.name)].command
    if "input" in line.values and several:
        why = f"{mpi} gives its input to the first rank only"
        yield hint(number, f"--input {line.values['input']}", why)
    elif several and _with_input(call) is not None:
        why = f"{srun_line.NAME} gives the standard input to all ranks, {mpi} to the first rank only"
        yield call.hint(why)
    names_mpi = not to_srun and named_mpi(script, at=call.start) is not None
    if "jobid" in line.values and not names_own_job(script, line.values["jobid"]):
        why = "is a step of that job: the new command starts the ranks in this one"
        yield Remark(number, f"--jobid={line.values['jobid']}", why)
    if "mpi" in line.values and names_mpi and several:
        why = "starts each rank of an MPI program by itself: mpirun connects them"
        yield hint(number, f"--mpi={line.values['mpi']}", why)
    if line.values.get("wait", "0") != "0" and several:
        why = "ends the other ranks this time after the first has ended: mpirun waits for all"
        yield hint(number, f"--wait={line.values['wait']}", why)
    yield from (Remark(number, option, "has no counterpart") for option in line.lost)
    yield from (hint(number, option, why) for option, why in line.notes)


def _beside_steps(call: Call, line: LaunchLine, script: Script) -> Iterator[Remark]:
    """Yield a remark on a step that may run at the same time as another one, which has other cores."""
    shared = any(word.text.startswith("--overlap") for word in call.words)
    where = _place_of_step(line, script)
    if "hosts" not in line.values and (where or not shared):
        old = f"{srun_line.NAME} uses free cores of the job{'' if shared else ', and waits for them'}"
        yield call.hint(f"{old}; the new command starts at once{where}")


def _place_of_step(line: LaunchLine, script: Script) -> str:
    """Return on which nodes mpirun starts a step with fewer ranks or nodes than the job has."""
    ranks, nodes, request = line.numbers.get("ranks", 0), line.numbers.get("nodes", 0), script.request
    fewer = 0 < ranks < (request.ranks or 0) or 0 < nodes < (request.nodes or 0)
    if not fewer or request.nodes == 1:
        return ""
    one = 1 in (ranks, nodes) or (not nodes and ranks <= (request.ranks_per_node or 0))
    return ", on the first node" if one else ", from the first node on, where others may run"


def _more_threads(call: Call, line: LaunchLine, script: Script) -> Iterator[Remark]:
    """Yield a remark on a number of threads above the cores of a rank, to which only srun binds them."""
    if "mask" in line.values or line.values.get("bind") == "none":
        return
    cores = number(line.values.get("cpus") or srun_line.cores_of_rank(line, script.request) or "1")
    for name, value, node in script.assignments:
        threads = number(script.constants.value(value)) if name.endswith("_NUM_THREADS") else None
        if threads and cores and threads > cores and node.start < call.command.node.start:
            why = f"is more than the cores of a rank, {cores}, to which {srun_line.NAME} binds it"
            yield hint(node.line, f"{name}={threads}", why)


def _takes_lines(call: Call) -> bool:
    """Return whether a command that reads its input takes the lines from the loop around it."""
    fed, loop = _with_input(call), call.command.node.around("while_statement")
    outside = fed is not None and loop is not None and fed.start <= loop.start
    return outside and loop is not None and not call.command.background and reads_list(loop)


def _with_input(call: Call) -> Node | None:
    """Return the command, or the group or loop around it, that reads a file, a text or a pipe."""
    node = call.command.node
    if any(one.type == "herestring_redirect" for one in node.children):
        return node
    for above in node.above():
        # A redirection behind a list is that of its last command.
        first = above.type == "list" and above.children[-1] is not node
        if first or above.type in ("function_definition", "command_substitution"):
            return None
        inputs = [one.text for one in above.children if one.text[:1] == "<"]
        if above.type == "redirected_statement" and inputs:
            return None if re.fullmatch(r"<\s*/dev/null", inputs[-1]) else node
        if above.type == "pipeline" and above.children[0] is not node:
            return node
        node = above
    return None


def _exports(script: Script, call: Call, mpi: MpiFlavour) -> list[str]:
    """Return the options that pass on the environment to other nodes, for an mpirun that needs them.

    These are a list made at run time, what it leaves out but the script exports, and what the command sets
    for itself: ``A=1 srun`` and ``env A=1 srun``.
    """
    if script.request.nodes == 1 or mpi.passes_all:
        return []
    before = [node.text for node in call.command.node.children if node.type == "variable_assignment"]
    before += [word.text for word in call.before]
    own = [name for name, _, node in script.assignments if node.parent and node.parent.type != "command"]
    own = [one for one in own if mpirun_line.IN_ENVIRONMENT.fullmatch(one) or is_exported(script, one)]
    names = [one for one in own if mpirun_line.SET_BY_NODE.fullmatch(one)]
    names += [match[0] for text in before if (match := re.match(r"[A-Za-z_]\w*(?==)", text))]
    if call.name in _SRUN and script.request.gpus_per_node:  # which replaces them
        names = [one for one in names if one not in script.dialect.names_of_devices]
    return [f"$({mpirun_line.EXPORTS})", *(f"-x {name}" for name in dict.fromkeys(names))]
