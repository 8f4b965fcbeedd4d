"""What the commands of a script do otherwise under another scheduler, as a script or as a job file for it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain, islice

from jobgen.convert import aprun, log_differences
from jobgen.convert.launch_nodes import uses_all
from jobgen.convert.request_reader import at_directive
from jobgen.convert.result import Remark, hint, remark_on
from jobgen.convert.submission import discarded, index_read
from jobgen.convert.to_scheduler.request_writer import listed
from jobgen.convert.variable_names import directive_of_text, is_exported
from jobgen.launch.launchers import MPI_FLAVOURS, MpiFlavour
from jobgen.script.beside import programs, started
from jobgen.script.command_kinds import PRINT, STATE, TOOLS, is_printed
from jobgen.script.commands import Command, names_command
from jobgen.script.dialects.base import Dialect
from jobgen.script.mpi_of_script import named_mpi
from jobgen.script.script import Script
from jobgen.script.syntax import Node, statement
from jobgen.values import arrays, parsers
from jobgen.values.parsers import number

CORES_WITH_GPUS = "without a number of cores: the job requests one, and a site may give several with each GPU"

# Options of srun in variables that a script sets.
_OF_SRUN = re.compile(
    r"SRUN_(CPUS_PER_TASK|CONTAINER(_ID)?|ERROR|EXPORT_ENV|INPUT|OUTPUT|SEGMENT_SIZE)"
    r"|SLURM_((CPU|MEM|GPU)_BIND|DISTRIBUTION|HINT|HOSTFILE|MPI_TYPE|EXPORT_ENV|THREADS_PER_CORE|WAIT"
    r"|KILL_BAD_EXIT|LABELIO|UNBUFFEREDIO|OVERLAP|EXACT|WHOLE|MULTI_PROG|GPUS_PER_TASK|NTASKS|NPROCS"
    r"|NNODES|NTASKS_PER_(NODE|CORE|SOCKET)|OPEN_MODE|OVERCOMMIT|STD(IN|OUT|ERR)MODE|TASK_(PRO|EPI)LOG"
    r"|TIMELIMIT|WORKING_DIR)"
)
# The files and folders that an option or a variable binds into a container.
_BIND = re.compile(r"(?:\s(?:-B|--bind|-v|--volume)[ =]|^(?:SINGULARITY|APPTAINER)_BIND(?:PATH)?=)(\S+)")
# Code for Python that counts the cores of its process: also Dask, without a number or an address.
_COUNTS_BOUND = re.compile(
    r"(?m)^[^#\n]*?\b(sched_getaffinity\(|cpu_affinity\(|process_cpu_count\(|n_jobs ?= ?-1\b"
    r"|(Client|LocalCluster)\(\s*(\)|(processes|threads_per_worker|memory_limit|dashboard_address) ?=)"
    r"(?![^)]*\bn_workers))"
)
# The name of the file of the script.
_OWN_NAME = re.compile(
    r"(?:\$\(|`)\s*basename\s[^|;&]*\$\{?(?:0|BASH_SOURCE)\b|\$\{(?:0|BASH_SOURCE)(?:##|/|%(?!%?/\*\}))"
)
_BINDS = re.compile(r"(SINGULARITY|APPTAINER)_BIND(PATH)?")
# Programs of several ranks that a script for Python often starts.
_OF_RANKS = re.compile(
    r"(?im)^\s*(module|ml)\b.*\b(vasp|quantum-?espresso|espresso|qe|cp2k|lammps|gromacs|nwchem|orca|siesta|abinit|castep)\b"
)
# Programs that start ranks themselves, with an Open MPI.
_STARTS_RANKS = re.compile(r"orca|qchem|dalton|foamJob|horovodrun|starccm\+|pymolcas")
_OF_LIGHTNING = re.compile(r"(?m)^[^#\n]*(lightning_logs)/version_\$\{?SLURM_\w*JOB_?ID\b")
_OF_MATLAB = re.compile(r"(?m)^[^#\n]*\bparcluster\((?:\\?[\"'])((?!(?i:local|processes|threads)\b)[\w.-]+)")
# Numbers of ranks for which launchers start one on each GPU that they find.
_ALL_DEVICES = {"deepspeed": ("",), "accelerate": ("",), "torchrun": ("gpu", "auto")}
_COUNTS_DEVICES = re.compile(r"\bnvidia-smi\s[^|]*(-L|--list-gpus)\b.*\|\s*(wc|grep -c)\b")
NO_TERMINAL = "the program has no terminal here, and may write its output late, in blocks: "
NO_TERMINAL += "stdbuf -oL prevents that"


def remarks(script: Script, target: Dialect, logs: Mapping[str, str]) -> Iterator[Remark]:
    """Yield the remarks for a new script, and for a job file.

    ``logs`` are those that the scheduler writes, output and error, with their names without a directive.
    """
    yield from _srun_variables(script, target)
    yield from islice(_binds(script), 1)
    yield from _limits(script, target)
    yield from islice(_bound_cores(script, target), 1)
    yield from _slots_of_cores(script, target)
    yield from islice(_shown_devices(script, target), 1)
    yield from _logs_of_lightning(script, target)
    yield from _clusters_of_matlab(script, target)
    yield from _written_script(script)
    yield from _own_directives(script, target)
    yield from _set_by_target(script, target)
    yield from _script_copy(script, target)
    if (licenses := script.heeded.get("--licenses")) and target.features_are_resources:
        why = f"qsub refuses it unless the site of {target.title} has a resource of this name"
        yield hint(licenses.line, f"--licenses={licenses.value}", why)
    yield from log_differences.remarks(script, target, logs)


def index(script: Script, target: Dialect, defined: Collection[str] = ()) -> Iterator[Remark]:
    """Yield a remark on the index of an array, which programs may read, if the new script does not set it:
    ``defined`` are the variables that it sets."""
    old, new = script.dialect.variable("array_index"), target.variable("array_index")
    programs = {command.name for command in script.runs} - STATE - TOOLS
    if old == new or old in defined or not programs or listed(script.request, target):
        return
    if script.request.array and arrays.read(script.request.array) is None:
        return
    why = f"programs that read {old} find {new}"
    if script.dialect.origin(script.heeded, "array"):
        yield from at_directive(script, "array", why)
    elif read := index_read(script):
        yield hint(*read, f"in an array, {why}")


def _srun_variables(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield remarks on options of srun in variables, which the launcher of the target does not read."""
    source = script.dialect
    steps = source.node_step is not None and target.node_step is None
    for name, _, node in script.assignments if steps else ():
        if re.fullmatch("SBATCH_[A-Z_]+", name) and is_exported(script, name):
            why = f"is an option of {source.command}: {target.command} does not read it"
            yield Remark(node.line, name, why)
        if mpi := next((one for one in MPI_FLAVOURS.values() if one.pmi_library == name), None):
            why = f"is the library of {source.title} for srun: unset it, as the mpirun of {mpi.title}"
            yield Remark(node.line, name, f"{why} has its own")
    if not steps or not re.search(r"\bsrun\b", script.tree.text):
        return
    cores = str(script.request.cpus_per_rank)
    for name, value, node in script.assignments:
        known = script.constants.value(value)
        same = name == "SRUN_CPUS_PER_TASK" and known == cores
        same |= name == "SLURM_EXPORT_ENV"  # as --export
        same |= re.fullmatch(r"\"?\$\{?SLURM_\w+\}?\"?", value.text) is not None  # that of the job
        same |= name == "SLURM_MPI_TYPE" and known not in (None, "none")  # as --mpi
        if _OF_SRUN.fullmatch(name) and not same:
            yield Remark(node.line, name, "is an option of srun: mpirun does not read it")


def _limits(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on each limit set before ranks of several nodes, to which srun hands it on."""
    steps = script.dialect.node_step is not None and target.node_step is None
    if not steps or (script.request.nodes or script.request.ranks or 1) < 2:
        return
    last = max((one.command.node.start for one in script.launches), default=0)
    for one in script.named("ulimit"):
        if one.node.start < last and any(not word.text.startswith("-") for word in one.arguments):
            why = f"{script.dialect.title} sets it for the ranks on all nodes, "
            yield remark_on(one, f"{why}{target.title} on the first node only")


def _binds(script: Script) -> Iterator[Remark]:
    """Yield a remark on each file of the source that a script binds into a container."""
    source = script.dialect
    own = "|".join((*source.owners, *filter(None, [source.node_step])))
    of_source = re.compile(rf"/(?!home|scratch)([^/]+/)*({source.family.lower()}d?\b.*|{own})")
    nodes = [command.node for command in script.runs]
    nodes += [node for name, _, node in script.assignments if _BINDS.fullmatch(name)]
    for node in nodes:
        values = (re.split(r"[,:\"']", match[1]) for match in _BIND.finditer(node.text))
        for found in filter(of_source.fullmatch, chain.from_iterable(values)):
            why = f"is a file of {source.title}: without it the container does not start"
            yield hint(node.line, found, why)


def _bound_cores(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield remarks on what counts the cores to which Slurm binds a script: a program for Python beside it,
    ``nproc`` without a number of cores, which makes it count those of OMP_NUM_THREADS, and programs that use
    all cores which they find."""
    request, source = script.request, script.dialect
    if target.family == source.family or request.exclusive:
        return
    cores = f"{source.title} binds it to those of the job, and {target.title} may not"
    if source.node_step is None:
        cores = f"{target.title} may bind it to those of the request"
        sized = (
            request.cpus_per_rank or request.ranks_per_node or any("ncpus" in one for one in request.chunks)
        )
        if not sized:
            return
    cores = f"may use all cores that it finds: {cores}"
    yield from (hint(*place, cores) for place in uses_all(script))
    for name, inner in started(script):
        if inner.starter and inner.starter.script is script:
            at = inner.starter.call.line
            yield from (hint(at, name, f"{cores} (line {line} of it)") for line, _ in uses_all(inner))
    if source.node_step is None:
        return
    why = "counts the cores to which Slurm binds the job, and "
    why += f"all of the node where {target.title} binds none"
    for program in programs(script):
        if found := _COUNTS_BOUND.search(program.text):
            number = program.text.count("\n", 0, found.start(1)) + 1
            yield hint(program.calls[0].line, program.path, f"{why} (line {number} of it)")
    for one in script.running("nproc") if (request.cpus_per_rank or 1) == 1 else ():
        if one.node.under("command_substitution") and len(one.words) == 1 and not is_printed(one.node):
            yield remark_on(one, why)


def _shown_devices(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield remarks on what uses or counts all GPUs that it finds: Slurm hides those of other jobs."""
    source, request = script.dialect, script.request
    if target.hides_devices or not source.hides_devices or request.exclusive or not request.gpus_per_node:
        return
    why = f"may use all GPUs that it finds: {source.title} hides those of other jobs, "
    why += f"{target.title} may not"
    for launch in script.launches:
        counts = (*launch.row.line.local_ranks, "--num-processes", "--include", "--hostfile", "-H")
        if launch.text(*counts) in _ALL_DEVICES.get(launch.kind, ()):
            yield hint(launch.line, launch.title, why)
    for node in script.tree.all("command_substitution"):
        if _COUNTS_DEVICES.search(node.text) and not is_printed(node):
            yield hint(node.line, node.text, why)


def _logs_of_lightning(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on the folder that PyTorch Lightning names by the id of a job, if Slurm sets it."""
    found = _OF_LIGHTNING.search(script.tree.text)
    if found and target.family != script.dialect.family:
        why = f"Lightning names this folder by the id of a job of {script.dialect.title} only: else it is "
        line = script.tree.text.count("\n", 0, found.start(1)) + script.tree.line
        yield hint(line, found[1], f"{why}version_0, version_1 and so on")


def _clusters_of_matlab(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on a cluster whose profile MATLAB has, which may start workers by the scheduler."""
    found = _OF_MATLAB.search(script.tree.text)
    if found and target.family != script.dialect.family:
        why = f"is a cluster of MATLAB: its profile may start the workers by {script.dialect.title}"
        line = script.tree.text.count("\n", 0, found.start(1)) + script.tree.line
        yield hint(line, found[1], why)


def ranks_of_whole_nodes(script: Script) -> Iterator[Remark]:
    """Yield a remark on the first srun on whole nodes with the cores of a rank, but no number of ranks."""
    given, step = script.heeded, script.dialect.node_step
    cores = given.get("--cpus-per-task")
    if cores is None or not script.request.exclusive or {"--ntasks", "--ntasks-per-node"} & given.keys():
        return
    for launch in script.launches:
        counted = launch.has("-n", "--ntasks", "--ntasks-per-node", "-c", "--cpus-per-task")
        if launch.kind == step and not counted and not launch.unknown:
            why = f"may start a rank for each {cores.value} cores of whole nodes"
            why += ": the new job has one on each node"
            yield hint(launch.line, launch.kind, why)
            return


def functions(script: Script, mpi: MpiFlavour, line: int, code: str) -> Iterator[Remark]:
    """Yield a remark on each exported function, which srun gives to all nodes and ``code`` may call."""
    if mpi.passes_all or script.request.nodes == 1:
        return
    why = f"{mpi.command} gives functions to the first node only: write them into a file that is sourced"
    for name in sorted(script.exported_functions):
        yield Remark(line, f"export -f {name}", why, lost=names_command(code, name))


def _written_script(script: Script) -> Iterator[Remark]:
    """Yield a remark on the directives of another script, in a here-document or a text."""
    source = script.dialect
    unused = [one.start for one in discarded(script.tree)]
    for node in script.tree.all("heredoc_body"):
        for at, line in enumerate(node.text.split("\n") if node.start not in unused else (), node.line):
            if line.lstrip().startswith(f"{source.scheduler.prefix} "):
                why = f"is in a here-document, whose script stays one for {source.title}"
                yield Remark(at, line.strip(), why)
                return
    if (found := directive_of_text(script.tree)) and found[1].startswith(source.scheduler.prefix):
        yield Remark(*found, f"is in a text for another script, which stays one for {source.title}")


def _own_directives(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on a command that searches the script itself for its directives."""
    prefix, new = script.dialect.scheduler.prefix, target.scheduler.prefix
    for one in script.named("grep", "egrep", "fgrep", "sed", "awk") if prefix != new else ():
        if prefix in one.node.text and re.search(r"\$\{?(0|BASH_SOURCE)\b", statement(one.node).text):
            yield remark_on(one, f"finds nothing: the directives of the new script begin with {new}")


def _set_by_target(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on each variable that only the target sets, which was empty so far."""
    if script.dialect.family == target.family:
        return
    lines = {name: node.line for name, node in reversed(script.expansions) if name not in script.values}
    for name in sorted({*lines} & {*target.job_variables}):
        if name.startswith((target.variable_prefix, "NCPUS")):
            why = f"was not set by {script.dialect.title}, and {target.title} sets it"
            yield hint(lines[name], f"${name}", why)


def _script_copy(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield remarks on the name of the copy of the script that a scheduler makes: on the tests of it, and on
    its first use that is not printed."""
    (own, words), (new, _) = script.dialect.script_copy, target.script_copy
    if own == new or not script.directives.live or script.callers.completed:
        return
    why = f"is of the copy of the script: {own} with {script.dialect.title}, {new} with {target.title}"
    for node in script.tree.all("test_command", "case_item"):
        if match := re.search(words, node.text):
            yield Remark(node.line, match[0], why)
            return
    nodes = script.tree.all("command_substitution", "expansion")
    names = (node for node in nodes if _OWN_NAME.match(node.text) and _is_used(node, script))
    yield from (remark_on(node, why) for node in islice(names, 1))


def _is_used(node: Node, script: Script) -> bool:
    """Return whether a command does more with a value than to print it, also by the variable that has it."""
    if node.under("heredoc_body", "function_definition"):
        return False
    command, value = node.around("command"), node.around("variable_assignment")
    if value is not None and (command is None or command in value):
        own = [one for name, one in script.expansions if value.text.startswith(f"{name}=")]
        return any(_is_used(one, script) for one in own if one.start > value.end)
    return command is None or os.path.basename(command.name) not in PRINT


def may_start_ranks(script: Script) -> bool:
    """Return whether the modules of a script are of an MPI, or of programs that start ranks themselves."""
    return named_mpi(script) is not None or _OF_RANKS.search(script.tree.text) is not None


_OF_JOBS = ("-p", "--partition", "-A", "--account", "-q", "--qos", "--reservation")  # options of srun


def own_jobs(script: Script, new: str) -> Iterator[Remark]:
    """Yield a remark on the first step of a script without directives that requests a job itself, with what
    is ``new``."""
    for launch in script.launched(script.dialect.node_step or ""):
        if option := next((one for one in _OF_JOBS if launch.has(one)), ""):
            why = f"where no job runs the script, it requests one itself: {new}"
            yield hint(launch.line, f"{launch.kind} {option}", why)
            return


def slots_of_one_task(script: Script) -> Iterator[Remark]:
    """Yield a remark on one task with more on a node, which are the slots that Slurm names to an mpirun."""
    total, each = (script.heeded.get(one) for one in ("--ntasks", "--ntasks-per-node"))
    slots = (
        parsers.number(each.value) if each is not None and total is not None and total.value == "1" else None
    )
    own, counts = script.dialect.node_step, ("-n", "-np", "--np")
    steps = bool(script.launches) and all(
        one.kind == own or one.number(*counts) == 1 for one in script.launches
    )
    if each is not None and (slots or 1) > 1 and not steps and may_start_ranks(script):
        why = f"for an mpirun without hosts the node has {slots} slots in Slurm, and one in the new job"
        yield hint(each.line, f"{each.flag}={each.value}", why)


def _slots_of_cores(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on a program that starts ranks itself with several cores of one task: an Open MPI finds
    one slot for each task of Slurm, and without Slurm one for each core of the node."""
    request, chunk = script.request, (*script.request.chunks, {})[0]
    one_task = "mpiprocs" not in chunk and (request.ranks_per_node or 1) == 1 and not script.launches
    cores = request.cpus_per_rank or number(chunk.get("ncpus")) or 1
    if not script.is_pbs or target.node_step is None or not one_task or cores == 1:
        return
    starts = ((one.line, os.path.basename(one.texts[0])) for one in script.started)
    found = next((one for one in starts if _STARTS_RANKS.fullmatch(one[1])), None)
    if found is None and (module := _OF_RANKS.search(script.tree.text)):
        found = script.tree.text.count("\n", 0, module.start(2)) + script.tree.line, module[2]
    if found:
        why = f"may start ranks itself: for an Open MPI the node has one slot in {target.title}, for all "
        yield hint(*found, f"{why}{cores} cores: request a task for each rank")


def mail(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on a mail of a failed script, which PBS does not send."""
    events = script.request.mail
    if target.copies_logs > script.dialect.copies_logs and "a" in events and "e" not in events:
        option = script.heeded["--mail-type"]
        why = f"{target.title} sends it if it ends the job itself, not if the script fails: add END"
        yield hint(option.line, f"{option.flag}={option.value}", why)


def commands(script: Script, target: Dialect) -> Iterator[tuple[Command, Remark]]:
    """Yield the commands that the target lacks, as only the scheduler or its site has them, each with a
    remark."""
    source = script.dialect
    owners, version = dict.fromkeys(target.missing_commands, source.title), {"--version", "-V"}
    if source.family != target.family:
        owners = source.owners | dict.fromkeys(aprun.COMMANDS, "Cray's ALPS")
        owners |= {str(source.node_step): source.title} if source.node_step != target.node_step else {}
    yield from _options_of_commands(script, target)
    for one in script.named(*(owners.keys() - script.functions)):
        if one.name != source.node_step or version & {*one.literals[:1]}:  # others start ranks
            yield one, remark_on(one, f"is a command of {owners[one.name]}", lost=True)


def _options_of_commands(script: Script, target: Dialect) -> Iterator[tuple[Command, Remark]]:
    """Yield the commands with an option that only the other scheduler of a family has, each with a remark."""
    if script.dialect.family != target.family:
        return
    options = {(target.command, flag): how for flag, (_, how) in target.foreign_options.items()}
    options |= dict.fromkeys(target.missing_options, "")
    for one in script.named(*{name for name, _ in options}):
        for word in one.literals:
            flag = next((flag for name, flag in options if name == one.name and _is_flag(word, flag)), "")
            if flag:
                why = f"is an option of {script.dialect.title}"
                how = options[one.name, flag]
                yield one, Remark(one.line, f"{one.name} {flag}", f"{why}: {how}" if how else why)
                break


def _is_flag(word: str, flag: str) -> bool:
    """Return whether a word is an option of one letter, alone or with a number behind it."""
    return re.fullmatch(rf"{flag}(\d.*)?", word) is not None
