"""Remarks on the programs of a job: how they start, and on how many ranks and cores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from jobgen.convert import differences
from jobgen.convert.launch_nodes import ALL
from jobgen.convert.request_reader import has_directives
from jobgen.convert.result import Remark, hint, remark_on, shortened, shown
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.statements import IN_LOG
from jobgen.convert.variable_names import names_read
from jobgen.launch.command_line import is_python
from jobgen.launch.launchers import LAUNCHERS
from jobgen.script.command_kinds import PRINT, STATE
from jobgen.script.commands import Command, commands
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import Node, assignments, parse
from jobgen.script.word_lists import code_text
from jobgen.values.parsers import mebibytes

_TASKS = ("SLURM_NTASKS_PER_NODE", "SLURM_NTASKS", "SLURM_NPROCS")

_RUNS_PYTHON = re.compile(r"\bpython[\d.]* (-\S+ )*\S+\.py\b")  # in a text for another shell

# Tools that measure or debug what they start.
_WATCH = frozenset(("gdb", "ltrace", "ncu", "nsys", "nvprof", "perf", "strace", "time", "valgrind"))
_NODE_FILE = r"\"?\$(?:\{(?:PBS_NODEFILE)\}|(?:PBS_NODEFILE)\b)\"?"
_COUNTS_LINES = "|".join(
    (
        r"\bwc( -l| --lines)?( -)?\s*<?\s*FILE",
        r"(\bcat\s+|<\s*)FILE\s*\|\s*wc (-l|--lines)\b",
        r"\bgrep -c (\.|'[.^$]?'|\"[.^$]?\")\s+FILE",
        r"\bawk 'END *\{ *print NR;? *\}'\s+<?\s*FILE",
        r"\$PBS_NP\b|\$\{PBS_NP\}",
    )
)  # of the file of hosts
_FINDS_PYTHON = ("module", "ml", "source", ".", "conda", "mamba", "micromamba", "spack", "eval", "pyenv")
_FINDS_NONE = re.compile(
    r"^(module|ml)( -\S+)* (purge|reset|list|avail|(use|unload|rm) [^;&|]*)$"
    r"|^(conda|mamba|micromamba) (install|create|info|env|list)\b"
    r"|^(source|\.) /etc/profile(\.d/(modules|lmod)\.\w+)?$"
)
_NO_PYTHON = re.compile(
    r"(?i)(load|add|unload|rm|swap|switch|-.*)$|(?!.*(python|conda|torch|tensorflow))(\S+/)?(cuda|cudnn|cudatoolkit"
    r"|nccl|gcc|gnu|nvhpc|openmpi|mpich|mvapich2?|impi|intel-?mpi|hdf5|fftw|mkl|openblas|gsl|boost|cmake|git|java"
    r"|singularity|apptainer|shifter|slurm|intel|nvidia|mpi|compilers?|netcdf|pgi|prgenv|craype)([-_/.\d]\S*)?$"
)  # modules with compilers, libraries and tools
# A value of PATH with a folder that may have a python.
_OF_PYTHON = re.compile(r"(?i)(?!.*cuda).*(python|conda|mamba|env/|\.local|/bin(?=:|\W*$))")
_NO_START = {"grep", "alias", "type", "which", "command", "hash", "man", "pkill", "killall", "pgrep"}
_NO_START |= PRINT | STATE
# An option whose value is the name of a launcher, and not a command.
_NAMES_LAUNCHER = re.compile(
    r"-[^=]*(launch|mpi|run|backend|sched|exec|cluster|engine|type|mode|param)[^=]*$"
)


def without_directives(script: Script) -> Iterator[Remark]:
    """Yield a remark on a script that requests nothing."""
    if not has_directives(script):
        why = "the script requests nothing: the job has what its commands name, and jobgen's defaults"
        yield hint(1, f"without {script.dialect.scheduler.prefix}", why)
        yield from differences.own_jobs(script, "its options are none of the job file")


def timed(_: Script, file: JobFile, program: Command) -> Iterator[Remark]:
    """Yield a remark on a ``time`` that the program loses."""
    texts = [program.name, *map(os.path.basename, program.literals)]
    if texts.count("time") > len(re.findall(r"(?:^|[\s;|&])(?:\S*/)?time\s", " ".join(file.program))):
        why = "is left out: the log of the job ends with the time of the whole job"
        yield hint(program.line, "time", why)


def by_other_command(script: Script, file: JobFile) -> Iterator[Remark]:
    """Yield a remark on each command that gets a launcher and its program, as a tool that measures them."""
    known = {name for row in LAUNCHERS.values() if row.by_scheduler or row.of_mpi for name in row.names}
    of_launches = {id(one.command.node) for one in script.launches}
    each = file.values.get("ranks_per_node", 1)
    for one in script.runs:
        texts = [os.path.basename(text) for text in one.literals]
        pairs = zip(("", *one.literals), texts, strict=False)
        found = (name for before, name in pairs if name in known and not _NAMES_LAUNCHER.match(before))
        if (name := next(found, "")) and one.name not in _NO_START and id(one.node) not in of_launches:
            why = f"how it starts ranks by {name} is not read: the job requests {each} on a node"
            yield remark_on(one, why, lost=True)


def measured(script: Script, launch: Launch, words: Sequence[Node]) -> Iterator[Remark]:
    """Yield a remark on a tool that watches the launcher in the script, and ranks in the job."""
    first = words[0].text.strip('"') if words and launch.outer is None else ""
    values = [one.text for one in script.values.get(re.sub(r"[${}]", "", first), ())]
    if not _WATCH.isdisjoint(re.findall(r"[\w.-]+", " ".join([os.path.basename(first), *values]))):
        why = "watches the launcher in the script, and each rank in the job"
        yield hint(launch.line, os.path.basename(first), why)


def in_texts(script: Script, launch: Launch, evaluated: bool) -> Iterator[Remark]:
    """Yield a remark on what follows the program in the text that it is from: ``A="srun ./a > b"``.

    ``evaluated``: a shell reads the text, with its redirections and other commands.
    """
    inner = launch.around
    texts = [(inner.source, inner.end)] if inner and inner.source is not script.tree.source else []
    if launch.command.name == "eval":
        code = " ".join(map(code_text, launch.command.arguments)).encode()
        texts += [(code, one.node.end) for one in commands(parse(code))][:1]
    for source, end in texts:
        rest = source[end:].decode("utf-8", "replace").strip()
        if not re.match(r"\d?[<>|;&]", rest):
            continue
        into_file = re.fullmatch(r"(1?>|&>|\| *tee )[^;&|<]*(2>&1)?", rest)
        why = "is left out: bash reads no such signs in the value of a variable, and passes them as words"
        alone = "is left out: the job file starts one program, with its output in the log"
        why = (IN_LOG if into_file else alone) if evaluated else why
        what = rest if into_file or not rest.startswith(";") else source.decode("utf-8", "replace")
        yield Remark(launch.line, shortened(what), why, not (evaluated and into_file))


def python(script: Script, file: JobFile, command: Command) -> Iterator[Remark]:
    """Yield a remark if jobgen's python3 may be another program than the python of the script, which is that
    of an image in a container."""
    values = (value.text for name, value, _ in assignments(script.tree) if name == "PATH")
    paths = any(map(_OF_PYTHON.match, values))
    if "container" in file.values or not (paths or any(map(_finds_python, script.running(*_FINDS_PYTHON)))):
        yield hint(command.line, "python", "jobgen runs it as python3")


def _finds_python(command: Command) -> bool:
    """Return whether the python of a script may be the one of a module, an environment or a sourced file."""
    words = [word.text.strip("\"'") for word in command.arguments]
    tools = command.name in ("module", "ml") and all(map(_NO_PYTHON.match, words))
    return not tools and not _FINDS_NONE.search(command.node.text)


def old_launcher(launch: Launch, program: Sequence[str], old: bool) -> Iterator[Remark]:
    """Yield a remark if a launcher of Python 2 starts a program that jobgen starts with python3.

    ``old``: the environment of the script is one of Python 2.
    """
    texts = map(os.path.basename, launch.front)
    named = next((text for text in texts if re.match(r"python(2|$)", text)), "")
    if (named[6:] or (old and named != "python3")) and (program[0] == "-m" or program[0].endswith(".py")):
        why = f"is of Python 2: jobgen starts {program[0]} with python3"
        yield Remark(launch.line, named or launch.kind, why)


def alone(script: Script, file: JobFile, command: Command, launch: Launch | None) -> Iterator[Remark]:
    """Hide the numbers of tasks, which jobgen requests, from a program that uses several GPUs and has no
    launcher, or one rank of Python on each node; yield a remark.

    Lightning 2 takes SLURM_NTASKS, if it is set, for the number of ranks, and starts none. It compares its
    devices with SLURM_NTASKS_PER_NODE.
    """
    if launch is not None:
        each = launch.kind == script.dialect.node_step and "--ntasks-per-node" not in launch.options
        of_python = any(is_python(os.path.basename(word.text)) for word in launch.program)
        if script.is_pbs or not (each and of_python and file.count("ranks_per_node") == 1):
            return
    gpus = str(file.values.get("gpus_per_node", 0)).rpartition(":")[2]
    if int(gpus) < 2 or "--ntasks-per-node" in script.heeded:
        return
    counts = DIALECTS["slurm"].set_by_options["SLURM_NTASKS"]
    if launch is not None or not script.heeded.keys().isdisjoint(counts):
        file.hide(_TASKS[0])
        why = f"is not set, as in the script: a library may compare it with the {gpus} GPUs"
        yield hint(command.line, _TASKS[0], why)
        return
    file.hide(*_TASKS)
    where = "in a job for Slurm" if script.is_pbs else "as in the script"
    why = f"are not set, {where}, so that a library starts its own ranks on {gpus} GPUs"
    yield hint(command.line, ", ".join(_TASKS), why)


def alone_in_blocks(file: JobFile) -> None:
    """Hide the numbers of tasks from Python in the blocks, too, if they are hidden from the program."""
    found = (one for text in file.blocks for one in commands(parse(text.encode())))
    runs = any(is_python(one.name) or _RUNS_PYTHON.search(one.node.text) for one in found)
    hidden = re.search(rf"(\bunset|^env)((?: -u)? ({'|'.join(_TASKS)})\b)+", " ".join(file.program))
    if runs and hidden:
        names = [one for one in _TASKS if one in hidden[0].split()]
        file.values["setup"] = f"unset {' '.join(names)}\n{file.text_of('setup')}"


def tasks(script: Script, file: JobFile, program: Launch | None) -> Iterator[Remark]:
    """Yield remarks on commands that read another number of tasks or cores, or start other ranks."""
    request = script.request
    each, nodes = request.ranks_per_node, request.nodes or 1
    total = request.ranks or (each and each * nodes)
    new_each, cores = file.count("ranks_per_node"), file.count("cpus_per_rank")
    own = {one.command.node.start for one in (program, program and program.outer) if one}
    words = " ".join(["\n".join(file.blocks), *file.program])
    per_node = file.count("cpus_per_node", new_each * cores)
    slots = per_node if script.dialect.scheduler.behaviour.hosts_by_core else new_each
    for launch in script.launches:
        # SLURM_NTASKS, which each job of jobgen has, limits --ntasks-per-node. Measured on Slurm 22.05.
        options = [one for one in launch.row.line.of_node if launch.has(one)]
        by_node = launch.kind == script.dialect.node_step and bool(options) and not total
        ranks = (launch.each or 0) * nodes if by_node else total or nodes
        counted_by_job = (launch.row.by_scheduler or launch.row.of_mpi) and not launch.has(*ALL)
        counted_by_job &= by_node or not (options or launch.text("--map-by", "-map-by").startswith("ppr:"))
        here = launch.command.node.start not in own and launch.command.node.text in words
        if counted_by_job and here and launch.program and ranks != slots * nodes:
            given = ranks or f"those of {options[0]}"
            why = f"starts {slots * nodes} in the job, as many as it has, and {given} in the script"
            yield hint(launch.line, f"the ranks of {shown(launch.command.node)}", why)
    if script.is_pbs:
        yield from _lines_of_hosts(script, words, nodes, slots)
        return
    named = set(re.findall(r"\w+", words))
    read = sorted(names_read(script.tree), key=lambda one: -one[0].start)
    lines = {node.text: node.line for node, _ in read}
    for name, (old, new) in sizes_of_tasks(script, file).items():
        fixed = script.constants.named(name) if name not in named else None  # the number stands in its place
        if name in lines and (name in named or fixed) and str(old) != str(fixed or new):
            why = f"is {fixed or new or 'not set'} in the job, and "
            why += f"{'not set' if old is None else old} in the script"
            yield hint(lines[name], f"${name}", why)


def sizes_of_tasks(script: Script, file: JobFile) -> Mapping[str, tuple[int | str | None, int | str | None]]:
    """Return the variables of Slurm with sizes of the request: the values in the script and in the job."""
    request = script.request
    each, nodes = request.ranks_per_node, request.nodes or 1
    total = request.ranks or (each and each * nodes)
    new_each, cores = file.count("ranks_per_node"), file.count("cpus_per_rank")
    per_node = file.count("cpus_per_node", new_each * cores)
    old_cores = (request.cpus_per_rank or 1) * (each or -(-(total or 1) // nodes))
    new_mem = mebibytes(file.text_of("mem"))
    of_node = script.heeded.get("--gpus-per-node")
    by_gres = request.accelerator != "gpu" or any(one.startswith("--gres=") for one in file.list("directive"))
    new_gpus = None if by_gres else file.text_of("gpus_per_node") or None
    numbers: dict[str, tuple[int | str | None, int | str | None]] = {
        **dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), (total, new_each * nodes)),
        "SLURM_NTASKS_PER_NODE": (each if "--ntasks-per-node" in script.heeded else None, new_each),
        "SLURM_TASKS_PER_NODE": (each or -(-(total or 1) // nodes), new_each),
        "SLURM_CPUS_PER_TASK": (request.cpus_per_rank, cores),
        "SLURM_MEM_PER_NODE": (request.mem if "--mem" in script.heeded else None, new_mem),
        "SLURM_GPUS_PER_NODE": (of_node and of_node.value, new_gpus),
    }
    if not request.exclusive:
        numbers |= dict.fromkeys(("SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE"), (old_cores, per_node))
    return numbers


def _lines_of_hosts(script: Script, code: str, nodes: int, new: int) -> Iterator[Remark]:
    """Yield a remark on a command in the code of a job that counts the lines of the file of hosts, or on a
    variable with their number, if the job has ``new`` of them for a node, and the script another number."""
    if (old := script.request.lines_per_node) is None or old == new or len(script.request.chunks) > 1:
        return
    names = [name for name, value, _ in script.assignments if re.fullmatch(_NODE_FILE, value.text)]
    file = _NODE_FILE.replace("PBS_NODEFILE", "|".join(["PBS_NODEFILE", *names]))
    pattern = re.compile(_COUNTS_LINES.replace("FILE", file))
    for at, line in enumerate(script.lines, 1):
        if (found := pattern.search(re.sub(r"(^|\s)#.*$", "", line))) and found[0] in code:
            yield hint(at, found[0], f"is {nodes * new} in the job, and {nodes * old} in the script")
            return
