"""The launcher of a job file: the options of the launcher that jobgen does not set itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from jobgen.convert import aprun, differences
from jobgen.convert.result import Remark, hint, shortened, shown
from jobgen.convert.several_words import may_have_options
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.convert.to_job_file.effects import effects_of
from jobgen.convert.to_job_file.program_line import known, option_text
from jobgen.convert.to_job_file.wrappers import binds
from jobgen.convert.to_scheduler.launch_calls import other_options
from jobgen.convert.variable_names import names_own_job
from jobgen.errors import counted
from jobgen.launch.command_line import is_python, option_name, values_of
from jobgen.launch.containers import RUNTIMES
from jobgen.launch.expansion import names
from jobgen.launch.launchers import DEFAULT_MPI, LAUNCHERS, MPI_FLAVOURS
from jobgen.launch.wrappers import command_start
from jobgen.script.command_kinds import TOOLS
from jobgen.script.dialects.table import DIALECTS
from jobgen.script.launches import Launch
from jobgen.script.mpi_of_script import by_command, end_together, named_mpi, own_plugin, recognized_mpi
from jobgen.script.script import Script
from jobgen.script.syntax import Node, expansions, without_parts
from jobgen.topology.binding import of_option
from jobgen.values.parsers import number

OTHERS = (aprun.NAME, "jsrun", "ibrun", "prun")  # read as mpirun, with options of their own
_OF_MPI = re.compile(r"mpi4py|horovod|hvd|\[mpi\]")  # of Python
# Variables of each rank that jobgen sets.
OF_RANKS = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK")
_SETS_FOR_RANKS = re.compile(r"\s-?-(?:x|g?env)\s+[\"']?(\w+)[= ]|(?:\s--export=\S*?|,)(\w+)=")
_SETS = ("-x", "-env", "--env", "-genv")  # of mpirun: a variable of the ranks
_RUNS = ("command_substitution", "process_substitution")
_PASSES = ("-genvall", "-envall", "--envall", "-genvlist", "-envlist")
HOST_FILES = ("-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f")  # not of srun
# Options that jobgen's own launch lines have.
_OURS = {
    "srun": """
--export --kill-on-bad-exit --mpi --jobid --gpus --gpus-per-task --gres -G --partition -p
--account -A --job-name -J --gpus-per-node""",
    "mpirun": "-N -ppn --ppn -npernode --npernode -perhost --hostfile -f --depth -d -launcher -bootstrap",
    "deepspeed": "--force-multi --use-env",
    "torchrun": """
--use-env --nproc-per-node --no-python --machine-rank --num-processes --main-process-port --main-process-ip
--multi-gpu --num-machines""",
}
_TOTAL = ("--gpus", "-G")
_DEVICES = ("--gres", "--gpus-per-node", *_TOTAL)  # of a step
# Limits of a step.
_TIMES = ("--time", "-t")
_MEMORY = ("--mem", "--mem-per-cpu", "--mem-per-gpu")
_OF_STEP = (*_TIMES, *_MEMORY, "--wait", "-W")
# Files of a step, and of the ranks of MPICH, that the script of a rank has itself.
_FILES = {
    **dict.fromkeys(("--error", "-e", "-errfile-pattern"), "the ranks write their errors into their output"),
    **dict.fromkeys(("--input", "-i"), "the ranks have no standard input"),
}
_SAME = "is that of the job"
# Options of srun about its program, which is a script of jobgen that starts that of the rank.
_OF_PROGRAM = {
    "--multi-prog": "starts the programs of a file: jobgen starts one program with all ranks",
    "--container": "the ranks of jobgen start outside of it",
    "--bcast": "copies the program to each node: the ranks of jobgen start it from its own path",
    "--pty": "the ranks have no terminal",
}
# Options of placement: jobgen places the ranks itself. Open MPI refuses many beside --map-by.
_PLACING = """
--map-by -map-by --bind-to -bind-to --cpu-bind --bynode -bynode --byslot -byslot
--bycore -bycore --bysocket -bysocket --bind-to-core -bind-to-core --bind-to-socket -bind-to-socket
--bind-to-none -bind-to-none -cpus-per-proc --cpus-per-proc -cpus-per-rank --cpus-per-rank
-rr -grr -loadbalance --loadbalance
--rankfile -rankfile -rf --cpu-set -cpu-set --cpu-list -cpu-list --nolocal -nolocal
--npersocket -npersocket"""
_PLACES_OF_APRUN = ("-cc", "-cp", "-L", "-S", "-sl", "-sn", "-ss")
_ITSELF, _HOW_TO_BIND = "jobgen places the ranks itself", ": to bind them set cpu_bind"
_PLACES = {
    **dict.fromkeys(_PLACING.split(), _ITSELF),
    **dict.fromkeys(
        ("--launcher", "--host", "-host", "-H", "--hosts", "-hosts", "--nodelist", "-w"),
        "jobgen starts the ranks of all nodes itself",
    ),
    **dict.fromkeys(
        ("--report-bindings", "-report-bindings"),
        "is left out: jobgen binds the ranks itself, and its mpirun would report none",
    ),
}


def write(file: JobFile, script: Script, launch: Launch, kind: str) -> list[str]:
    """Set the arguments of the launcher and the variables that it hands on; return lines for setup."""
    arguments, lines = list[str](), list[str]()
    by_aprun = name_of(launch) == aprun.NAME
    for words in _options(script, launch):
        texts = [known(script, word) for word in words]
        name = _name(script, launch, words)
        given = _given(words)
        is_known = None not in texts and not names([text or "" for text in texts])
        if by_aprun and (remark := _aprun_remark(launch, kind, name, given)):
            if name != "-cc" or not _binds(file, texts[-1] or ""):
                file.remarks.append(remark)
        elif (name in _SETS and launch.row.of_mpi) or (by_aprun and name == "-e"):
            lines += _variable(file, words, texts, launch)
        elif (remarks := _of_its_own(script, launch, kind, words, is_known)) is not None:
            file.remarks += remarks
        elif name in _OF_STEP and launch.row.by_scheduler:
            if not (why := _of_step(script, kind, name, texts[-1])):
                arguments += [text for text in texts if text is not None]
            elif why != _SAME:
                file.lose(launch.line, given, why, lost=name in _TIMES)
        elif name in _FILES and (launch.row.by_scheduler or name == "-errfile-pattern"):
            if (texts[-1] or "").removeprefix(f"{name}=") not in ("none", script.request.output):
                file.lose(launch.line, given, _FILES[name])
        elif name in _PASSES or _of_script(launch, kind, name):
            lines += _export(file, launch, words, texts)
            if launch.row.by_scheduler and name in _DEVICES:
                file.remarks += _of_devices(script, launch.line, given, name, texts[-1] or "")
        elif name == "--" or _container(file, launch, [option_text(script, word) for word in words]):
            continue
        elif name.startswith("--container-") and not _has_image(launch):
            why = "belongs to the container of an earlier srun; jobgen starts the ranks outside of it"
            file.lose(launch.line, given, why, of_program=True)
        elif name in _PLACES and not launch.row.mpi_plugin:
            if not _binds(file, texts[-1] or ""):
                file.hint(launch.line, given, _place_of_ranks(file, _PLACES[name]))
        elif not is_known:
            boxed = name.startswith("--container-")
            file.lose(launch.line, given, "is known only when the job runs", of_program=boxed)
        elif kind == launch.kind and name_of(launch) not in OTHERS:
            arguments += [text for text in texts if text is not None]
        else:
            file.lose(launch.line, given, f"jobgen starts {kind} without it")
    for word in _unread(script, launch):
        kept = any(word is one for one in program_of(script, launch))
        more = "if it has options or a launcher, the job file lacks them" if kept else "it is left out"
        file.lose(launch.line, shown(word), f"is known only when the job runs: {more}")
    if arguments and not file.try_add("launcher_arg", [*file.list("launcher_arg"), *arguments]):
        file.remarks += [Remark(launch.line, one, "is no option") for one in arguments]
    if launch.outer is not None:
        lines += write(file, script, launch.outer, kind)
    return lines


def _given(words: Sequence[Node]) -> str:
    return shortened(" ".join(word.text for word in words).replace("\n", " "))


def _name(script: Script, launch: Launch, words: Sequence[Node]) -> str:
    name = option_name(known(script, words[0]) or words[0].text)
    return launch.row.line.spellings.get(name, name).partition("=")[0]


def _of_its_own(
    script: Script, launch: Launch, kind: str, words: Sequence[Node], is_known: bool
) -> list[Remark] | None:
    """Return the remarks on an option that the ranks of jobgen have in their own way; None for others."""
    text, given, why = known(script, words[-1]), _given(words), ""
    name = _name(script, launch, words)
    # Another rendezvous, without which its endpoint and id mean nothing.
    other = name == "--rdzv-backend" and (text or "").rpartition("=")[2] != "static"
    if other or (name == "--rdzv-conf" and re.search(r"\brdzv_(backend|endpoint|id)=", given)):
        why = "jobgen starts the ranks at the address of the first node, without a search for others"
        return [hint(launch.line, given, why)]
    if name == "--rdzv-conf" and re.search(r"\b(join|last_call|close|heartbeat)_timeout=", given):
        why = "has no effect: where ranks meet at the address of the first node, PyTorch reads timeout only"
        return [hint(launch.line, given, why)]
    if launch.row.filters_devices and name in ("--include", "--exclude"):
        chosen = (name == "--include" and launch.devices_here) or ()
        if not chosen:
            why = f"jobgen uses all: set {name[2:]} in [launch] with hosts of the job"
            return [Remark(launch.line, given, why)]
        why = f"jobgen uses the first {counted(len(chosen), 'device')} of the node"
        return [hint(launch.line, given, why)] * (chosen != (*range(len(chosen)),))
    if name == "--role" and not is_known:
        why = f"names the ranks in the messages of {kind}: jobgen gives them no name"
        return [hint(launch.line, given, why)]
    if name in HOST_FILES and _is_own_file(script, words[-1], text):
        why = "is a file that the script does not make: jobgen starts the ranks on the nodes of the job"
    elif not launch.row.by_scheduler:
        return None
    elif name in _OF_PROGRAM:
        lost = name in ("--multi-prog", "--container")
        return [(Remark if lost else hint)(launch.line, given, _OF_PROGRAM[name])]
    elif name == "--jobid":
        if not names_own_job(script, given):
            why = "is a step of that job: the job file starts its ranks in a job of its own"
    elif re.fullmatch(r"-r\d*|--relative", name):
        if re.sub(r"^-+(r|relative=?)", "", text or "1") != "0":
            why = "the ranks of jobgen begin on the first node of the job"
    elif name == "--cpus-per-gpu":
        why = f"{launch.kind} refuses it beside the cores of a rank, which jobgen names: set cpus_per_rank"
    else:
        return None
    return [Remark(launch.line, given, why)] if why else []


def _of_step(script: Script, kind: str, name: str, text: str | None) -> str:
    """Return why a limit of a step is no argument of jobgen's launcher; empty if it is one."""
    value = (text or "").removeprefix(f"{name}=")
    if name in _TIMES and script.dialect.seconds(value) == script.request.walltime:
        return _SAME
    if name in _MEMORY:
        of_job = {"0", script.heeded[name].value} if name in script.heeded else {"0"}
        return _SAME if value in of_job else "is that of a step: the ranks have the memory of the job"
    if kind == script.dialect.node_step and text is not None:
        return ""
    if name in _TIMES:
        return "ends the step in the script; the ranks have the time of the job"
    return "jobgen ends all ranks if one fails, and waits for those that go on"


def _of_devices(script: Script, line: int, given: str, name: str, text: str) -> Iterator[Remark]:
    """Yield a remark on a step that sees other devices than the job has on a node."""
    value = re.sub(rf"^{name}[= ]|[\"']", "", text or given)
    given_here = [re.sub("^gres[/:]", "", one) for one in value.split(",") if not one.endswith(":0")]
    kinds = {re.split("[:=]", one)[0] for one in given_here} - {"gpu", "none"}
    of_job = script.heeded["--gres"].value if "--gres" in script.heeded else ""
    if name == "--gres" and not kinds.issubset(re.findall(r"\w+", of_job)):
        yield Remark(line, given, "the ranks have the devices of the job, which requests none of these")
    elif _sees_others(script, name, value):
        yield hint(line, given, "the ranks see all devices of the job on their node")


def _sees_others(script: Script, name: str, value: str) -> bool:
    """Return whether a step sees fewer GPUs than the job has on a node."""
    request = script.request
    count = 0 if value == "none" else number(value.rpartition(":")[2])
    of_job = request.gpus if name in _TOTAL else request.gpus_per_node
    if name in _TOTAL and request.gpus_per_node:
        of_job = request.gpus_per_node * (request.nodes or 1)
    devices = request.gpus_per_node or request.gpus
    return bool(devices) and (count == 0 or (count is not None and of_job is not None and count < of_job))


def _is_own_file(script: Script, word: Node, text: str | None) -> bool:
    """Return whether the file of hosts is none of the scheduler, and none that another command names."""
    known = {*script.dialect.job_variables, *script.dialect.environment}
    read = {name for name, _ in expansions(word)}
    values = script.values_in([word])
    inner = {name for value in (word, *values) for name, _ in expansions(value)}
    if inner & known or any(True for one in (word, *values) for _ in one.all(*_RUNS)):
        return False
    spans = [(one.command.node.start, one.command.node.end) for one in script.launches]
    spans += [(node.start, node.end) for name, _, node in script.assignments if name in read]
    code = without_parts(script.tree.source, spans)
    file = os.path.basename((text or word.text).rpartition("=")[2].strip("\"'"))
    named = [rf"(?<![\w.-]){re.escape(file)}(?![\w.-])", *(rf"\$\{{?{name}\b" for name in read)]
    return not any(re.search(one.encode(), code) for one in named)


def _aprun_remark(launch: Launch, kind: str, name: str, given: str) -> Remark | None:
    """Return the remark on an option that only aprun has; None for another option."""
    if name in aprun.NOTES or name in _PLACES_OF_APRUN:
        return hint(launch.line, given, aprun.NOTES.get(name, _ITSELF))
    return Remark(launch.line, given, f"jobgen starts {kind} without it") if name in aprun.FLAGS else None


def name_of(launch: Launch) -> str:
    """Return the name of the command that starts the ranks, also behind time or in a variable."""
    names = map(os.path.basename, launch.front)
    return next((name for name in names if name in launch.row.names), launch.command.name or launch.kind)


def set_mpi(file: JobFile, script: Script, launch: Launch, kind: str) -> None:
    """Set the MPI; add a remark if srun gets another plugin for it."""
    _choose_mpi(file, script, launch, kind)
    plugin, by = _plugin(script, launch)
    new = MPI_FLAVOURS[str(file.values["mpi"])].srun if "mpi" in file.values else "none"
    own = own_plugin(script, str(file.values["mpi"])) if "mpi" in file.values else ""
    if own and LAUNCHERS[kind].mpi_plugin and plugin in (None, own):
        file.try_add("launcher_arg", [*file.list("launcher_arg"), f"--mpi={own}"])
        if not plugin:
            file.hint(launch.line, kind, f"--mpi={own} is added, which clusters with these modules have")
    elif LAUNCHERS[kind].mpi_plugin and plugin and plugin != new:
        file.hint(launch.line, f"{by}={plugin}", f"becomes --mpi={new}")
    elif LAUNCHERS[kind].mpi_plugin and not plugin and recognized_mpi(script) and "mpi" in file.values:
        file.hint(launch.line, kind, f"--mpi={new} is added: the script has the plugin of the cluster")


def _plugin(script: Script, launch: Launch) -> tuple[str | None, str]:
    """Return the plugin for MPI of srun, and the option or the variable that names it."""
    of_option, name = launch.options.get("--mpi"), "SLURM_MPI_TYPE"
    value = None if of_option else script.constants.node(name)
    return (script.constants.value(value), name) if value is not None else (of_option, "--mpi")


def _least_ranks(file: JobFile, script: Script) -> int:
    """Return the ranks of a job; where the submission gives the nodes, those of two."""
    nodes = 2 if file.text_of("nodes") == "submitted" else script.request.nodes or 1
    return file.count("ranks_per_node") * nodes


def cores_of_list(file: JobFile, script: Script, launch: Launch) -> None:
    """Add a remark on a list of cores for ranks of srun that the job may not have: then they do not start."""
    node = script.constants.node("SLURM_CPU_BIND")
    words = launch.text("--cpu-bind") or (script.constants.value(node) if node is not None else "") or ""
    if not launch.row.by_scheduler or not re.search(r"\b(map|mask)_cpu:", words):
        return
    each = file.count("ranks_per_node")
    cores = file.count("cpus_per_node", file.count("cpus_per_rank") * each)
    lists = of_option(f"--cpu-bind={words}", each, 1, frozenset()) or []
    if (last := max(map(max, lists), default=0)) >= cores:
        why = f"names core {last}: steps of the job have {cores} of a node, as it requests: set cpus_per_rank"
        file.hint(launch.line, shortened(f"--cpu-bind={words}"), why)


def ends(file: JobFile, script: Script, launch: Launch) -> None:
    """Add a remark if the other ranks go on where one fails, which jobgen's launchers end."""
    ranks = _least_ranks(file, script)
    given = launch.has("-K", "--kill-on-bad-exit") or "SLURM_KILL_BAD_EXIT" in script.values
    refused = launch.text("-K", "--kill-on-bad-exit") == "0"
    if launch.kind != script.dialect.node_step or ranks < 2 or (given and not refused):
        return
    texts = [os.path.basename(script.constants.value(word) or "") for word in program_of(script, launch)]
    name = (texts[command_start(texts) :] or [""])[0]
    if refused or not end_together(script, name):
        file.hint(launch.line, launch.kind, "without -K the other ranks go on if one fails: jobgen ends all")


def without_terminal(script: Script, launch: Launch) -> Iterator[Remark]:
    """Yield a remark on output to the terminal of ``srun -u``; jobgen keeps Python's unbuffered."""
    if not launch.row.by_scheduler or not launch.has("-u", "--unbuffered"):
        return
    program = program_of(script, launch)
    texts = [script.constants.value(word) or word.text for word in program]
    texts += [value.text for value in script.values_in(program)]
    words = [os.path.basename(word) for word in re.split(r"[\s'\"`;()]+", " ".join(texts))]
    if words[command_start(words)] not in TOOLS and not any(map(is_python, words)):
        yield hint(launch.line, "--unbuffered", differences.NO_TERMINAL)


def _choose_mpi(file: JobFile, script: Script, launch: Launch, kind: str) -> None:
    """Set the MPI of mpirun, or that of a program that srun starts; add a remark if it is a guess."""
    own = [one for one in (launch, launch.outer) if one and not one.row.by_scheduler]
    options = [name for one in own for name in one.options]  # those of srun are not those of an MPI
    named = recognized_mpi(script, options, target=script.scheduler)
    if LAUNCHERS[kind].mpi_plugin:
        plugin = re.sub(r"_v\d+$", "", _plugin(script, launch)[0] or "none")
        given = next((key for key, mpi in MPI_FLAVOURS.items() if mpi.srun == plugin != "none"), None)
        of_script = recognized_mpi(script)
        if given and of_script and MPI_FLAVOURS[of_script].srun == plugin:
            given = of_script
        elif given and of_script:
            why = f"becomes mpi = {given}, and the script names {of_script}: set mpi for another scheduler"
            file.hint(launch.line, f"--mpi={plugin}", why)
        named = given or named
        words = " ".join(node.text for node in program_of(script, launch))
        if words.split(" ")[0] in TOOLS:
            return
        is_python = re.match(r"(\S+/)?python\S* |\S+\.py\b|(bash|sh) -c .*python|-m ", words)
        is_mpi = given or not is_python or _OF_MPI.search(script.tree.text)
        is_mpi = is_mpi or re.search(r"(?i)mpi\S*\.py|[ =]mpi\b|^[^.]*mpi", words)
        ranks = _least_ranks(file, script)
        if not given and not is_mpi and ((ranks < 2 and not named) or _meets_by_address(script)):
            return
        alone = ranks < 2 and not given
        in_shell = named is None and re.match(r"(\S+/)?(bash|sh) |\S+\.sh\b", words)
        if in_shell or alone or not is_mpi:
            why = "it starts without an MPI (--mpi=none): set mpi in [launch] if it uses one"
            file.hint(launch.line, shortened(words), why)
            return
    elif not launch.row.of_mpi:
        return
    if named and script.scheduler not in (MPI_FLAVOURS[named].dialects or (script.scheduler,)):
        named = None
    file.add("mpi", named or DEFAULT_MPI, launch.line)
    for why in other_options(script, named) if named else ():
        file.lose(launch.line, f"mpi = {named}", why, lost=not LAUNCHERS[kind].mpi_plugin)
    for name, other in DIALECTS.items() if named else ():
        if (key := recognized_mpi(script, target=name)) and key != named and MPI_FLAVOURS[key].dialects:
            why = f"jobs for {other.title} need the launcher of {MPI_FLAVOURS[key].title}: mpi = {key}"
            file.hint(launch.line, f"mpi = {named}", why)
    several = len(list(by_command(script))) > 1 and not named_mpi(script, options, target=script.scheduler)
    if named is None or (several and not LAUNCHERS[kind].mpi_plugin):
        why = f"the script does not name its MPI: mpi = {named or DEFAULT_MPI} is a guess"
        if LAUNCHERS[kind].mpi_plugin and not _plugin(script, launch)[0]:
            why += f", for which srun gets --mpi={MPI_FLAVOURS[DEFAULT_MPI].srun}"
        file.hint(launch.line, name_of(launch), why)


def _meets_by_address(script: Script) -> bool:
    """Return whether ranks of Python have devices or an address, as those of PyTorch, and no MPI beside."""
    if any(recognized_mpi(script, target=one) for one in DIALECTS):
        return False
    request = script.request
    return bool(request.gpus_per_node or request.gpus or re.search("MASTER_ADDR|NCCL_", script.tree.text))


def _binds(file: JobFile, value: str) -> bool:
    """Set the binding of the ranks; return whether jobgen has this one, or this order of them."""
    value = re.sub(r"^--?(by(?=slot$)|bind-to-(?=(core|none)$)|[\w-]+=)", "", value).lower()
    place, _, each = value.partition(":pe=")
    if value == "depth" and _binds_by_default(file):
        return True
    in_order = place == "slot" or re.fullmatch(r"ppr:\d+:node", place, re.ASCII) is not None
    if in_order and not each:
        return True
    each = "1" if value == "core" else each
    kind = "cores" if each == str(file.values.get("cpus_per_rank", 1)) else value
    is_set = kind in ("cores", "numa", "none") and file.try_add("cpu_bind", kind)
    return is_set and (in_order or place == value)


def _place_of_ranks(file: JobFile, why: str) -> str:
    """Return why jobgen leaves out an option of placement, and what binds the ranks."""
    if why != _ITSELF or "cpu_bind" in file.values:
        return why
    binds_itself = "jobgen places and binds the ranks itself: see cpu_bind"
    return binds_itself if _binds_by_default(file) else why + _HOW_TO_BIND


def _binds_by_default(file: JobFile) -> bool:
    """Return whether the launcher of the MPI gets a binding to the cores of a rank without cpu_bind."""
    mpi = MPI_FLAVOURS.get(str(file.values.get("mpi")))
    return mpi is not None and any("{bind}" in line for line in mpi.place)


def _container(file: JobFile, launch: Launch, texts: list[str | None]) -> bool:
    """Set the image and the mounts of a plug-in of srun; return whether an option is one of these."""
    if None in texts:
        return False
    text = "=".join(text or "" for text in texts)
    name, _, value = text.partition("=")
    for kind, runtime in RUNTIMES.items():
        if name and name == runtime.image_option:
            if not (launch.has("--container-workdir") or runtime.selects_network):
                why = "starts in the directory of the image; jobgen mounts that of the job, and starts there"
                file.hint(launch.line, shortened(text), why)
            return file.try_add("image", value) and file.try_add("container", kind)
    if not _has_image(launch):
        return False
    if re.match(r"--(no-)?container-(?!mounts|image)", name):
        return file.try_add("container_arg", [*file.list("container_arg"), text])
    if name == "--container-mounts":
        return file.try_add("bind", [re.sub(r":(rw|ro)?$", r":\1", one) for one in binds(value)])
    return False


def _has_image(launch: Launch) -> bool:
    """Return whether an option names the image; without one the container is that of an earlier srun."""
    return launch.has(*(row.image_option for row in RUNTIMES.values() if row.image_option))


def _of_script(launch: Launch, kind: str, name: str) -> bool:
    line = launch.row.line
    own = (*line.nodes, *line.ranks, *line.local_ranks, *line.from_script, *line.flags, *line.same)
    ours = [one for each in (kind, launch.kind) for one in _OURS.get(each, "").split()]
    return name in (*own, *ours) or re.fullmatch(r"-[nNcK]\d+", name) is not None


def _options(script: Script, launch: Launch) -> Iterator[tuple[Node, ...]]:
    """Yield each option of the launcher with its values."""
    at = 0
    while count := _count(script, launch, at):
        yield launch.words[at : at + count]
        at += count


def _unread(script: Script, launch: Launch) -> tuple[Node, ...]:
    """Return the words between the options of the launcher and its program, or with the program."""
    program = program_of(script, launch)[:1]
    before = launch.words[sum(map(len, _options(script, launch))) :] if launch.program else ()
    return (*before, *(one for one in program if may_have_options(script, one)))


def program_of(script: Script, launch: Launch) -> tuple[Node, ...]:
    """Return the words of the program, also if its name is known only when the job runs."""
    return launch.program or launch.words[sum(map(len, _options(script, launch))) :]


def _count(script: Script, launch: Launch, at: int) -> int:
    """Return the number of words of the option at a place; 0 if there is none."""
    words = launch.words[at : at + 2]
    text = (script.constants.value(words[0]) or words[0].text) if words else ""
    if not text.startswith("-"):
        return 0
    count = values_of(text, launch.row.line)
    follow = words[1:]
    of_pair = count == 2 and follow and "=" in follow[0].text  # -env NAME=VALUE
    alone = count == 1 and (not follow or (script.constants.value(follow[0]) or "").startswith("-"))
    return count if of_pair or alone else 1 + count


def _variable(file: JobFile, words: tuple[Node, ...], texts: list[str | None], launch: Launch) -> list[str]:
    """Set the variable of ``-x NAME=VALUE`` or ``-genv NAME VALUE``; return a line if the job sets it."""
    given = "=".join(word.text for word in words[1:])
    name, equals, _ = given.strip("\"'").partition("=")
    if not equals:
        return []
    value = "=".join(filter(None, texts[1:])).partition("=")[2]
    if name in OF_RANKS:
        if name == "MASTER_PORT" and None not in texts and file.accepts("master_port", value):
            file.add("master_port", int(value), launch.line)
        else:
            file.hint(launch.line, f"{words[0].text} {given}", f"jobgen sets {name} itself")
        return []
    if None in texts:
        return [f"export {given}"] if re.fullmatch(r"\w+", name) else []
    file.set_variable(name, value, launch.line)
    return []


def of_all_commands(script: Script, file: JobFile, launch: Launch | None) -> Iterator[Remark]:
    """Yield a remark on a variable that the launcher sets for the ranks, and the job for all programs."""
    if launch is None:
        return
    text = launch.command.node.text
    given = (one[1] or one[2] for one in _SETS_FOR_RANKS.finditer(text))
    kept = [one for one in given if one in file.variables and one not in script.values]
    for one in script.commands if kept else ():
        code = one.node.text
        programs = "program" in effects_of(script, one.node).kinds and code != text
        if programs and any(code in block for block in file.blocks):
            why = f"is set for the commands of the job, too: {shown(one.node)}"
            yield hint(launch.line, kept[0], why)
            return


def _export(file: JobFile, launch: Launch, words: tuple[Node, ...], texts: list[str | None]) -> list[str]:
    """Set the variables of srun's --export=NAME=VALUE; return lines for those that the job sets."""
    if option_name(texts[0] or words[0].text) != "--export":
        return []
    given = texts[-1] if texts[-1] is not None else words[-1].text
    given = given.partition("=")[2] if len(texts) == 1 else given
    if texts[-1] is None and re.search(r"['()`\\]", given):
        file.lose(launch.line, _given(words), "is known only when the job runs")
        return []
    if texts[-1] is None:
        found = [one for one in given.replace('"', "").split(",") if "=" in one]
        return [re.sub(r'"(\w+)=\$\{?\1\}?"', r"\1", f'export "{one}"') for one in found]
    for one in given.split(","):
        variable, equals, text = one.partition("=")
        if equals:
            file.set_variable(variable, text)
    return []
