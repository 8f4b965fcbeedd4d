"""The lines that a converted script gets before its first command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from jobgen.convert import start_directory
from jobgen.convert.differences import may_start_ranks
from jobgen.convert.request_reader import has_directives
from jobgen.convert.result import Definition, Edit, Remark, hint
from jobgen.convert.to_scheduler.launch_calls import in_words, other_launchers
from jobgen.convert.to_scheduler.mpirun_line import EXPORTS, exports_function
from jobgen.convert.unread_files import of_engines
from jobgen.convert.variable_names import (
    binds_threads,
    inner_names,
    is_for_all,
    is_own_export,
    kept,
    starts_workers,
)
from jobgen.launch.command_line import is_python
from jobgen.launch.wrappers import WRAPPERS
from jobgen.schedulers.base import fill
from jobgen.schedulers.request import Request
from jobgen.script.command_kinds import STATE, TOOLS
from jobgen.script.dialects.base import Dialect
from jobgen.script.dialects.script_request import ScriptRequest
from jobgen.script.launches import Launch
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions, literal
from jobgen.values.parsers import number

# Commands that do the same in each directory.
_ANYWHERE = (
    *("set", "echo", "printf", "date", "hostname", "module", "ml", "ulimit", "umask", "unset", "trap"),
    *("sleep", "whoami", "uname", "nvidia-smi", "true", ":"),
)
_SET = re.compile(r"\s*set( +[-+\w]+)*\s*;?\s*(#.*)?")  # a line with nothing else

# Programs that set OMP_NUM_THREADS for what they start, if it is not set; also in texts and in $(which ...).
# With -ntomp, mdrun refuses another number.
_SETS_THREADS = re.compile(
    r"(?m)^[^#\n]*(\btorchrun\b|\btorch\.distributed\.(run|launch)\b|\baccelerate\s+launch\b|\bdeepspeed\s+-"
    r"|\s-ntomp\b)"
)

_PREPARES = re.compile(r"\bgmx\w*\s+(?!mdrun)\w|\bgrompp\b")  # tools of GROMACS without threads

# mdrun divides the cores itself, and refuses another number; launchers in variables; scripts that read it.
_CHOOSES_THREADS = re.compile(r"(?m)^[^#\n]*(\bmdrun\b|\s-np\b|\$\{?\w+\}?\"? -n\b|\$\{?OMP_NUM_THREADS\b)")

# Options that bind threads, or the ranks of a launcher, counted from the first core of the node.
_PINS = re.compile(
    r"\bmdrun\b[^;&|]*\s(-pin\s+on)\b|\bnamd\d?\b[^;&|]*\s(\+setcpuaffinity)\b"
    r"|\b(?:mpirun|mpiexec|orterun)\b[^;&|]*\s(--?bind-to[- ](?:core|hwthread)\b)"
    r"|\b(taskset\s+(?:-c|--cpu-list)|likwid-pin\s+-c)\s|\bnumactl(?:\s+-\S+(?:\s[\w,+!]+)?)*?\s+(-C|--physcpubind)\b"
)

_THREADS = "OMP_NUM_THREADS"
_SIZES = re.compile("-l (select|nodes|ncpus|ppn|procs|mpiprocs|size|mpp)")  # of a job of PBS
_NO_PROGRAMS = (STATE | TOOLS) - {"eval", "xargs"}
_ONE_PROCESS = ("Rscript", "R", "julia", "matlab", "octave")  # on a node, like Python

_OF_JOB = "binds the job to its cores"

# A number of threads in a command: before the program, or in an option of a launcher.
_OF_COMMAND = re.compile(r"\bOMP_NUM_THREADS(=| +[\d$])")

# Options of mpirun that give each rank several cores.
_SEVERAL_CORES = re.compile(r"(?i)\bpe=(?!1\b)\w|[- ]-?cpus-per-(proc|rank)\b")
# An option with which a container has no variables of the job.
_CLEANS = re.compile(
    r"(?m)^(?!\s*#)[^\n]*?\b(?:singularity|apptainer)\s+(?:-\S+\s+)*(?:exec|run)\s+"
    r"(?:(?:-\S+|(?!-)[^\s:=]*[:=]\S*|\\)\s+)*?(--cleanenv|--containall|-e|-C)\s"
)


def for_bash(script: Script) -> bool:
    """Return whether the body of a script has been read."""
    return bool(script.tree.source) or not script.source


def has_first_line(script: Script) -> bool:
    """Return whether the first line names the shell."""
    return bool(script.lines) and script.lines[0].startswith("#!")


def line_starts(script: Script) -> list[int]:
    """Return the offset in bytes where each line begins, and the end of the last one."""
    source = script.source.replace(b"\r\n", b"\n")
    starts = accumulate((len(line) + 1 for line in source.split(b"\n")), initial=0)
    return [min(start, len(source)) for start in starts]


def start(
    script: Script, target: Dialect, content: ScriptRequest, defined: list[Definition], edits: list[Edit]
) -> list[Edit | Remark]:
    """Return the edit that inserts lines before the first command, but after ``set``.

    A script that is not for bash gets a remark on each line instead.
    """
    lines, of_site = list[str](), list[Edit | Remark]()
    if has_directives(script):
        lines += _directory(script, target, content.directory)
        if script.dialect.starts_at_home and not (target.starts_at_home or _changes_directory(script)):
            of_site += start_directory.at_home(script)  # of a site
        lines += [f"export {name}={_shell(value)}" for name, value in content.exports]
        lines += _threads(script, target, content)
        of_site += _open_threads(script, target, content, lines, edits)
        of_site += _open_binding(script, target)
        of_site += _without_threads(script, target)
    node_file = _node_file(script, target, content)
    lines += [*_redirections(script, content, target), *node_file]
    index = f"${{{target.variable('array_index')}:-}}"
    later = [] if script.request.array else [name for name, value in defined if value == index]
    always = [(name, value) for name, value in defined if name not in later]
    lines += [f"{name}={value}" for name, value in always]
    lines += ["export " + " ".join(name for name, _ in always)] if always else []
    unset = index.replace(":-", "+x")  # outside of an array
    lines += [f'[ -z "{unset}" ] || export {name}="{index}"' for name in later]
    lines += exports_function(script.dialect) if any(f"$({EXPORTS})" in edit.text for edit in edits) else []
    if not for_bash(script):
        why = "is missing: the script is not for bash"
        return [*of_site, *(Remark(script.directives.first_command or 1, line, why) for line in lines)]
    at = _behind_set(script)
    is_open = at and not script.source[:at].endswith(b"\n")  # the last line of a script without commands
    text = "\n" * bool(is_open) + "".join(f"{line}\n" for line in lines)
    traps = _own_traps(script, str(script.dialect.variable("node_file"))) if node_file else ()
    return [*of_site, Edit(at, at, text), *traps] if lines else of_site


def _own_traps(script: Script, variable: str) -> Iterator[Edit]:
    """Yield edits by which traps remove the node file, too, and see the status of the script."""
    removal = f'rm -f "${variable}"'
    for command in script.named("trap"):
        words = [word for word in command.arguments if word.text != "--"]
        if any(literal(word) in ("EXIT", "SIGEXIT", "0") for word in words[1:]):
            code, is_reset = words[0], words[0].text == "-"
            kept = f"'{removal}'" if is_reset else f"'(s=$?; {removal}; exit $s) && :; '"
            yield Edit(code.start, code.end if is_reset else code.start, kept)


def _shell(value: str) -> str:
    is_plain = re.fullmatch(r"[\w./:,+@%=-]*", value, re.ASCII)
    return value if is_plain else "'" + value.replace("'", "'\\''") + "'"


def _directory(script: Script, target: Dialect, directory: str | None) -> Iterator[str]:
    """Yield lines that change to the directory where the source starts the job."""
    source = script.dialect
    moved = source.starts_at_home != target.starts_at_home
    known = source.starts_at_home and (_changes_directory(script) or script.starts_at_submission)
    own = directory or "" if "directory" not in target.scheduler.request_forms else ""
    if moved and not known and not own.startswith("/"):
        start = target.variable("home" if source.starts_at_home else "submit_dir")
        yield f'cd "${start}" || exit 1  # where {source.family} starts a job'
    if "wd" in script.request.totals and target.starts_at_home:
        yield f'cd "${target.variable("submit_dir")}" || exit 1  # -l wd'
    if own and not (moved and own == "."):
        yield f"cd {_shell(own)} || exit 1"


def _changes_directory(script: Script) -> bool:
    """Return whether a directive or one of the first commands sets the directory."""
    if any(option.flag in ("-d", "-w") for option in script.options) or "wd" in script.request.totals:
        return True
    here = (one for one in script.commands if one.name not in _ANYWHERE or _writes_here(one.node))
    if (first := next(here, None)) is None or first.name not in ("cd", "pushd"):
        return False
    return start_directory.leaves_start(script, first) and not start_directory.reads_start(script, first)


def _writes_here(command: Node) -> bool:
    """Return whether a command writes a file whose path depends on the directory."""
    above = command.child_of("redirected_statement")
    redirections = (one.text for one in above.children if one.type == "file_redirect") if above else ()
    return any(re.match(r"\d*&?>+\|?\s*[\"']?[\w.]", one) for one in redirections)


def _threads(script: Script, target: Dialect, content: ScriptRequest) -> list[str]:
    """Return a line that sets the threads as the source does, unless the script exports OMP_NUM_THREADS.

    PBS Pro sets it to the cores of a node, and the others leave it unset: then OpenMP counts the cores to
    which Slurm binds a job, and srun a rank. They are the value where the new job may have more.
    """
    source = script.dialect
    setter = (source if source.sets_threads else target).title
    why = f"  # {setter} sets it to the cores of a node"
    if threads_of_ranks(script, target, content):
        why = why if target.sets_threads else f"  # {source.node_step} binds a rank to its cores"
        return [f"export OMP_NUM_THREADS={_cores_of_rank(script, content)}{why}"]
    request, places = script.request, [one for name, _, one in script.assignments if name == _THREADS]
    own = any(not one.child_of("command") for one in places)  # for programs behind
    if _names_threads(script, content) or (source.sets_threads and target.sets_threads):
        return []
    if source.sets_threads:
        cores = number(request.chunks[0].get("ncpus")) if request.chunks else request.cpus_per_rank
        alps = "-l mppwidth" in script.heeded and "-l mppdepth" not in script.heeded  # the depth of aprun
        cores = (None if alps else cores) or (1 if own or _has_default_core(script) else None)
        return [f"export OMP_NUM_THREADS={cores}{why}"] if cores else []
    known = _are_known(script, content)
    if target.sets_threads:
        return [] if known else [f"unset OMP_NUM_THREADS{why}"]
    cores = (request.ranks_per_node or 1) * (request.cpus_per_rank or 1)
    if not known or target.node_step is not None or not _binds_programs(script) or _has_engines(script):
        return []
    return [f"export OMP_NUM_THREADS={cores}  # {source.title} {_OF_JOB}"]


def _has_default_core(script: Script) -> bool:
    """Return whether the script is surely for PBS Pro and requests no cores: the server gives it one."""
    return not any(map(_SIZES.match, script.heeded)) and script.is_sure


def _are_known(script: Script, content: ScriptRequest) -> bool:
    """Return whether the cores to which the source binds the threads of a program are known."""
    whole = script.request.exclusive or len(content.components) > 1 or _leaves_cores(script)
    own = "OMP_NUM_THREADS" in script.values or _starts_threads(script)
    unread = script.dialect.origin(script.heeded, "cpus_per_rank") and script.request.cpus_per_rank is None
    return not (own or whole or unread) and _are_of_job(script, content)


def _binds_programs(script: Script) -> bool:
    """Return whether Slurm binds programs to some cores of a node."""
    return _binds_job(script) and bool(_programs(script))


def _binds_job(script: Script) -> bool:
    """Return whether Slurm binds a job to some cores of a node.

    A site may give whole nodes to a job that counts only nodes, or nothing.
    """
    request, source = script.request, script.dialect
    counted = ("ranks", "ranks_per_node", "cpus_per_rank")
    parts = bool(request.mem or request.gpus_per_node)  # of a node
    shared = parts and source.scheduler.keys.nodes not in script.heeded
    binds = shared or any(source.origin(script.heeded, one) is not None for one in counted)
    return binds and source.node_step is not None


def _has_engines(script: Script) -> bool:
    """Return whether workflow engines pass on the environment of the job to those that they submit."""
    return any(of_engines(script, "snakemake"))


def _are_of_job(script: Script, content: ScriptRequest) -> bool:
    """Return whether the number that PBS Pro sets is that of the cores to which Slurm binds a program.

    Launchers bind each rank to some of them, and a program that is not known may be one if the job has
    several tasks. Torque binds no program.
    """
    request, of_rank = script.request, _cores_of_rank(script, content)
    several = (request.ranks_per_node or 1) > 1 or (request.ranks or 1) > (request.nodes or 1)
    starts, each = _has_other_launchers(script), request.nodes is None  # a rank is a chunk
    if not several and of_rank == 1:
        return True
    binds = script.dialect.node_step is not None
    if not binds or (starts and not (several and each)) or _CHOOSES_THREADS.search(script.tree.text):
        return False
    if not several or (each and (starts or script.launches)):
        return of_rank == (request.cpus_per_rank or 1)
    if any(launch.program for launch in script.launches):
        return not each and all(map(_is_unbound, script.launches))
    programs = _programs(script)
    return not programs or (not each and all(one in _ONE_PROCESS or is_python(one) for one in programs))


def _open_threads(
    script: Script, target: Dialect, content: ScriptRequest, lines: Sequence[str], edits: Sequence[Edit]
) -> Iterator[Remark]:
    """Yield a remark on a number of threads that the ``lines`` leave open: on whole nodes, and where the
    ``edits`` give the ranks several cores."""
    request, set_, source = script.request, any("OMP_NUM_THREADS" in line for line in lines), script.dialect
    if _choose_threads(script) and not starts_workers(script, script.tree):
        return
    if source.sets_threads and not target.sets_threads:
        named = set_ or _names_threads(script, content) or _get_threads(script)
        deep = any(re.search(r"--cpus-per-task=(?!1\b)", one.text) for one in edits)
        left = (request.exclusive or deep) and not named and bool(_programs(script))
        why = f"{source.title} sets it to the cores of a chunk, which the request does not name"
    else:
        own = any("OMP_NUM_THREADS" in one.text for one in script.tree.all("unset_command"))
        unset = any(line.startswith("unset OMP_NUM_THREADS ") for line in lines)
        alone = not (target.sets_threads or script.launches or _has_other_launchers(script))
        alone &= _binds_programs(script)
        # Workers get no number for their ranks.
        alone |= not target.sets_threads and starts_workers(script, script.tree) and bool(_steps(script))
        alone &= not _names_threads(script, content)
        alone &= _has_engines(script) or not _are_known(script, content)
        unset |= not set_ and (_leaves_cores(script) or alone)
        left = own or (unset and not _get_threads(script))
        left &= source.node_step is not None and not request.exclusive
        why = f"is unset: unless {target.title} binds the job to its cores, "
        why += "OpenMP uses those of the whole node"
    tasks = (request.ranks or 1) > (request.nodes or 1) or (request.ranks_per_node or 1) > 1
    whole = any(_OF_JOB in line and "OMP_NUM_THREADS=1 " not in line for line in lines)
    if tasks and may_start_ranks(script) and whole:
        why = "is set to the cores of all tasks: ranks that a program starts itself need those of one"
        left = True
    if left:
        fields = ("cpus_per_rank", "ranks_per_node", "ranks", "nodes")
        found = next(filter(None, (source.origin(script.heeded, one) for one in fields)), None)
        yield hint(found.option.line if found else 1, "OMP_NUM_THREADS", why)


def _without_threads(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on the first container whose program does not get the number of threads of the job."""
    text = "\n".join(script.lines)
    binds = target.node_step is None and not script.request.exclusive and _binds_job(script)
    if not binds or _choose_threads(script) or re.search(r"ENV_OMP_|--env\S*[ =]\S*OMP_", text):
        return
    if found := _CLEANS.search(text):
        line = text.count("\n", 0, found.start(1)) + 1
        why = "keeps OMP_NUM_THREADS of the job from the program: "
        why += f"unless {target.title} binds the job to its cores, it may use the whole node"
        yield hint(line, found[1], why)


def _open_binding(script: Script, target: Dialect) -> Iterator[Remark]:
    """Yield a remark on threads that the script binds to cores, of which Slurm gives each job its own."""
    alone = script.dialect.node_step is not None and target.node_step is None
    alone &= not script.request.exclusive and (script.request.nodes or script.request.ranks or 1) == 1
    name = binds_threads(script)
    places = [(node.line, name) for one, _, node in script.assignments if name and one == name]
    options = ((one.line, _PINS.search(one.node.text)) for one in script.runs)
    places += [(line, next(filter(None, found.groups()))) for line, found in options if found]
    if alone and places and _programs(script):
        line, name = places[0]
        why = f"unless {target.title} binds the job to its cores, threads are bound to those of the whole "
        yield hint(line, name, f"{why}node, which other jobs may use")


def _programs(script: Script) -> set[str]:
    """Return the names of the programs that may use several cores."""
    return script.program_names - script.functions.keys() - _NO_PROGRAMS


def _cores_of_rank(script: Script, content: ScriptRequest) -> int:
    """Return the cores of a rank: the least number of those that the launchers and the directives name."""
    of_job = min(one.cpus_per_rank or 1 for one in content.components or [script.request])
    return min((one.number("-c", "--cpus-per-task") or of_job for one in _steps(script)), default=of_job)


def _get_threads(script: Script) -> bool:
    """Return whether the script has a value of OMP_NUM_THREADS for each of its programs: exported, or in the
    command itself. One that stays in the shell is for none of them."""
    given = [_OF_COMMAND.search(one) or _SETS_THREADS.search(one) for one in _texts_of_programs(script)]
    return is_for_all(script, "OMP_NUM_THREADS") or (bool(given) and all(given))


def _choose_threads(script: Script) -> bool:
    """Return whether all programs choose their threads themselves, or a text that is not read does."""
    if not _starts_threads(script):
        return False
    texts = _texts_of_programs(script)
    return all(map(_SETS_THREADS.search, texts)) or not any(map(_SETS_THREADS.search, texts))


def _texts_of_programs(script: Script) -> list[str]:
    """Return the commands of the programs that may use several cores."""
    others = _NO_PROGRAMS | script.functions.keys()
    texts = [one.node.text for one in script.runs if one.name not in others]
    return [text for text in texts if not _PREPARES.search(text)]


def _names_threads(script: Script, content: ScriptRequest) -> bool:
    """Return whether programs get the number of threads from the script, whatever its scheduler sets."""
    of_job = any(name == "OMP_NUM_THREADS" for name, _ in content.exports)
    given = of_job or is_own_export(script, _THREADS)
    given &= "OMP_NUM_THREADS" not in script.values or "OMP_NUM_THREADS" in kept(script)
    return given and not re.search(r"\$\{OMP_NUM_THREADS:?=", script.tree.text)


def _starts_threads(script: Script) -> bool:
    """Return whether a program chooses its threads itself, and fails or uses others with OMP_NUM_THREADS."""
    by_launcher = any(launch.row.once_a_node for launch in script.launches)
    by_launcher |= _SETS_THREADS.search(script.tree.text) is not None
    return by_launcher or starts_workers(script, script.tree)


def threads_of_ranks(script: Script, target: Dialect, content: ScriptRequest) -> bool:
    """Return whether the new script sets the threads of ranks that use some of the cores of a node."""
    own = _names_threads(script, content) or "OMP_NUM_THREADS" in script.values or _starts_threads(script)
    if script.dialect.sets_threads or own:
        return False
    request = script.request
    several = any((one.ranks_per_node or 1) > 1 for one in content.components or [request])
    several |= bool(request.exclusive and request.cpus_per_rank)  # the other cores of the node
    steps = _steps(script)
    if not request.exclusive or any(one.number("-c", "--cpus-per-task") for one in steps):
        several |= any(_starts_several(one, request) for one in steps)
    known = not request.exclusive or request.cpus_per_rank is not None or target.sets_threads
    several |= not target.sets_threads and request.nodes is None and (request.ranks or 1) > 1
    bound = [one for one in steps if one.program and not _is_unbound(one)]
    names = [(script.constants.value(one.program[0]), one.program[1:]) for one in bound]
    started = any(name not in TOOLS or (name in WRAPPERS and words) for name, words in names)
    started |= target.sets_threads and _starts_on_others(script)
    return several and known and target.node_step is None and started


def _starts_on_others(script: Script) -> bool:
    """Return whether another launcher starts ranks on other nodes, where PBS Pro sets the threads again,
    unless it passes them on (start_process in src/resmom/start_exec.c)."""
    several_cores = any(_SEVERAL_CORES.search(one.command.node.text) for one in _others(script))
    alone = several_cores or script.request.nodes == 1 or script.request.exclusive
    return not alone and _has_other_launchers(script)


def _has_other_launchers(script: Script) -> bool:
    return bool(_others(script)) or any(other_launchers(script, ())) or in_words(script)


def _others(script: Script) -> list[Launch]:
    """Return the calls of launchers that the source does not have."""
    return [one for one in script.launches if one.kind != script.dialect.node_step]


def _steps(script: Script) -> list[Launch]:
    """Return the calls of the launcher of the source."""
    return [one for one in script.launches if one.kind == script.dialect.node_step]


def _starts_several(launch: Launch, request: Request) -> bool:
    """Return whether a launcher starts several ranks on a node, by its own options."""
    each = launch.number("--ntasks-per-node", "-ppn", "--ppn", "-perhost") or 1
    nodes = launch.number("-N", "--nodes") or request.nodes or 1
    return each > 1 or (launch.number("-n", "-np", "--ntasks", "--np") or 1) > nodes


def _leaves_cores(script: Script) -> bool:
    """Return whether the launcher of the source binds the only rank of a node to no cores, of which no
    directive names a number: it may use all of them."""
    unbound = any(one.program and _is_unbound(one) for one in _steps(script))
    return unbound and script.request.cpus_per_rank is None and (script.request.ranks_per_node or 1) == 1


def _is_unbound(launch: Launch) -> bool:
    """Return whether srun does not bind the ranks to their cores."""
    return not {"none", "no"}.isdisjoint((launch.options.get("--cpu-bind") or "").split(","))


def _redirections(script: Script, content: ScriptRequest, target: Dialect) -> Iterator[str]:
    """Yield the lines that write the output to files whose names the scheduler does not support."""
    mode = script.heeded.get("--open-mode")
    more = ">" * (mode is not None and mode.value.lower().startswith("a"))
    logs, index = content.script_logs, target.variable("array_index")
    of_array = content.index_later or content.request.array
    codes = {
        **dict.fromkeys("jJA", target.job_number),
        "a": f"${{{index}:-{script.dialect.no_index}}}" if content.index_later else f"${index}",
        "x": (of_array and target.name_of_array) or f"${target.variable('job_name')}",
        "N": "$(hostname -s)",
        "u": f"${target.variable('user')}",
        "%": "%",
    }
    signs = {"output": ">", "error": "2>"}
    for key, path in logs.items():
        quoted = re.sub(r'([\\$`"])', r"\\\1", path)
        own = dict.fromkeys("jJ" * bool(of_array), f"{target.job_number}${{{index}:+_${index}}}")
        name = fill(quoted, codes if "%a" in path else codes | own)
        joined = " 2>&1" if key == "output" and content.request.join else ""
        yield f'exec {signs[key]}{more} "{name}"{joined}'


def reads_node_file(script: Script) -> bool:
    """Return whether a script reads the variable of the node file, exports it, or names it for others."""
    file = str(script.dialect.variable("node_file"))
    read = any(name == file for name, _ in script.expansions) or file in inner_names(script)
    elsewhere = rf"[\"'{{]{file}[\"'}}]|(?i:env\w*(\.get)?\W+|\bexport( \w+)* ){file}(?![\w=])"
    return read or re.search(elsewhere, script.tree.text) is not None


def _node_file(script: Script, target: Dialect, content: ScriptRequest) -> list[str]:
    """Return lines that write the node file, if the script uses it and only the source has one."""
    file = script.dialect.variable("node_file")
    if target.variable("node_file") or not reads_node_file(script):
        return []
    counted = 1 if script.request.nodes is not None else None if script.request.ranks is not None else 0
    slots = [one.lines_per_node or counted for one in content.components or [script.request]]
    comment = f"# The hosts of the job, one line a slot, as {script.dialect.family} lists them."
    lines = target.write_node_file(str(file), *slots)
    if lines and _copies_mode(script, str(file)):
        lines.append(f'chmod 644 "${file}"  # the copy keeps the mode')
    return [comment, *lines] if lines else []


def _copies_mode(script: Script, file: str) -> bool:
    """Return whether a command copies the file of a variable with its mode: cp -p."""
    copies = (one for one in script.named("cp", "rsync", "scp") if file in dict(expansions(one.node)))
    return any(re.search(r"\s(-[a-zA-Z]*[pa]|--(preserve|archive|perms))", one.node.text) for one in copies)


def _behind_set(script: Script) -> int:
    """Return the offset of the first line that is a command, but not ``set``."""
    starts = line_starts(script)
    line = script.directives.first_command or len(script.lines) + 1
    for command in script.named("set"):
        if command.line == line and _SET.fullmatch(script.lines[line - 1]):
            line += 1
    at = starts[min(line, len(starts)) - 1]
    within = next((one.line for one in script.tree.children if one.start < at < one.end), line)  # : "TEXT"
    return starts[min(within, line, len(starts)) - 1]
