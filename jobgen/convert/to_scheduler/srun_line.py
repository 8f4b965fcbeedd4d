"""Command lines of srun."""

from __future__ import annotations

import re

from jobgen.convert import aprun
from jobgen.convert.to_scheduler import launch_line
from jobgen.convert.to_scheduler.launch_line import LaunchLine, LaunchWords, Unreadable, Value, quoted
from jobgen.launch.launchers import LAUNCHERS
from jobgen.schedulers.directive_options import whole
from jobgen.schedulers.request import Request
from jobgen.schedulers.slurm import SLURM
from jobgen.topology.cpus import mask

NAME = LAUNCHERS["srun"].command
_LONG = """
accel-bind= bcast? bcast-exclude? compress? cpu-bind= debugger-test disable-status epilog= exact
external-launcher? gpu-bind= het-group= immediate? interactive jobid= kill-on-bad-exit? label mem-bind=
mpi= msg-timeout= multi-prog no-allocate overlap pack-group= preserve-env prolog= pty? quit-on-interrupt
relative= send-libs? slurmd-debug= task-epilog= task-prolog= threads= treewidth= unbuffered wait= whole
x11? share
"""
LONG = {
    **SLURM.grammar.long_options,
    **{name.rstrip("=?"): name[len(name.rstrip("=?")) :] for name in _LONG.split()},
}
SHORT = {
    **{short[1:]: long for short, long in SLURM.grammar.short_options.items()},
    "E": "--preserve-env", "K": "--kill-on-bad-exit", "l": "--label", "r": "--relative", "T": "--threads",
    "u": "--unbuffered", "X": "--disable-status", "Z": "--no-allocate", "I": "--immediate",
    "V": "--version", "h": "--help",
}  # fmt: skip

# Options that change nothing about the ranks of a step.
_NEUTRAL = """
account acctg-freq comment compress debugger-test disable-status exact exclusive
immediate interactive job-name mail-type mail-user mem mem-per-cpu mem-per-gpu mpi
msg-timeout no-kill overlap oversubscribe share partition preserve-env profile qos quiet quit-on-interrupt
reservation slurmd-debug threads treewidth use-min-nodes verbose wckey whole
"""
_DEVICES = (
    "gpus gpus-per-node gpus-per-task gpus-per-socket gres gpu-bind ntasks-per-gpu cpus-per-gpu tres-per-task"
)
_OTHER = {
    "ntasks": "ranks", "nodes": "nodes", "ntasks-per-node": "each", "cpus-per-task": "cores",
    "kill-on-bad-exit": "kill", "export": "export", "cpu-bind": "bind", "output": "output", "error": "error",
    "input": "input", "nodelist": "hosts", "chdir": "chdir", "label": "label", "overcommit": "overcommit",
    "jobid": "jobid", "wait": "wait", "resv-ports": "ports", "unbuffered": "unbuffered",
    # Without a counterpart for the whole line.
    "multi-prog": "refused", "het-group": "refused", "pack-group": "refused", "pty": "refused",
}  # fmt: skip
MEANINGS = {
    **dict.fromkeys(_NEUTRAL.split(), "neutral"), **dict.fromkeys(_DEVICES.split(), "device"), **_OTHER,
}  # fmt: skip
# Of --cpu-bind: the words of mpirun's --bind-to.
BINDINGS = {
    "none": "none", "no": "none", "core": "core", "cores": "core", "socket": "socket", "sockets": "socket",
    "ldom": "numa", "ldoms": "numa", "thread": "hwthread", "threads": "hwthread", "rank": "core",
    "v": "", "verbose": "", "q": "", "quiet": "",
}  # fmt: skip


_CORES = (12, 16, 24, 32, 36, 44, 48, 64, 68, 72, 128)  # of a node of Cray's, or the half of them
SHARED = "each rank may use all cores of the job on its node"
WRITTEN_BINDINGS = {
    "none": "none", "core": "cores", "depth": "cores", "socket": "sockets", "numa": "ldoms",
    "hwthread": "threads", "thread": "threads",
}  # fmt: skip


_EXPANSION = re.compile(r"\$\(.*?\)|`.*?`|\$\{[^}]*\}")
# Options of pyxis and of the container engine of CSCS, and that of shifter in directives.
CONTAINER = re.compile(r"--(?:(?:no-)?container(?:-.*)?|environment|image)")


def read(words: LaunchWords, request: Request) -> LaunchLine:
    """Return the options of srun.

    Raises:
        Unreadable: the line cannot be translated.
    """
    line = LaunchLine()
    for word in words:
        name, value = _option(word, words)
        meaning = MEANINGS.get(name, "lost")
        given = word.text if word.text.startswith("--") else word.text[:2]
        text = f"{given.partition('=')[0]} {value.text}".strip()
        if CONTAINER.fullmatch(f"--{name}"):
            raise launch_line.OfContainer(f"--{name} starts a container by a plug-in that only Slurm has")
        if name not in LONG:
            raise Unreadable(f"{word.text} is not an option of {NAME}")
        if meaning == "refused":
            raise Unreadable(f"--{name} has no counterpart")
        if meaning == "lost":
            line.lost.append(text)
        elif meaning == "export":
            _export(line, value, text)
        elif meaning == "bind":
            _bind(line, value, text)
        elif meaning in ("output", "error", "input"):
            _stream(line, meaning, value, text, words)
        elif meaning == "device":
            _device(line, name, value, text, request)
        elif meaning == "cores":
            _cores_of_rank(line, value, text, request)
        elif name == "nodelist" and "/" in _EXPANSION.sub("", value.known or value.text):
            raise Unreadable(f"--{name} is a file of nodes")
        elif name == "resv-ports":
            line.notes.append((text, "no ports are reserved, and SLURM_STEP_RESV_PORTS is not set"))
        elif meaning == "nodes":
            line.set(meaning, _most_nodes(value, request))
        elif name == "mpi" and value.text != "none":
            line.marks.append(name)
        elif name == "mpi":
            line.set(name, value)
        elif meaning != "neutral":
            line.set(meaning, value)
    line.program = words.program
    return line


def _most_nodes(value: Value, request: Request) -> Value:
    """Return the number of nodes that ``--nodes=1-2`` gets of the job."""
    if match := re.fullmatch(r"\d+-(\d+)", value.known or value.text, re.ASCII):
        most = str(min(int(match[1]), request.nodes or int(match[1])))
        return Value(most, most)
    return value


def _option(word: Value, words: LaunchWords) -> tuple[str, Value]:
    """Return the long name of an option, and its value, which may be the next word."""
    if word.text.startswith("--"):
        given, equals, _ = word.text[2:].partition("=")
        name = whole(given.replace("_", "-"), LONG)
        name = SHORT.get("-" + name, name).removeprefix("--")
        joined = word.after(len(given) + 3)
    else:
        name, joined = SHORT.get(word.text[1:2], "--")[2:], word.after(2)
        equals = joined.text
    if LONG.get(name) == "=" and not equals:
        return name, words.next()
    if LONG.get(name) == "" and joined.text:
        if word.text.startswith("--"):
            raise Unreadable(f"{word.text} has no counterpart")
        words.further.append(joined._replace(text=f"-{joined.text}"))  # -ul
    return name, joined


def _export(line: LaunchLine, value: Value, text: str) -> None:
    """Keep the variables of --export that are added to all others."""
    names = value.text.split(",")
    line.values["export"] = value.text
    if "ALL" in map(str.upper, names):
        line.exports += [one for one in names if "=" in one]
    else:
        line.lost.append(text)


def _bind(line: LaunchLine, value: Value, text: str) -> None:
    words = value.text.lower().split(",")
    found = [BINDINGS.get(one) for one in words]
    if None in found:
        line.lost.append(text)
    elif any(found):
        line.values["bind"] = next(filter(None, found), "none")
    if {"v", "verbose"} & {*words}:
        line.notes.append((text, "the binding of the ranks is not printed"))


def _stream(line: LaunchLine, meaning: str, value: Value, text: str, words: LaunchWords) -> None:
    """Keep the name of a file that srun opens; each rank has one of its own if the name has patterns."""
    name = value.known or value.text
    if words.has_pattern(name) or name.isdigit():
        line.lost.append(text)
    elif name != "all":
        line.values[meaning] = "/dev/null" if name == "none" else quoted(value.text)


def redirections(line: LaunchLine) -> str:
    """Return the redirections that open the files of srun's options; errors follow the output."""
    values = line.values
    words = [f"< {values['input']}"] if "input" in values else []
    words += [f"> {values['output']}"] if "output" in values else []
    joined = "output" in values and values.get("error") in (None, values["output"])
    words += ["2>&1"] if joined else [f"2> {values['error']}"] if "error" in values else []
    return " ".join(words)


def _device(line: LaunchLine, name: str, value: Value, text: str, request: Request) -> None:
    """Note devices that only some ranks of a node see."""
    if name == "cpus-per-gpu":
        line.notes.append((text, SHARED))
        return
    number = "0" if value.text == "none" else value.text.rpartition(":")[2]
    of_node = request.gpus_per_node or ((number == "0" and request.gpus) or 0)
    of_job = {of_node * (request.nodes or 1)} if name == "gpus" else set[int]()
    if name not in ("gres", "gpus-per-node", "gpus") or number not in map(str, {of_node, *of_job}):
        line.notes.append((text, "each rank sees all devices of its node"))


def _cores_of_rank(line: LaunchLine, value: Value, text: str, request: Request) -> None:
    """Note another number of cores of a rank than that of the job: mpirun binds the ranks to none."""
    if value.known is None or (value.known.isdigit() and int(value.known) != (request.cpus_per_rank or 1)):
        line.notes.append((text, SHARED))
        if value.known is not None and not value.of_job:
            line.numbers["cores"] = int(value.known)


def write(line: LaunchLine, request: Request, plugin: str) -> str:
    """Return the command with its options."""
    words = [NAME]
    if "ranks" in line.values:
        words.append(f"--ntasks={quoted(line.values['ranks'])}")
    elif "each" in line.values and request.ranks_per_node:  # srun would start SLURM_NTASKS
        words.append(f"--ntasks={_of_all_nodes(line, request)}")
    if "each" in line.values:
        words.append(f"--ntasks-per-node={quoted(line.values['each'])}")
    nodes = _fewer_nodes(line, request) or _filled_nodes(line, request)
    words += [f"--nodes={nodes}"] * bool(nodes)
    words += [f"--distribution={one}" for one in _distribution(line, request)]
    if cores := line.values.get("cpus") or cores_of_rank(line, request):
        words.append(f"--cpus-per-task={quoted(cores)}")
    words += ["--overlap"] * ("overlap" in line.values)
    bind = WRITTEN_BINDINGS.get(line.values.get("bind", ""), line.values.get("mask", ""))
    binds = ["verbose"] * ("verbose" in line.values) + [bind] * bool(bind)
    words += [f"--cpu-bind={','.join(binds)}"] * bool(binds)
    words += ["--overcommit"] * ("overcommit" in line.values) + ["--label"] * ("label" in line.values)
    words += ["--mem-bind=local"] * ("near" in line.values) + ["--quiet"] * ("quiet" in line.values)
    if "chdir" in line.values:
        end = " " if line.values["chdir"].startswith("~") else "="  # behind which bash expands no ~
        words.append(f"--chdir{end}{line.values['chdir']}")
    words += ["--kill-on-bad-exit=1", *([f"--mpi={plugin}"] if plugin != "none" else [])]
    return " ".join([*(["env", *line.exports] if line.exports else []), *words])


def _fewer_nodes(line: LaunchLine, request: Request) -> int | None:
    """Return the nodes that mpirun fills, if these are not all: srun would use all."""
    ranks, each = line.numbers.get("ranks"), _each(line, request)
    if "own_hosts" in line.values:
        return None
    nodes = -(-ranks // each) if ranks and each else None
    nodes = ranks if "cyclic" in line.values else nodes  # mpirun fills the nodes in turn
    return nodes if nodes and request.nodes and nodes < request.nodes else None


def _filled_nodes(line: LaunchLine, request: Request) -> str:
    """Return the nodes that a number of ranks fills, which is known only when the job runs."""
    each, ranks = _each(line, request), re.sub("^`(.*)`$", r"$(\1)", line.values.get("ranks", "").strip('"'))
    if not each or not _uses_all(line, request):
        return ""
    sum_of = re.fullmatch(r"\$\((\(.*\))\)", ranks)
    return f'"$((({sum_of[1] if sum_of else ranks} + {each - 1}) / {each}))"' if each > 1 else f'"{ranks}"'


def _distribution(line: LaunchLine, request: Request) -> list[str]:
    """Return the order in which the ranks get nodes and cores, where it is not that of srun."""
    if "cyclic" in line.values and request.nodes != 1:
        return ["cyclic"]
    if each := _of_full_nodes(line, request):
        return [f"plane={each}"]
    return ["block:block"] * ("in_turn" in line.values and line.values.get("bind") != "none")


def _of_full_nodes(line: LaunchLine, request: Request) -> int | None:
    """Return the ranks of a node that mpirun fills before the next one, if srun would spread them evenly."""
    each, ranks = _each(line, request), line.numbers.get("ranks")
    if not each or {"own_hosts", "cyclic", "overcommit"} & line.values.keys():
        return None
    if ranks is None:
        return each if each > 1 and _uses_all(line, request) else None
    nodes = -(-ranks // each)
    return each if 1 < nodes <= (request.nodes or 1) and nodes * each - ranks > 1 else None


def _each(line: LaunchLine, request: Request) -> int | None:
    """Return the ranks that mpirun starts on a node before it uses the next one."""
    if "each" in line.values or not request.ranks_per_node:
        return line.numbers.get("each")
    if "cpus" in line.values and "cpus" not in line.numbers:
        return None
    cores = request.ranks_per_node * (request.cpus_per_rank or 1)
    return min(request.ranks_per_node, cores // max(line.numbers.get("cpus", 1), 1))


def _uses_all(line: LaunchLine, request: Request) -> bool:
    """Return whether srun starts ranks on all nodes whose number is known only when the job runs."""
    own = {"own_hosts", "cyclic", "overcommit"} & line.values.keys()
    return request.nodes is not None and request.nodes > 1 and "varies" in line.values and not own


def fills_whole_nodes(line: LaunchLine, request: Request) -> bool:
    """Return whether the ranks fill nodes of which it is not known how many ranks they have."""
    unread = "cpus" in line.values and "cpus" not in line.numbers
    if "each" in line.values or (request.ranks_per_node and not unread) or request.unequal:
        return False
    nodes, ranks = request.nodes or 1, line.numbers.get("ranks")
    if ranks is None or aprun.NAME not in line.marks or nodes == 1:
        return _uses_all(line, request)
    of_node = ranks // nodes * line.numbers.get("cpus", 1)
    return ranks > 1 and (unread or ranks % nodes > 0 or of_node not in _CORES)


def _of_all_nodes(line: LaunchLine, request: Request) -> str:
    """Return the number of ranks if that of each node is given."""
    if (each := line.numbers.get("each")) and request.nodes:
        return str(each * request.nodes)
    return f'"$(({line.values["each"].strip(chr(34))} * SLURM_JOB_NUM_NODES))"'


def fills_unknown_nodes(line: LaunchLine, request: Request) -> bool:
    """Return whether the ranks may need more nodes than the one of a job that names only its cores."""
    unread = "ranks" in line.values and "ranks" not in line.numbers
    return "ncpus" in request.totals and not request.chunks and unread and "each" in line.values


def cores_of_rank(line: LaunchLine, request: Request) -> str:
    """Return the cores of each rank: those of a node, shared by its ranks."""
    if fills_unknown_nodes(line, request):
        return ""
    cores, of_job = request.cpus_per_rank or 1, request.ranks_per_node or 1
    each = line.numbers.get("each")
    if each is None and "each" not in line.values and (ranks := line.numbers.get("ranks")):
        nodes = _fewer_nodes(line, request) or request.nodes or 1
        each = _of_full_nodes(line, request) or -(-ranks // nodes)
    own = max(cores * of_job // each, 1) if each else cores
    if aprun.NAME in line.marks and "ranks" in line.values:  # its default is to bind each rank to one core
        is_free = "mask" in line.values or line.values.get("bind", "core") not in ("core", "depth")
        fills = own == 1 and each in _CORES
        return "" if is_free or fills or each is None else "1"
    return str(own) if max(cores, own) > 1 else ""


def masks(text: str) -> str:
    """Return PALS's ``list:0-7:8,9`` as srun's ``mask_cpu:0xff,0x300``; empty if it is no such list."""
    kind, _, lists = text.rpartition("list:")
    if not lists or kind not in ("", "verbose,", "v,") or not re.fullmatch(r"[\d,:-]+", lists):
        return ""
    found = [mask(cores.strip(",")) for cores in lists.split(":")]
    return "mask_cpu:" + ",".join(found) if all(found) else ""
