"""The numbers of a job file: ranks, cores and accelerators, as the launcher and the directives have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from jobgen.convert import aprun, differences, launch_nodes, submission
from jobgen.convert.launch_nodes import ALL
from jobgen.convert.misreadings import names_devices
from jobgen.convert.request_reader import line_of
from jobgen.convert.result import Remark, hint, remark_on, shown
from jobgen.convert.to_job_file import wrappers
from jobgen.convert.to_job_file.builder import BLOCKS, JobFile
from jobgen.convert.to_job_file.directives import without_devices
from jobgen.convert.to_job_file.launcher import HOST_FILES, name_of
from jobgen.convert.to_job_file.threads import of_chunk
from jobgen.convert.to_scheduler.launch_calls import other_launchers
from jobgen.errors import counted
from jobgen.launch.command_line import SHELLS
from jobgen.launch.launchers import LAUNCHERS
from jobgen.schedulers.request import Request
from jobgen.script.command_kinds import PRINT, STATE, TOOLS
from jobgen.script.commands import Command
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.values.devices import device_count
from jobgen.values.parsers import mebibytes, number

_CORES = ("-c", "--cpus-per-task", "--depth")
CORES_OF_STEP = "SRUN_CPUS_PER_TASK"  # which srun reads
_DEVICE = ("gpu", "auto")  # one rank for each device
# Code that takes lines of the file of hosts, and such code that needs the first one or each host once.
_OF_LINES = re.compile(r"\b(cat|head|tail|sed|awk|wc|cp)\b.*\$\{?PBS_NODEFILE\b|<\s*\"?\$\{?PBS_NODEFILE\b")
_OF_NODES = re.compile(r"\b(uniq|sort -u)\b|\bhead -(n ?)?1\b|^(cat|wc)( -l)? [^|<>]*$")
_WITH_FILES = ("redirected_statement", "pipeline", "command_substitution")
_ON_EACH_TASK = ("pbsdsh",)
# Options of Open MPI and aprun, which refuse more ranks in all than these of each node.
_REFUSING = ("-N", "-npernode", "--npernode")
_ELSEWHERE = ("function_definition", "heredoc_body")  # code that may run on other nodes, too


def write(file: JobFile, script: Script, launch: Launch | None) -> None:
    """Set the ranks of a node, their cores, and the accelerators of a node."""
    request = script.request
    nodes = request.nodes or 1
    cores = script.heeded.get("-l ncpus")
    if cores is not None and not request.chunks and (nodes > 1 or cores.value != "1"):
        why = launch_nodes.why(request) if nodes > 1 else "is of one node: some sites give several"
        file.hint(cores.line, f"-l ncpus={cores.value}", why)
    gpus = _gpus(file, script, launch)
    # a number of all tasks that is not that of the equal nodes of the job
    _drop(file, "--ntasks=")
    file.remarks += _of_range(file, script)
    each = _each(file, script, launch, nodes, gpus)
    file.remarks += (*_unknown(script, launch, each), *_gpus_of_task(script, launch, each)) if launch else ()
    if launch is not None and not launch.row.once_a_node and _tasks(request) > each:
        why = f"the launcher starts {each} of them; jobgen gives these"
        if nodes > 1 and _fills_nodes(launch):
            why = f"the launcher fills one node after the other; jobgen starts {each} on each, and gives them"
        why += " the cores and the memory of all"
        what = f"{_tasks(request)} {'slots' if script.is_pbs else 'tasks'} of a node"
        # Slots of PBS are cores, which its ranks share.
        file.remarks.append(Remark(launch.line, what, why, lost=not script.is_pbs))
    _devices(file, script, gpus, each)
    _cores(file, script, launch, each, gpus)
    if launch is None and _tasks(request) > 1:
        file.remarks += _of_one_task(script, file.values["cpus_per_rank"])
    file.remarks += _unknown_cores(file, script, launch) if launch else ()
    file.remarks += _of_whole_nodes(script, launch, gpus, file.values["cpus_per_rank"])
    file.remarks += differences.ranks_of_whole_nodes(script) if each == 1 else ()
    file.remarks += _slots_of_whole_nodes(script, launch) if launch and each == 1 else ()
    file.remarks += differences.slots_of_one_task(script)
    file.remarks += _nodes_of(script, launch, nodes) if launch else ()


def _fills_nodes(launch: Launch) -> bool:
    """Return whether a launcher uses all slots of a node before it starts ranks on the next one."""
    in_turn = "node" in launch.text("--map-by", "-map-by") or launch.has("--bynode", "-bynode")
    return launch.row.of_mpi and launch.has(*ALL) and not (launch.each or in_turn)


def _nodes_of(script: Script, launch: Launch, nodes: int) -> Iterator[Remark]:
    """Yield a remark if a launcher does not start one group of ranks on all nodes, as jobgen does."""
    row, names = launch.row, launch.row.line.nodes
    if row.of_mpi and launch.outer is not None and launch.outer.row.by_scheduler:
        outer, own = launch.outer, launch.outer.row.line
        tasks = outer.number(*own.ranks) or outer.number(*own.nodes) or script.request.ranks or 1
        if tasks > 1:
            why = f"each of {tasks} tasks of {outer.kind} starts it; jobgen starts its ranks once"
            yield Remark(launch.line, name_of(launch), why)
    of_node = not row.line.reaches_nodes  # it starts the ranks of its own node only
    inner = launch.outer is not None or bool(launch.remote)
    is_default = not launch.has(*names) and not launch.unknown and "PET_NNODES" not in script.values
    count = 1 if of_node and is_default and not row.line.config_file else launch.number(*names)
    if count == 1 < nodes and of_node and inner:
        why = f"the script has a group of ranks for a node; jobgen has one for all {nodes} nodes"
        yield Remark(launch.line, "1 node", why)
    elif count and count != nodes:
        why = f"the launcher uses {count} of {nodes} nodes; jobgen starts ranks on all of them"
        yield Remark(launch.line, counted(count, "node"), why)
    elif of_node and nodes > 1 and not inner and not launch.command.node.under(*_ELSEWHERE):
        why = f"the script starts it on the first of the {nodes} nodes only, jobgen on each"
        yield hint(launch.line, name_of(launch), why)


def _drop(file: JobFile, option: str) -> None:
    file.values["directive"] = [one for one in file.list("directive") if not one.startswith(option)]


def _of_range(file: JobFile, script: Script) -> Iterator[Remark]:
    """Request one node instead of MIN-MAX nodes for a number of all tasks or GPUs, which are those of a node
    in the job; else yield a remark on the nodes of a job for another scheduler."""
    option, request = script.heeded.get(script.dialect.scheduler.keys.nodes), script.request
    if option is None or request.nodes or not re.fullmatch(r"\d+-\d+", option.value):
        return
    if request.ranks or request.gpus:
        _drop(file, "--nodes=")
    else:
        yield hint(option.line, f"--nodes={option.value}", "a job for another scheduler has one node")


def _of_whole_nodes(
    script: Script, launch: Launch | None, gpus: int, cores_of_rank: object
) -> Iterator[Remark]:
    """Yield remarks on what a job with whole nodes has without a request, and on the threads of its ranks."""
    line = line_of(script, "--exclusive", "-l place", "-l naccesspolicy")
    no_cores, step = script.request.cpus_per_rank is None, script.dialect.node_step
    of_step = launch is not None and launch.kind == step and not launch.has("-c", "--cpus-per-task")
    cores = launch is None or (no_cores and (launch.row.once_a_node or of_step))
    devices = not script.is_pbs and (gpus or not names_devices(script))
    what = [name for name, more in (("cores", cores), ("GPUs", devices)) if more]
    own = "OMP_NUM_THREADS" in script.values
    unset = script.request.exclusive and not (own or script.dialect.sets_threads)
    if script.request.exclusive and what:
        why = f"the script has all {' and '.join(what)} of the node; jobgen's ranks have "
        why += "those that are requested" + (f", {gpus} of the GPUs" if gpus and devices else "")
        if unset and launch is None:
            why += f", and OMP_NUM_THREADS={cores_of_rank}, which the script leaves unset"
        yield hint(line, "exclusive", why)
    ranks = launch is not None and not launch.row.once_a_node
    unbound = no_cores or (step and launch is not None and launch.kind != step)
    if unset and unbound and ranks:
        why = f"jobgen sets it to the cores of a rank, {cores_of_rank}; the script leaves it unset"
        yield hint(line, "OMP_NUM_THREADS", why)


def lines_of_site(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on a command of a job that takes lines of the file of hosts, if the script leaves to the
    site how many a node has: the job, with one rank on a node, has one."""
    chunks, code = script.request.chunks, "\n".join(file.blocks)
    left_open = len(chunks) == 1 and "mpiprocs" not in chunks[0] and (number(chunks[0].get("ncpus")) or 1) > 1
    if not left_open or file.count("ranks_per_node") > 1:
        return
    for one in script.commands:
        line = (one.node.around(*_WITH_FILES) or one.node).text
        if _OF_LINES.search(line) and not _OF_NODES.search(line) and line in code:
            why = "has one line for each node in the job: the script leaves their number to its site"
            yield hint(one.line, "$PBS_NODEFILE", why)
            return


def _slots_of_whole_nodes(script: Script, launch: Launch) -> Iterator[Remark]:
    """Yield a remark on an mpirun without a number of ranks on whole nodes, which start one on each core."""
    request, row, step = script.request, launch.row, script.dialect.node_step
    known = launch.has(*ALL, *_of_node(launch), *HOST_FILES) or launch.outer is not None
    known |= any(script.dialect.origin(script.heeded, one) for one in ("ranks", "ranks_per_node"))
    if step and request.exclusive and row.of_mpi and launch.kind != step and not known:
        cores = f"{request.cpus_per_rank} cores" if (request.cpus_per_rank or 1) > 1 else "core"
        why = f"may start a rank for each {cores} of whole nodes: jobgen starts one on each node"
        yield hint(launch.line, name_of(launch), why)


def _of_one_task(script: Script, cores: object) -> Iterator[Remark]:
    """Yield remarks on a request of several tasks, of which the job has one with these cores.

    Where each core is a task for launchers, as those of the file of hosts, only another scheduler has one.
    """
    same = script.dialect.scheduler.behaviour.hosts_by_core
    there = " (in a job for another scheduler)" * same
    why = "the script runs its program once"
    if cores != 1:
        whose = "all" if (script.request.nodes or 1) == 1 else "those on its node"
        why += f"; jobgen gives its one rank the cores of {whose}"
    if cores != 1 and "OMP_NUM_THREADS" not in script.values:
        why += ", and sets OMP_NUM_THREADS to them"
    why += f"; ranks that it starts itself find one task on a node{there}"
    tasks = script.request.ranks or script.request.ranks_per_node
    yield hint(line_of(script, "ranks"), f"{tasks} tasks", why)
    tasks = _tasks(script.request)
    for launch in script.launches:
        if wrappers.is_kept(script, launch):
            where = "runs for each input" if launch.each_input else "is in the container"
            own_nodes = script.request.nodes or script.request.ranks_per_node
            place = "a node" if own_nodes else "the one node of the job"
            why = f"{where}: it finds one task on {place}, and not {tasks}{there}"
            one_rank = launch.each_input and launch.number(*ALL, *launch.row.line.of_node) == 1
            yield Remark(launch.line, launch.kind, why, lost=not (one_rank or same))
    for command in script.running(*_ON_EACH_TASK):
        why = f"starts programs on the tasks of the job: it finds one on a node, and not {tasks}{there}"
        yield remark_on(command, why)
    one_task = f"one task on a node, and not {tasks}{there}"
    for call in other_launchers(script, [name for row in LAUNCHERS.values() for name in row.names]):
        why = f"how {call.name} starts ranks is not known: it finds {one_task}"
        yield Remark(call.command.line, call.what, why, lost=not same)
    if (one := next(filter(partial(_may_start_ranks, script), script.runs), None)) is not None:
        yield remark_on(one, f"ranks that it may start find {one_task}")


def _may_start_ranks(script: Script, command: Command) -> bool:
    """Return whether a command may start ranks: by a script, a variable or a value with a launcher."""
    variables = [word.text for word in command.words if word.text.startswith(("$", '"$'))]
    if command.name not in PRINT and any(_begins_launch(script, one) for one in variables):
        return True
    if command.name in STATE | TOOLS or not command.words:
        return False
    name = re.fullmatch(r"\"?\$\{?([A-Za-z_]\w*)\}?\"?", command.words[0].text)
    if name and len(command.words) > 1 and name[1] not in script.values:
        return True
    texts = [word.text for word in command.words[: 1 + (command.name in SHELLS)]]
    names = re.findall(r"\$\{?(\w+)", " ".join(texts))
    texts += [value.text for one in names for value in script.values.get(one, ())]
    return any(re.search(r"\.sh\"?$", text) for text in texts)


def _begins_launch(script: Script, text: str) -> bool:
    """Return whether a text begins with a launcher of ranks, or with a variable whose value does."""
    texts, seen = [text], set[str]()
    while texts:
        match = re.match(r"[(\"' ]*(?:\$\{?(\w+)|(?:[^\s\"']*/)?([\w.-]+))", texts.pop())
        if match is None or match[1] in seen:
            continue
        if match[2] and any(match[2] in row.names for row in LAUNCHERS.values()):
            return True
        if match[1]:
            seen.add(match[1])
            texts += [one.text for one in script.values.get(match[1], ())]
    return False


def submitted_nodes(file: JobFile, script: Script, launch: Launch | None) -> None:
    """Leave the number of nodes to the submission if the script reads it, and no directive requests it.

    A launcher with a number of its own does not follow that of the submission.
    """
    request = script.request
    read = submission.nodes_read(script)
    requested = request.nodes or request.ranks or request.gpus
    if read is None or requested or script.dialect.scheduler.keys.nodes in script.heeded:
        return
    if launch is None or launch.number(*ALL) or launch.number(*launch.row.line.nodes):
        if script.dialect.job_variables.get(read[1][1:]) != "ranks":
            why = "no directive requests nodes: the job has one; that of the script has what the submission"
            file.hint(*read, f"{why} requests")
        return
    file.values["nodes"] = "submitted"
    why = "no directive requests nodes: the job takes those of its submission"
    if not (request.ranks_per_node or launch.has(*_of_node(launch))):
        why += ", with one rank on each"
    file.hint(*read, why)


def _of_node(launch: Launch) -> tuple[str, ...]:
    """Return the options with the ranks of a node."""
    return (*launch.row.line.local_ranks, *launch.row.line.of_node)


def _unknown(script: Script, launch: Launch, each: int) -> Iterator[Remark]:
    """Yield a remark on a number of ranks that the job finds out, or that a file of hosts has."""
    total, of_place = launch.number(*ALL), ("--map-by", "-map-by", "--npersocket", "-npersocket")
    names = [name for name in (*_of_node(launch), *ALL) if launch.has(name) and launch.number(name) is None]
    if not total:  # one that follows from the sockets and the like of a node
        names += [name for name in of_place if re.match(r"(?i)\d|ppr:(?!\d+:node)", launch.text(name))]
    if names and not launch.row.once_a_node and (total is None or (script.request.nodes or 1) > 1):
        text, why = launch.text(names[0]), "the number of ranks is known only when the job runs"
        why = f"{text} is no number of ranks" if re.fullmatch(r"[A-Za-z]+", text) else why
        yield Remark(launch.line, names[0], f"{why}: jobgen starts {each} on a node")
    hosts = launch.place(*HOST_FILES) if launch.row.of_mpi else None
    if hosts is None or names or total or launch.each:
        return
    if (script.dialect.variable("node_file") or "$") not in script.constants.origin(hosts).text:
        why = f"has the number of ranks, as the launcher names none: jobgen starts {each} on a node"
        yield hint(launch.line, shown(hosts), why)


def _unknown_cores(file: JobFile, script: Script, launch: Launch) -> Iterator[Remark]:
    """Yield a remark if the cores of a rank are known only when the job runs, and no directive has them."""
    of_step = launch.kind == script.dialect.node_step and CORES_OF_STEP in script.values
    name = next((one for one in _CORES if one in launch.options), CORES_OF_STEP * of_step)
    known = not name or _own_cores(script, launch) is not None or script.request.cpus_per_rank is not None
    if not known and not launch.row.once_a_node:
        cores = file.values["cpus_per_rank"]
        why = f"the cores of a rank are known only when the job runs: jobgen requests {cores}"
        yield Remark(launch.line, name, why)


def _tasks(request: Request) -> int:
    """Return the tasks of a node: without a number of nodes, all tasks of the job."""
    if request.ranks_per_node:
        return request.ranks_per_node
    return -(-request.ranks // (request.nodes or 1)) if request.ranks else 1


def _gpus(file: JobFile, script: Script, launch: Launch | None) -> int:
    request = script.request
    if request.gpus_per_node is None and request.gpus and request.nodes is None:
        if request.gpus > 1:
            why = "all on one node: the script names no number of nodes"
            file.hint(line_of(script, "gpus"), counted(request.gpus, "GPU"), why)
        return request.gpus
    if request.gpus_per_node is not None:
        return request.gpus_per_node
    count, at, _ = launch_nodes.devices_of_steps(script)
    if count:
        why = "only the launcher asks for them; jobgen's job does"
        file.hint(at, f"{counted(count, 'GPU')} of a node", why)
    return count or (_number_of(script, launch, "--gpus-per-task")[0] or 0) * _tasks(request)


def _gpus_of_task(script: Script, launch: Launch, each: int) -> Iterator[Remark]:
    """Yield a remark if a task sees its own GPUs only; with a binding it does so in the job, too."""
    tasks = each if launch.kind == script.dialect.node_step else 1
    if max(_tasks(script.request), tasks) == 1 or gpu_binding(script, launch):
        return
    for option in ("--gpus-per-task", "--ntasks-per-gpu"):
        count, at = _number_of(script, launch, option)
        if count:
            of_task = f"{counted(count, 'GPU')} for each task"
            what = of_task if option == "--gpus-per-task" else f"{option}={count}"
            why = f"{script.dialect.title} shows a task its own GPUs only; a rank of jobgen sees all, "
            yield hint(at, what, f"{why}and uses that of LOCAL_RANK")
            return


def _number_of(script: Script, launch: Launch | None, option: str) -> tuple[int | None, int]:
    """Return the number of an option of the launcher, else of the job, and its line."""
    if launch is not None and (own := launch.number(option)):
        return own, launch.line
    return device_count(_given(script, option) or ""), line_of(script, option)


def gpu_binding(script: Script, launch: Launch | None) -> str:
    """Return the way in which Slurm binds ranks to GPUs, if the script names one that hides others."""
    bind = (launch.text("--gpu-bind") if launch else "") or _given(script, "--gpu-bind") or "none"
    return "" if bind.endswith("none") else bind


def _given(script: Script, flag: str) -> str | None:
    return script.heeded[flag].value if flag in script.heeded else None


def _each(file: JobFile, script: Script, launch: Launch | None, nodes: int, gpus: int) -> int:
    """Return the ranks of a node that the launcher starts."""
    if launch is None:
        return 1
    request, row = script.request, launch.row
    if request.nodes is None and request.ranks and request.ranks > 1 and not request.ranks_per_node:
        why = "all on one node: the script names no number of nodes"
        file.hint(line_of(script, "ranks", "-l mppwidth", "-l size"), f"{request.ranks} tasks", why)
    each = len(launch.devices_here or ()) or launch.each or launch.number(*row.line.local_ranks)
    total = launch.number(*ALL)
    if name_of(launch) == aprun.NAME and not launch.has("-n", "-B"):
        total = 1  # its default
    if each and total and total != each * nodes:
        refused = total > each * nodes and (launch.mapped or launch.has(*_REFUSING))
        if refused or (nodes > 1 and not row.by_scheduler):
            error = f"for {counted(total, 'rank')} {name_of(launch)} refuses so few: " * bool(refused)
            where = f"each of {nodes} nodes" if nodes > 1 else "the node"
            why = f"{error}jobgen starts {-(-total // nodes)} on {where}"
            what = f"-N {each}" if name_of(launch) == aprun.NAME else f"{counted(each, 'rank')} of a node"
            file.hint(launch.line, what, why)
        each = None
    if each is None and total:
        if total % nodes:
            verb = "is" if total == 1 else "are"
            ranks = counted(total, "rank")
            why = f"{ranks} {verb} not divisible by {nodes} nodes: jobgen starts as many on each"
            file.lose(launch.line, name_of(launch), why)
        each = -(-total // nodes)
    if each is not None and not (row.by_scheduler and launch.outer is None and each == 0):
        return max(each, 1)
    named = [launch.options.get(one) for one in row.line.local_ranks if one in launch.options]
    if row.once_a_node:
        if named and named[0] not in _DEVICE:
            file.hint(launch.line, "the ranks of a node", "one for each accelerator")
        return gpus or 1 if named or row.filters_devices or row.line.config_file else 1
    if request.ranks and request.ranks % nodes and not request.ranks_per_node:
        why = f"{request.ranks} tasks are not divisible by {nodes} nodes: jobgen starts as many on each"
        file.lose(line_of(script, "ranks"), f"{request.ranks} tasks", why)
    return _tasks(request)


def _devices(file: JobFile, script: Script, gpus: int, each: int) -> None:
    line = line_of(script, "gpus")
    kind = script.request.gpu_type or launch_nodes.devices_of_steps(script)[2]
    file.values.pop("gpus_per_node", None)
    sites = launch_nodes.sites_of_whole_nodes(script, script.heeded.keys()) if not gpus else []
    if len(sites) == 1 and (gpus := sites[0].file.node.gpus or 0):
        file.hint(line, "accelerators", f"{sites[0].title} gives whole nodes, of {gpus} GPUs")
    if not gpus:
        file.values["accelerator"] = "cpu"
        _in_one_directive(file, script, "", alone=True)
        others = any(re.match(r"--gres|--gpus", one) for one in file.list("directive"))
        for one in (one for one in file.list("directive") if re.match("-l n?gpus=", one)):
            why = "stays a directive: the job prepares nothing for them, and has none under another scheduler"
            file.hint(line_of(script, one.partition("=")[0]), one, why)
            others = True
        unknown = list(launch_nodes.open_devices(script)) if not others else []
        why = "the job finds out how many: set gpus_per_node; without it the job sets up CPUs"
        for at, option in unknown:
            file.lose(at, option, why)
        if not (others or unknown) and names_devices(script):
            file.hint(line, "accelerators", "the script requests none: the job of jobgen sets up CPUs")
        return
    option = script.dialect.devices_option(gpus, kind or "", script.request.accelerator)
    if (whole := _in_one_directive(file, script, option, alone=each > gpus)) and each > gpus:
        return
    for flag in ("--gres", "--gpus-per-node", "--gpus", "--gpus-per-task") if not whole else ():
        if (value := _given(script, flag)) and re.search(r"[^\w:,./()-]", value):
            why = f"cannot be read: {gpus} of a node are requested"
            file.lose(script.heeded[flag].line, f"{flag}={value}", why)
    if each > gpus:  # jobgen gives each rank a device of its own
        if option and file.try_add("directive", [*file.list("directive"), option]):
            file.values["accelerator"] = "cpu"
            why = f"{each} ranks share them: jobgen gives a device to each rank, so this is a directive; "
            why += "the job sets up CPUs, and requests none of another scheduler"
            file.hint(line, counted(gpus, "GPU"), why)
            return
        what = f"{counted(gpus, 'GPU')} of {each} ranks"
        file.lose(line, what, "jobgen gives each rank a device of its own")
        gpus = each
    directives = [without_devices(one, script.request.accelerator) for one in file.list("directive")]
    if not whole:
        file.values["directive"] = [one for one in directives if one]
    typed = f"{kind}:{gpus}"
    if whole or not (kind and file.try_add("gpus_per_node", typed)):
        file.add("gpus_per_node", gpus, line)
    if kind and not script.is_pbs and (whole or file.values["gpus_per_node"] == typed):
        why = f"is a type of {script.dialect.title}: the job of another scheduler may get other GPUs"
        file.hint(line, kind, why)


_NO_DEVICES = re.compile(r"--gres=(none|[^,]+:0(,[^,]+:0)*)")


def _in_one_directive(file: JobFile, script: Script, devices: str, alone: bool) -> bool:
    """Keep a directive that requests accelerators and other devices; return whether there is one.

    If another option of the script requests the accelerators, the directive gets them, too, as ``devices``,
    which are empty without accelerators.
    The job prepares nothing for the accelerators if it gets them by the directive ``alone``.
    """
    directives = file.list("directive")
    rest = next((one for one in directives if one.startswith("--gres=")), None)
    given = script.heeded.get("--gres")
    if rest is None or given is None or _NO_DEVICES.fullmatch(rest):
        return False
    named = re.search(rf"(^|,)(gres:)?{script.request.accelerator}\b", given.value)
    value = script.dialect.scheduler.grammar.word(given.value)
    whole = f"--gres={value}" if named or not devices else f"{devices},{value}"
    if not file.accepts("directive", whole):
        return False
    file.values["directive"] = [whole if one is rest else one for one in directives]
    why = "stays a directive, because jobgen requests GPUs only"
    if alone:
        file.values["accelerator"] = "cpu"
        why += ": its job prepares nothing for them, but CPUs, and has none under another scheduler"
    file.hint(given.line, given.value, why)
    return True


def _cores(file: JobFile, script: Script, launch: Launch | None, each: int, gpus: int) -> None:
    """Set the ranks of a node and their cores: together they have the cores that the script requests."""
    request = script.request
    own = _own_cores(script, launch) if launch and not launch.row.once_a_node else None
    cores = of_chunk(request) or (request.cpus_per_rank or 1) * _tasks(request)
    if launch is not None and own and request.cpus_per_rank is None and (cores := own * each) > 1:
        why = "only the launcher asks for them; jobgen's job does"
        file.hint(launch.line, f"{counted(own, 'core')} of a rank", why)
    if (per_gpu := number(_given(script, "--cpus-per-gpu"))) and gpus:
        cores = per_gpu * gpus
        _drop(file, "--cpus-per-gpu")
    if each == 1 and (least := number(_given(script, "--mincpus"))):
        cores = max(cores, least)
        _drop(file, "--mincpus")
    both = [flag for flag in ("--mem", "--mem-per-cpu", "--mem-per-gpu") if _given(script, flag)]
    if len(both) > 1:
        last = max((script.heeded[flag] for flag in both), key=lambda option: option.line)
        why = "exclude each other, so that sbatch refuses the script: the job has the last one"
        file.hint(last.line, " and ".join(both), why)
    if request.mem_per_cpu and (per_core := mebibytes(_given(script, "--mem-per-cpu") or "")) and request.mem:
        file.values["mem"] = f"{per_core * cores}M"
        if request.exclusive:
            title = script.dialect.title
            why = f"{title} counts all cores of an exclusive node; jobgen requests the memory of {cores}"
            file.hint(line_of(script, "--mem-per-cpu"), "--mem-per-cpu", why)
    file.values["ranks_per_node"] = each
    rank = own if own and own * each <= cores else max(cores // each, 1)
    file.values["cpus_per_rank"] = rank
    if launch is not None and own and own > rank:
        why = f"are more than the directives request: jobgen gives each rank {rank}"
        file.hint(launch.line, f"{own} cores of a rank", why)
    if cores < each:
        why = f"jobgen requests a core for each of {each} ranks"
        file.hint(line_of(script, "cpus", "ranks"), counted(cores, "core"), why)
    elif cores > rank * each:
        if script.dialect.scheduler.behaviour.equal_tasks and cores % each:
            why = f"each of {each} ranks gets {rank}: {script.dialect.title} allocates equal tasks"
            file.hint(line_of(script, "cpus", "ranks"), f"{cores} cores", why)
        else:
            file.values["cpus_per_node"] = cores
    elif cores == 1 and gpus and not (script.is_pbs or request.cpus_per_rank or request.exclusive):
        file.hint(line_of(script, "gpus"), counted(gpus, "GPU"), differences.CORES_WITH_GPUS)


def _own_cores(script: Script, launch: Launch) -> int | None:
    """Return the cores of a rank that a launcher has from an option, or from its variable."""
    value = script.constants.node(CORES_OF_STEP) if launch.kind == script.dialect.node_step else None
    if value is None or launch.has(*_CORES):
        return launch.number(*_CORES)
    return number(script.constants.value(value))


# Variables of Slurm with the value of a directive for which a job file has another number.
_OF_DIRECTIVES = {
    "SLURM_GPUS": "--gpus", "SLURM_CPUS_PER_GPU": "--cpus-per-gpu", "SLURM_GPUS_PER_TASK": "--gpus-per-task",
    "SLURM_NTASKS_PER_GPU": "--ntasks-per-gpu", "SLURM_MEM_PER_CPU": "--mem-per-cpu",
    "SLURM_MEM_PER_GPU": "--mem-per-gpu",
}  # fmt: skip


def variables(file: JobFile, script: Script) -> None:
    """Set the variables of directives that the script reads, and that the job of the job file has not.

    They are not exported: srun reads them as its options, and refuses some beside those of the job.
    """
    read = set(re.findall(r"\bSLURM_\w+", script.tree.text))  # also without $ in a sum
    values: dict[str, str] = {}
    for name, flag in _OF_DIRECTIVES.items():
        kept = any(one.startswith(f"{flag}=") for one in file.list("directive"))
        if name in read and flag in script.heeded and not kept:
            value = script.heeded[flag].value
            if text := str(mebibytes(value) or "") if "MEM" in name else value:
                values[name] = f"{name}={text}"
    words, program = file.program, file.shell_code
    if program:
        file.values["command"] = [*words[:2], _with_values(program, program, values), *words[3:]]
    for key in BLOCKS:
        code = file.text_of(key)
        more = words if key == "setup" and not program else ()
        if text := _with_values(code, " ".join([code, *more]), values):
            file.values[key] = text


def _with_values(code: str, text: str, values: Mapping[str, str]) -> str:
    """Return code behind the lines that set the variables which a text reads."""
    lines = [line for name, line in values.items() if re.search(rf"\b{name}\b", text)]
    return "\n".join([*lines, code])
