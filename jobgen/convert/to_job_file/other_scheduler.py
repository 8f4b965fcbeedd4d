"""Remarks on what the job of a job file does otherwise than the script under another scheduler."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from jobgen.config import read_spec
from jobgen.convert import differences, leftovers
from jobgen.convert.misreadings import is_narrow
from jobgen.convert.result import Edit, Remark, hint, shortened
from jobgen.convert.to_job_file import inherited
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.main_command import last_launch
from jobgen.convert.to_job_file.sizes import CORES_OF_STEP, gpu_binding
from jobgen.convert.to_scheduler import launch_calls, own_scripts, variables
from jobgen.convert.variable_names import binds_threads
from jobgen.errors import JobgenError
from jobgen.jobfile.reader import decode, layer_of
from jobgen.launch.command_line import is_python
from jobgen.launch.launchers import DEFAULT_MPI, LAUNCHERS, MPI_FLAVOURS
from jobgen.options import BY_KEY
from jobgen.script import foreign_variables
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.script import Script
from jobgen.script.syntax import Node

_NO_CODE = ("launcher", "launcher_arg", "directive")
# Options of a step that the launcher of another scheduler does not have.
_OF_STEPS = {
    ("--chdir", "-D"): "starts the ranks in the directory of the job",
    ("--output", "-o"): "writes the output of the ranks into the log of the job",
    ("--label", "-l"): "writes no number of the rank before a line",
}
_BINDING = re.compile(r"^((v|verbose|q|quiet),)*(?!none$|no$|v$|q$|verbose$|quiet$)\w")  # of --cpu-bind
_NAME = BY_KEY["name"].default  # of a job
_SETS = re.compile(r"(?m)^(SLURM_\w+)=")  # a variable of a directive that the job file sets
_PLAIN = re.compile(r"\$\{(\w+)\}(?!\w)")  # ${NAME}, which is $NAME in the words of a program


# The reason of a remark that says nothing of the nodes of a job.
OF_INTERPRETER = "the script starts it with the interpreter of its first line, jobgen with python3"


def remarks(script: Script, file: JobFile, text: str) -> Iterator[Remark]:
    """Yield the remarks on a job file, which is complete, with this ``text``.

    There is none on what jobgen warns of when it makes the job for the other scheduler.
    """
    others = (one for one in DIALECTS.values() if one.scheduler.prefix)
    target = next(one for one in others if one.family != script.dialect.family)
    own_log = script.request.output and ("log" not in file.values or "log" in file.own)
    logs = {} if own_log else {"output": f"{file.values.get('name', _NAME)}-{{}}.log"}
    found = list(differences.remarks(script, target, logs))
    of_tasks = script.request.array and script.request.mail_of_tasks  # which have no mail of the job file
    found += () if of_tasks else differences.mail(script, target)
    index = script.dialect.variable("array_index")
    indexed = "array" in file.values  # setup sets its index
    found += differences.index(script, target) if not indexed else ()
    found += [one for one in variables.unprefixed(script, target) if isinstance(one, Remark)]
    found += _of_submission(script, file, target)
    named = (one for one in file.remarks if one.why != OF_INTERPRETER)
    known = {word for one in named for word in re.findall(r"[\w.-]+", one.what)}
    found += own_scripts.alone(script, target, (), known) if script.request.several else ()
    own = list(_launchers(script))
    found += launch_calls.without_hosts(script, target, {one.start for one in own})
    found += launch_calls.of_others(script, target, launch_calls.MPIRUNS, {one.start for one in own})
    ranks = list(_ranks(script, file))
    warned = _warned(text, target)
    found += [one for command, one in differences.commands(script, target) if command.name not in warned]
    set_names = {*warned, *([index] if indexed else ()), *_SETS.findall("\n".join(file.blocks))}
    if file.variables.get(CORES_OF_STEP) == str(file.count("cpus_per_rank")):
        warned.add(CORES_OF_STEP)  # the job requests them
    seen = [*found, *ranks, *(Remark(0, f"${name}", "") for name in set_names)]
    found += leftovers.remarks(script, target, own, seen, job_file=True)
    code = _code(file)
    first = script.directives.first_command or len(script.lines)
    # Of a job that starts its ranks without a step, for which the scheduler would name the devices.
    launch = last_launch(script)
    alone = launch is not None and launch.row.once_a_node and file.text_of("nodes") in ("", "1")
    own_devices = script.dialect.names_of_devices if alone else ()
    for one in [*found, *ranks]:
        remains = one in ranks or one.line < first or _remains(one.what, code)
        remains = remains or _remains_by_variable(script, one, code)
        if one.what.lstrip("$") not in warned and remains:
            of_all = target.title in one.why or one.what.partition("=")[0] in own_devices
            where = "" if of_all else f" (in a job for {target.title})"
            yield hint(one.line, one.what, f"{one.why}{where}")


def _of_submission(script: Script, file: JobFile, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on variables that the submission may set, of which another scheduler hands on none."""
    forms, given = target.scheduler.request_forms, script.heeded.get("--export")
    if script.is_pbs or "all_variables" not in forms:
        return
    of_target = f"{target.title} hands on no variable of the submission without "
    add = f': add directive = ["{{}}"] in [{target.scheduler.command_name}]'
    if given is not None and is_narrow(given.value):
        names = [one for one in given.value.split(",") if one.isidentifier() and one not in ("NONE", "NIL")]
        option = forms["names"].format(",".join(names))
        if names:
            yield hint(given.line, f"--export={given.value}", f"{of_target}{option}{add.format(option)}")
        return
    option, found = forms["all_variables"], dict[str, Node]()
    for one in inherited.optional(script):
        if one.text not in file.variables:  # of --export=ALL,NAME=VALUE
            found.setdefault(one.text, one)
    if found:
        first, *others = found
        more = f" ({', '.join(f'${one}' for one in others)} as well)" * bool(others)
        yield hint(found[first].line, f"${first}", f"{of_target}{option}{more}{add.format(option)}")


def _launchers(script: Script) -> Iterator[Edit]:
    """Yield the ranges of the launchers of the program, in place of which jobgen has its own."""
    launch = last_launch(script)
    for one in launch.chain if launch is not None else ():
        yield Edit(one.command.node.start, one.program[0].start if one.program else one.command.node.end, "")


def _ranks(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield remarks on what ranks get from srun, or an MPI that only this scheduler has: another scheduler
    starts them with mpirun."""
    launch = last_launch(script)
    program = "".join(word.text for word in launch.program[:1]) if launch is not None else ""
    of_python = is_python(os.path.basename(program))
    own = MPI_FLAVOURS.get(str(file.values.get("mpi"))) if "mpi" in file.own else None
    if launch is not None and own is not None and (of_python or program.endswith(".sh")):
        names = ", ".join([own.ranks.rank.strip("$"), *own.more_ranks])
        alone = "launcher" in file.own and file.shared.get("launcher") == "none"
        why = "are not set" if alone else "programs that read them find RANK, and so on"
        yield hint(launch.line, names, why)
    other = LAUNCHERS.get(str(file.shared.get("launcher")))
    if launch is None or "launcher" not in file.own or other is None or not other.of_mpi:
        return
    mpi = MPI_FLAVOURS[str(file.values.get("mpi", DEFAULT_MPI))]
    yield from differences.functions(script, mpi, launch.line, launch.command.node.text)
    for options, why in _OF_STEPS.items() if launch.row.by_scheduler else ():
        if launch.has(*options):
            yield hint(launch.line, options[0], f"{other.command} {why}")
    binds = launch.row.by_scheduler and _BINDING.search(launch.text("--cpu-bind")) is not None
    several = file.count("ranks_per_node") > 1 and any("bind-to none" in one for one in mpi.place)
    if binds and several and not binds_threads(script, file.variables):
        why = f"{other.command} binds no ranks: set cpu_bind"
        yield hint(launch.line, shortened(f"--cpu-bind={launch.text('--cpu-bind')}"), why)
    if (bind := gpu_binding(script, launch)) and file.count("ranks_per_node") > 1:
        at = launch.line if launch.has("--gpu-bind") else script.heeded["--gpu-bind"].line
        yield hint(at, f"--gpu-bind={bind}", f"{other.command} shows each rank all GPUs of the node")
    if (ranks := launch.row.ranks) and launch.outer is None and of_python:
        yield hint(launch.line, ranks.rank.strip("$"), "programs that read it find RANK, and so on")


def _code(file: JobFile) -> str:
    """Return the texts of a job file as they are in the script, but without quotes and braces."""
    own = [value for key, value in file.values.items() if key not in _NO_CODE]
    values = [*own, *(one for part in file.components for one in part.values())]
    values += [f"export {name}={value}" for name, value in file.variables.items()]
    lines = (" ".join(map(str, one)) if isinstance(one, list) else str(one) for one in values)
    return re.sub("[\"']", "", _PLAIN.sub(r"$\1", "\n".join(lines)))


def _remains(what: str, code: str) -> bool:
    """Return whether the words of a remark are in one line of the job file, which has no ``python`` before a
    program, and options between the words: ``mkdir -p logs``; of an assignment the name."""
    if name := re.match(r"\w+=(?=[\"']?[$`])", what):
        return name[0] in code
    text = re.sub("[\"']", "", _PLAIN.sub(r"$\1", what)).lstrip("$")
    words = text.removesuffix("...").split()  # of a command that is not shown as a whole
    words = words[1:] if len(words) > 1 and is_python(words[0]) else words
    code = re.sub(r"(?m)^\s*#(?![A-Z]).*", "", code) if len(words) == 1 else code
    end = r"(?!\w)" * text.isidentifier()
    return re.search("[^\n]*".join(map(re.escape, words)) + end, code) is not None


def _remains_by_variable(script: Script, remark: Remark, code: str) -> bool:
    """Return whether a remark is on a program that the script, and the job file, name by a variable."""
    words = [one.words[0] for one in script.commands if one.line == remark.line]
    named = [one for one in words if one.text.startswith("$") and _remains(one.text, code)]
    return any(remark.what.startswith(f"{script.constants.text(one)} ") for one in named)


def _warned(text: str, target: Dialect) -> set[str]:
    """Return the words of the warnings on the job file for another scheduler."""
    try:
        layer = layer_of(decode(text, "job.toml"), (), lambda _: "job.toml")
        spec = read_spec(target.scheduler.command_name, {}, (), layer)
    except JobgenError:
        return set()
    return set(re.findall(r"\w+", " ".join(foreign_variables.warnings(spec, target.scheduler))))
