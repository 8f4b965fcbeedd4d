"""Command lines of mpirun and mpiexec."""

from __future__ import annotations

import re
from dataclasses import replace

from jobgen.convert.to_scheduler import srun_line
from jobgen.convert.to_scheduler.launch_line import LaunchLine, LaunchWords, Unreadable, Value
from jobgen.launch.bare_options import MPI
from jobgen.launch.launchers import LAUNCHERS, MpiFlavour
from jobgen.schedulers.request import Request
from jobgen.script.dialects.base import Dialect

NAMES = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "aprun", "mpirun_rsh", "mpiexec_mpt")
# Further launchers, which no other scheduler has, or whose options are not known here.
OTHERS = re.compile(
    r"[\w-]*([Mm]pi(exec|run)|MPIRUN)[\w.-]*|ibrun|jsrun|orterun|aprun|charmrun|ccc_mprun|mpprun|lrun|prun|poe|mpicmd|mpicasa"
    r"|ccmrun|cafrun|upcrun|upcxx-run|gasnetrun_\w+|oshrun|shmemrun|horovodrun|prterun|yhrun"
    r"|greasy|paramrun"  # which start a list of tasks
)
# The function of the new script that prints -x for each variable, for an mpirun that passes on only those. It
# leaves out what each node sets for itself, whose value is that of all nodes only if the script sets it.
EXPORTS = "mpi_exports"
_STARTS = "SSH_|XDG_|BASH"
_OF_NODE = "HOME|HOST|HOSTNAME|USER|LOGNAME|SHELL|SHELLOPTS|SHLVL|TMPDIR|PWD|OLDPWD|DISPLAY|_"
_OF_RANK = r"((LOCAL_)?(RANK|SIZE)|FD|PORT|ID|SPAWNED)\b"  # of PMI, whose other variables are settings
_DEVICES = "_VISIBLE_DEVICES"
# Those of them that each job has in its environment: a script that sets one exports it.
IN_ENVIRONMENT = re.compile(rf"HOME|USER|LOGNAME|SHELL|TMPDIR|\w+{_DEVICES}")
SET_BY_NODE = re.compile(rf"({_STARTS}|PMI(?![X2]?_{_OF_RANK}))\w*|{_OF_NODE}|\w+{_DEVICES}")
_EXPORTS_LINES = (
    f"{EXPORTS}() {{",
    "  awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ &&",
    f"    name !~ /^(PMI|OMPI_|PRTE_|{_STARTS}|PBS_(NODENUM|TASKNUM|VNODENUM|MOMPORT|ENVIRONMENT)$)/ &&",
    f"    name !~ /^({_OF_NODE})$/ &&",
    f'    name !~ /{_DEVICES}$/) print "-x", name }}\'',
    "}",
)
_FLAGS = (
    *LAUNCHERS["mpirun"].line.flags,
    *("--envall", "-envall", "-genvall", "--genvall", "-verbose", "--verbose", "--quiet", "--line-buffer"),
    *("-print-rank-map", "-prepend-rank", "-nolocal", "--nooversubscribe", "-nooversubscribe", "--novm"),
    *("--display-allocation", "--display-map", "--report-bindings"),
    *("--bynode", "-bynode", "--byslot", "-byslot"),
    *("--export", "--export-all"),  # of mpirun_rsh
)
_VALUES = {
    "-np": "ranks", "-n": "ranks", "--np": "ranks", "--n": "ranks", "-c": "ranks", "-hostfile": "hosts",
    "--hostfile": "hosts", "-machinefile": "hosts", "--machinefile": "hosts", "-f": "hosts",
    "-hosts": "hosts", "--hosts": "hosts", "-host": "host", "--host": "host", "-H": "host",
    "-x": "export", "--map-by": "map", "-map-by": "map",
    "--bind-to": "bind", "-bind-to": "bind", "-ppn": "each", "--ppn": "each",
    "-perhost": "each", "--perhost": "each", "-npernode": "each", "--npernode": "each", "-N": "each",
    "--depth": "cpus", "-d": "cpus", "-cpus-per-proc": "cpus", "--cpus-per-proc": "cpus",
    "-cpus-per-rank": "cpus", "--cpus-per-rank": "cpus", "--cpu-bind": "cpu_bind", "-cpu-bind": "cpu_bind",
    "--env": "env", "-env": "env", "-e": "env", "--genv": "env",
    "--mca": "mca", "-mca": "mca", "--gmca": "mca", "-gmca": "mca", "-genv": "env",
    "-wdir": "chdir", "--wdir": "chdir", "-wd": "chdir",
    "-bootstrap": "", "-launcher": "", "--launcher": "", "-rmk": "", "--prefix": "", "--pmi": "",
}  # fmt: skip
OF_NODE = {name for name, meaning in _VALUES.items() if meaning == "each"}  # the ranks of a node
_MODIFIERS = re.compile(":(overload-allowed|if-supported)")  # of a binding, which srun has anyway
_SHOWS = re.compile("--?(display-(map|allocation)|report-bindings|print-rank-map|verbose|v)")
_SINGLE = {
    **dict.fromkeys(("-pernode", "--pernode"), ("each", "1")),
    **dict.fromkeys(("-l", "--label", "--tag-output", "-tag-output", "-prepend-rank"), ("label", "")),
    **dict.fromkeys(("--oversubscribe", "-oversubscribe"), ("overcommit", "")),
    **dict.fromkeys(("-bind-to-core", "--bind-to-core"), ("bind", "core")),
    **dict.fromkeys(("-bind-to-none", "--bind-to-none"), ("bind", "none")),
}


def exports_function(source: Dialect) -> list[str]:
    """Return the lines of the function ``mpi_exports``."""
    command = LAUNCHERS["mpirun"].command
    why = f"# {source.title} gives the ranks the whole environment, this {command} what -x names: "
    return [f"{why}all but a node's variables.", *_EXPORTS_LINES]


def read(words: LaunchWords, stays: bool = False, line: LaunchLine | None = None) -> LaunchLine:
    """Return the options of mpirun; where the command ``stays``, those without a value need no counterpart.

    Raises:
        Unreadable: the line cannot be translated; ``line`` has the options before the fault.
    """
    line = line or LaunchLine()
    for word in words:
        if word.text.startswith(f"$({EXPORTS})"):
            continue
        name, equals, _ = word.text.partition("=")
        if not name.startswith("-"):
            line.exports.append(word.text)
            continue
        line.marks.append(name)
        if name in _SINGLE:
            meaning, text = _SINGLE[name]
            line.set(meaning, Value(text, text))
            line.notes += [(name, f"{srun_line.NAME} --label writes RANK: before a line")] * (
                meaning == "label"
            )
        elif name in _VALUES:
            _set(line, words, name, _VALUES[name], word.after(len(name) + 1) if equals else words.next())
        elif name not in (_FLAGS + MPI if stays else _FLAGS) and f"-{name}" not in _FLAGS:
            raise Unreadable(f"{word.text} has no counterpart")
        if re.fullmatch("--?bynode", name):
            line.values["cyclic"] = ""
        if re.fullmatch("--?nolocal", name):
            line.lost.append(name)
        if _SHOWS.fullmatch(name):
            line.notes.append((name, "is left out: srun does not print how and where the ranks start"))
    line.program = words.program
    return line


def _set(line: LaunchLine, words: LaunchWords, name: str, meaning: str, value: Value) -> None:
    if meaning == "export":
        line.exports += [value.text] * ("=" in value.text)
    elif meaning == "env":
        line.exports.append(value.text if "=" in value.text else f"{value.text}={words.next().text}")
    elif meaning == "mca":
        _parameter(line, value.text, words.next())
    elif meaning == "host":
        line.values["named"] = value.text
        raise Unreadable(f"{name} {value.text} has no counterpart")
    elif meaning == "map":
        _map(line, name, value)
    elif meaning == "cpu_bind":
        _cpu_bind(line, name, value)
    elif meaning == "bind":
        kind = _MODIFIERS.sub("", (value.known or value.text).lower())
        if kind in srun_line.WRITTEN_BINDINGS:
            line.values[meaning] = kind
        else:
            line.lost.append(f"{name} {value.text}")
    elif meaning:
        line.set(meaning, value)


def _parameter(line: LaunchLine, name: str, value: Value) -> None:
    """Read a parameter of Open MPI: the programs find it in the environment, if it is none of mpirun."""
    if name == "rmaps_base_mapping_policy":
        _map(line, name, value)
    elif name == "rmaps_base_oversubscribe":
        line.values["overcommit"] = ""
    elif name == "mca_base_env_list":
        line.exports += [one for one in value.text.strip("\"'").split(";") if "=" in one]
    elif name == "orte_abort_on_non_zero_status":
        line.lost.append(f"{name} {value.text}")
    else:
        line.exports.append(f"OMPI_MCA_{name}={value.text}")


def _map(line: LaunchLine, name: str, value: Value) -> None:
    text, number = re.sub("(?i):oversubscribe$", "", value.text), r"(\w+|\"?\$\{?\w+\}?\"?)"
    line.values |= {"overcommit": ""} if text != value.text else {}
    match = re.fullmatch(rf"(?:ppr:{number}:(?=node\b))?(node|slot|core)(?::pe={number})?", text, re.I)
    if match and match[1]:
        line.set("each", Value(match[1], match[1]))
    elif match and match[2].lower() == "node":
        line.values["cyclic"] = ""
    elif match:
        line.values["in_turn"] = ""  # from core to core; srun alternates between the sockets
    elif text:
        line.lost.append(f"{name} {value.text}")
    if match and match[3]:
        line.set("cpus", Value(match[3], match[3]))
    if cores := re.search(r"(?i):pe=(\d+)", text):
        line.numbers["pe"] = int(cores[1])  # for remarks on their number


def _cpu_bind(line: LaunchLine, name: str, value: Value) -> None:
    """Read the binding of PALS: https://cpe.ext.hpe.com/docs/latest/pals/index.html"""
    given = value.known or value.text
    text = re.sub("^(verbose|v),?", "", given)
    line.values |= {"verbose": ""} if text != given else {}
    if mask := srun_line.masks(text):
        line.values["mask"] = mask
    elif text in ("none", "depth", "core", "cpu", "socket", "numa", "thread"):
        line.values["bind"] = {"cpu": "core"}.get(text, text)
    elif text:
        line.lost.append(f"{name} {value.text}")


def write(line: LaunchLine, request: Request, target: Dialect, mpi: MpiFlavour, exports: list[str]) -> str:
    """Return the command with its options; ``exports`` are those that pass on the environment."""
    _place_on_hosts(line, request)
    ranks, each = _shape(line, request)
    if each is None and "hosts" not in line.values and is_of_lone_ranks(request, target):
        each = "1"
    if each is None and "hosts" not in line.values and request.nodes == 1 and _has_open_slots(request):
        each = ranks  # the node file has one line
    text = " ".join((mpi.command, *(mpi.unbound or mpi.place)))
    text = text if ranks else re.sub(r" -np? \{ranks\}", "", text)
    text = text if each else re.sub(r" (--map-by ppr:|--?ppn )\{ranks_per_node\}(:node)?", "", text)
    placed = "ppr:{ranks_per_node}:node"
    text = text.replace(placed, placed + _oversubscribed(request, each))
    text = text.format(ranks=ranks, ranks_per_node=each)
    hosts = f'"${target.variable("node_file")}"'
    if "hosts" in line.values:
        option = "-" * mpi.by_scheduler + "-hosts" if mpi.passes_all else "--host"
        slots = "" if ranks in (None, "1") else f":{ranks}"
        host = line.values["hosts"]
        hosts = f'"{host.strip(chr(34))}{slots}"' if "$" in host else f"{host}{slots}"
        text = re.sub(r"(--hostfile|-f)(?= )", option, text)
    elif not each:
        text = text.replace(f" {mpi.place[1].split()[0]} ", f" {hosts_option(mpi, counted=True)} ")
    text = re.sub(r'"\$JOBGEN_RUN_DIR/\w+"', lambda _: hosts, text)
    if line.values.get("threads") and not {"1"} & {ranks, each}:
        line.values.setdefault("bind", "core")
    if (bind := line.values.get("bind", "none")) != "none":
        cores = line.numbers.get("cores") or request.cpus_per_rank or 1
        unbound, text = text, _bound(line, text, bind, cores)
        if text != unbound:
            _correct_cores(line, f"each rank is bound to one {bind}, not to these cores")
    if "chdir" in line.values:
        text += f" {'--wdir' if mpi.by_scheduler else '-wdir'} {line.values['chdir']}"
    if "label" in line.values:
        text += " --label" if mpi.by_scheduler else " -l" if mpi.passes_all else " --tag-output"
    env = ["env", *line.exports] if line.exports else []
    names = [one.partition("=")[0] for one in line.exports if not mpi.passes_all]
    if "label" in line.values:
        label = "[RANK]" if mpi.passes_all else "[JOB,RANK]<stdout>:"
        label = "the host and the rank" if mpi.by_scheduler else label
        line.notes.append(("--label", f"{mpi.title} writes {label} before a line, not RANK:"))
    return " ".join([*env, text, *[mpi.export[0].format(name=name) for name in names], *exports])


def hosts_option(mpi: MpiFlavour, counted: bool) -> str:
    """Return the option for the node file; ``counted``: its lines are the ranks of each node."""
    return (counted and mpi.slots) or mpi.place[1].split()[0]


def is_of_lone_ranks(request: Request, target: Dialect) -> bool:
    """Return whether each rank is a node of the new job, whose node file has a line for each of its cores."""
    lone = request.nodes is None and not request.submitted and (request.ranks or 1) > 1
    return lone and target.scheduler.behaviour.hosts_by_core and (request.cpus_per_rank or 1) > 1


def _bound(line: LaunchLine, text: str, bind: str, cores: int) -> str:
    """Return a command that binds the ranks, each to all of its cores."""
    found = re.sub(r"(--?bind-to|--cpu-bind) none", rf"\1 {bind}", text)
    many = cores > 1 and bind in ("core", "hwthread")
    if bind == "core" and many:
        of_rank = re.sub(r"(ppr:[^ ]+:node)", rf"\1:PE={cores}", found)
        if of_rank == found:
            of_rank = found.replace(" -bind-to core", f" -bind-to core:{cores}")
        if of_rank == found:
            of_rank = found.replace(" --cpu-bind core", f" --depth {cores} --cpu-bind depth")
        if of_rank != found:
            _correct_cores(line, f"each rank is bound to {cores} cores, those of the job")
            return of_rank
    found = found.replace("--cpu-bind hwthread", "--cpu-bind thread")
    if threads := line.values.get("threads"):  # one core for all threads of a rank is worse than all
        why = "binds threads to the cores of their rank: unbound, all ranks of a node use the same cores"
        line.notes += [(threads, why)] * (found == text or many)
        return text if many else found
    if found == text:
        line.notes.append((f"--cpu-bind {bind}", "the ranks start without a binding"))
    elif many:
        line.notes.append((f"--cpu-bind {bind}", f"binds each rank to one {bind}, and not to {cores} cores"))
    return found


def _correct_cores(line: LaunchLine, why: str) -> None:
    """Replace the note that the ranks share their cores, now that they are bound."""
    shared = [one for one in line.notes if one[1] == srun_line.SHARED]
    line.notes = [one for one in line.notes if one not in shared]
    if "cores" not in line.numbers:
        line.notes += [(option, why) for option, _ in shared]


def _has_open_slots(request: Request) -> bool:
    """Return whether a job has whole nodes, and names no ranks of a node."""
    return request.exclusive and (request.ranks_per_node or 1) == 1


def _oversubscribed(request: Request, each: str | None) -> str:
    """Return the modifier for more ranks on a node than the node file has lines for it."""
    if request.nodes is None or each is None:
        return ""
    more = int(each) > (request.ranks_per_node or 1) if each.isdigit() else _has_open_slots(request)
    return ":OVERSUBSCRIBE" if more else ""


def _place_on_hosts(line: LaunchLine, request: Request) -> None:
    """Keep the nodes that srun names only for a step on one node: a step on more has others of the job, too.

    Raises:
        Unreadable: the step has some nodes of the job.
    """
    on_one = "1" in (line.values.get("nodes"), line.values.get("ranks"))
    if "hosts" not in line.values or request.nodes in (None, 1) or on_one:
        return
    nodes = line.numbers.get("nodes") if "nodes" in line.values else request.nodes
    ranks = line.numbers.get("ranks") if "ranks" in line.values else request.ranks or nodes
    if nodes != request.nodes or ranks is None or ranks < nodes:
        raise Unreadable("--nodelist for several nodes has no counterpart")
    what = f"--nodelist={line.values.pop('hosts')}"
    why = f"{srun_line.NAME} without -N 1 uses all nodes of the job: so does the new command"
    line.notes.append((what, why))


def ranks_of(line: LaunchLine, request: Request) -> str | None:
    """Return the number of ranks that srun starts; None if it is not known."""
    return _shape(replace(line, notes=[]), request)[0]


def _each(line: LaunchLine, nodes: int | None) -> str | None:
    """Return the ranks of a node if only the job knows those of all nodes."""
    given = line.values.get("each")
    if given or ("nodes" not in line.values and nodes in (None, 1)) or (nodes and "ranks" in line.numbers):
        return given
    ranks, number = (_bare(text) for text in (line.values["ranks"], line.values.get("nodes", str(nodes))))
    return line.values["ranks"] if number == "1" else f"$((({ranks} + {number} - 1) / {number}))"


def _bare(text: str) -> str:
    """Return a number as a part of an expression."""
    inner = re.fullmatch(r'"?\$\(\((.*)\)\)"?', text)
    return f"({inner[1].strip()})" if inner else text.strip('"')


def _shape(line: LaunchLine, request: Request) -> tuple[str | None, str | None]:
    """Return the ranks and those of a node, as srun starts them: src/srun/libsrun/opt.c of Slurm.

    The number of tasks of the job holds for its steps, and --ntasks-per-node is ignored if it contradicts.
    """
    values, numbers = line.values, line.numbers
    nodes = numbers.get("nodes") if "nodes" in values else request.nodes
    counted = request.ranks_per_node is not None or request.ranks != request.nodes  # else a rank of each node
    of_job = request.ranks if counted else None  # SLURM_NTASKS
    if "hosts" in values:
        return values.get("ranks", str(of_job or 1)), None
    if "ranks" in values:
        known = numbers.get("ranks")
        if nodes is None and "each" not in values and NODES.fullmatch(values["ranks"]):
            return values["ranks"], "1"
        if request.submitted and nodes is None and "each" not in values:
            return values["ranks"], "1" if values["ranks"] == values.get("nodes") else None
        return values["ranks"], str(-(-known // nodes)) if known and nodes else _each(line, nodes)
    if of_job and (nodes or not request.nodes):
        _note_tasks_of_job(line, request, of_job, nodes)
        return str(of_job), str(-(-of_job // nodes)) if nodes else None
    if request.submitted and nodes is None:
        return None, values.get("each", str(request.ranks_per_node or 1))
    if "nodes" in values and nodes is None:
        return (values["nodes"], "1") if values.get("each", "1") == "1" else (None, values["each"])
    if "each" in values and "each" not in numbers:
        return None, values["each"]
    each = numbers.get("each", 1)
    return str(each * (nodes or 1)), str(each)


NODES = re.compile(r"\"?\$\{?SLURM_(JOB_NUM_NODES|NNODES)\}?\"?")


def _note_tasks_of_job(line: LaunchLine, request: Request, of_job: int, nodes: int | None) -> None:
    """Note that a step without a number of tasks has those of the job, whatever nodes it names."""
    each = -(-of_job // nodes) if nodes else None
    why = f"{srun_line.NAME} ignores it: the job has {of_job} tasks"
    if "each" in line.values and each and line.numbers.get("each", each) != each:
        line.notes.append((f"--ntasks-per-node={line.values['each']}", why))
    if nodes and nodes != request.nodes:
        why = f"{srun_line.NAME} without -n starts all {of_job} tasks of the job there, if they have cores"
        line.notes.append((f"--nodes={nodes}", why))
