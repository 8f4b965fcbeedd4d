"""The sizes in options of sbatch and qsub that people type for jobgen: the same node for the ranks of jobgen.

Where no option names the ranks, jobgen starts one for each device; they have the cores of the node together.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jobgen.convert.result import Remark
from jobgen.convert.to_job_file.builder import JobFile
from jobgen.errors import counted
from jobgen.launch.accelerators import ACCELERATORS, Accelerator
from jobgen.launch.default_launcher import default_launcher
from jobgen.options import BY_KEY
from jobgen.schedulers.base import Scheduler
from jobgen.schedulers.directive_options import values_by_key
from jobgen.schedulers.request import Request
from jobgen.script.dialects.base import Dialect
from jobgen.values.devices import number_of, type_of
from jobgen.values.parsers import mebibytes, number

OptionWords = list[str]  # an option and its value


class JobCommandLine(NamedTuple):
    """The options of a command: those of jobgen with their values, and all others.

    ``flags`` are those of the command, ``kept`` the words without the other options, each option with its
    value. ``started`` is the number of ranks that a launcher in the program starts on a node: a number,
    ``gpu`` for one for each device, or empty without such a launcher.
    """

    ours: dict[str, str]
    foreign: list[OptionWords]
    flags: tuple[str, ...]
    kept: list[OptionWords]
    started: str = ""

    def whole(self, key: str) -> int | None:
        return number(self.ours.get(BY_KEY[key].flag))

    @property
    def devices(self) -> int | None:
        """The devices of a node, without their type."""
        return number(self.ours.get(BY_KEY["gpus_per_node"].flag, "").rpartition(":")[2])


def refuse_range(file: JobFile, row: Dialect, options: Sequence[OptionWords]) -> None:
    """Add a remark on a number of ranks for a range of nodes."""
    given = values_by_key(map(shlex.join, options), row.scheduler)
    request = row.scheduler.sizes(given)
    if request.ranks and request.nodes is None and row.scheduler.keys.nodes in given:
        file.values.clear()
        why = f"{request.ranks} ranks on a range of nodes have no counterpart: --nodes is one number"
        file.lose(1, "", why)


def keep_total(file: JobFile, row: Dialect, options: Sequence[OptionWords], line: JobCommandLine) -> bool:
    """Return whether a number of all ranks alone is that of ``--ranks``, from which the nodes follow: options
    of jobgen name the devices of a node, and these divide it, or the site knows them."""
    request = row.scheduler.sizes(values_by_key(map(shlex.join, options), row.scheduler))
    total, devices = request.ranks, line.devices
    if not total or request.nodes or request.ranks_per_node or "--nodes" in line.ours:
        return False
    if not devices and not _devices(file, line) and line.ours.keys() & {"--site", "--ranks-per-node"}:
        devices = 1
    if devices and total > devices and total % devices == 0:
        file.values.pop("ranks_per_node", None)
        file.values["ranks"] = total
    return "ranks" in file.values


def count_per_device(file: JobFile, row: Dialect, line: JobCommandLine) -> None:
    """Replace counts for each device with those of a node or of a rank."""
    devices = _devices(file, line) or 1
    for name, key in row.per_device.items():
        for one in file.list("directive"):
            if not (each := number(one.removeprefix(f"{name}="))):
                continue
            drop(file, one)
            ranks = _ranks(file, line)
            if key == "ranks_per_node":
                file.values[key] = each * devices
            elif each * devices % ranks:
                file.lose(1, one, f"has no counterpart for {devices} devices and {ranks} ranks")
            else:
                file.values[key] = each * devices // ranks


def share_totals(file: JobFile, row: Dialect, line: JobCommandLine) -> None:
    """Replace resources of the whole job with those of a node or of a rank."""
    nodes = line.whole("nodes") or number(str(file.values.get("nodes")))
    for name, key in row.job_totals.items() if nodes or "--nodes" not in line.ours else ():
        for one in file.list("directive"):
            text = one.removeprefix(f"{name}=")
            total = mebibytes(text, "b") if key == "mem" else number(text)
            if text == one or not total:
                continue
            drop(file, one)
            parts = (nodes or 1) * (_ranks(file, line) if key == "cpus_per_rank" else 1)
            if key == "mem":
                file.values.setdefault(key, f"{-(-total // parts)}M")
            elif total % parts:
                file.lose(1, one, f"has no counterpart, as {parts} parts of it are not equal")
            else:
                file.values.setdefault(key, total // parts)


def share_cores(file: JobFile, row: Dialect, line: JobCommandLine) -> None:
    """Let the cores of a task, or of a chunk, be those of its ranks, one for each device."""
    cores, devices = file.values.get("cpus_per_rank"), _devices(file, line)
    named = "ranks_per_node" in file.values or line.whole("ranks_per_node")
    if not isinstance(cores, int) or not devices or devices == 1 or named or line.started:
        return
    if cores < devices or (row.scheduler.behaviour.equal_tasks and cores % devices):
        file.values["ranks_per_node"] = 1
        why = f"{devices} ranks, one for each device, cannot share {counted(cores, 'core')}: this is one rank"
        file.lose(1, "", why)
        return
    file.values["cpus_per_rank"] = cores // devices
    if cores % devices:
        file.values["cpus_per_node"] = cores
    file.lose(1, "", f"{devices} ranks, one for each device, share the {cores} cores")


def share_lines(file: JobFile, row: Dialect, line: JobCommandLine) -> None:
    """Let the cores that a scheduler counts be those of the ranks, one for each device."""
    cores, devices = file.values.get("ranks_per_node"), _devices(file, line)
    if not (row.scheduler.behaviour.hosts_by_core and isinstance(cores, int) and devices and cores > devices):
        return
    file.values |= {"ranks_per_node": devices, "cpus_per_rank": cores // devices}
    if cores % devices:
        file.values["cpus_per_node"] = cores


def leave_ranks(file: JobFile, line: JobCommandLine) -> None:
    """Leave the ranks to the launcher in the program, which a task of the scheduler starts."""
    ranks = number(line.started) or _devices(file, line) or 1
    tasks, cores = file.values.pop("ranks_per_node", 1), file.values.pop("cpus_per_rank", None)
    assert isinstance(tasks, int)
    if not isinstance(cores, int):
        return
    total = cores * tasks
    if total % ranks:
        why = f"the {ranks} ranks of the launcher in the program cannot share {counted(total, 'core')}"
        file.lose(1, "", why)
    else:
        file.values["cpus_per_rank"] = total // ranks


def choose_launcher(file: JobFile, scheduler: Scheduler, line: JobCommandLine) -> None:
    """Start the ranks as the tasks of the scheduler if they are not one for each device."""
    ranks, devices = _ranks(file, line), _devices(file, line)
    foreign = file.values.keys() & {"ranks_per_node", "gpus_per_node"}
    if not devices or ranks == devices or not foreign or "--launcher" in line.ours:
        return
    nodes = line.whole("nodes") or _number(file, "nodes") or 1
    file.values["launcher"] = default_launcher(("PROGRAM",), scheduler.command_name, ranks * nodes > 1).name


def keep_devices(file: JobFile, scheduler: Scheduler, line: JobCommandLine) -> bool:
    """Keep a request of fewer devices than ranks as a directive, and return whether there is one: jobgen
    gives each rank a device of its own."""
    ranks, devices = _ranks(file, line), _devices(file, line)
    foreign = file.values.keys() & {"ranks_per_node", "gpus_per_node"}
    if not foreign or not devices or ranks <= devices or file.values.get("accelerator") == "cpu":
        return False
    own = file.values.pop("gpus_per_node", line.ours.get("--gpus-per-node"))
    name = file.values.pop("accelerator", line.ours.get("--accelerator"))
    accelerator = ACCELERATORS.get(str(name), ACCELERATORS["cuda"])
    request = _request_of_devices(file, scheduler, line, accelerator, str(own))
    file.values["accelerator"] = "cpu"
    if request:
        file.add("directive", request)
    if scheduler.behaviour.memory_in_request:
        file.values.pop("mem", None)
    shared = counted(devices, "device")
    why = f"{ranks} ranks share {shared}, and the program chooses that of each rank"
    if scheduler.prefix and not request:
        why = f"{scheduler.title} has no counterpart of {shared} for {ranks} ranks"
    file.lose(1, "", why)
    return bool(line.devices)


def _request_of_devices(
    file: JobFile, scheduler: Scheduler, line: JobCommandLine, accelerator: Accelerator, own: str
) -> str:
    """Return the directive that requests the devices of a node; empty if the scheduler has none."""
    devices = BY_KEY["gpus_per_node"].parse(own)
    kind, count = type_of(devices), number_of(devices)
    try:
        each = scheduler.typed(kind, "") if kind else "{n}"
    except ValueError:
        return ""
    form = scheduler.devices(accelerator, kind) or ""
    text = form.replace("{n}", each).format(n=count)
    if text.startswith("-") or not text:
        return text
    nodes, ranks, cores = (line.whole(key) or _number(file, key) for key in OF_CHUNKS[:3])
    request = Request(
        nodes=nodes or 1,
        ranks_per_node=ranks,
        cpus_per_rank=cores or scheduler.default_cpus_per_rank,
        gpus_per_node=count,
        mem=mebibytes(file.text_of("mem")),
    )
    return scheduler.resources(request, text, "")[0][0]


# The numbers of a chunk in the words of the schedulers.
CORES, DEVICES, PROCESSES = ("ncpus", "ppn"), ("ngpus", "gpus"), ("mpiprocs",)
OF_CHUNKS = ("nodes", "ranks_per_node", "cpus_per_rank", "gpus_per_node", "mem")


def chunks_that_differ(file: JobFile, row: Dialect) -> Iterator[tuple[Remark, Sequence[dict[str, str]]]]:
    """Yield the remark on each request of chunks that differ, and the chunks."""
    for one in [each for each in file.remarks if "+" in each.what and each.what.startswith(_NODES)]:
        yield one, row.scheduler.sizes(values_by_key([one.what], row.scheduler)).chunks


def keep_chunks(file: JobFile, row: Dialect) -> None:
    """Request nodes that differ: those with devices by the ranks of jobgen, others by a directive."""
    for one, chunks in chunks_that_differ(file, row):
        file.remarks.remove(one)
        file.values = {key: value for key, value in file.values.items() if key not in OF_CHUNKS}
        if not any(name in chunk for chunk in chunks for name in DEVICES):
            file.add("directive", one.what)
            file.values["accelerator"] = "cpu"
        elif groups := node_groups(chunks):
            file.values |= groups
        else:
            why = "has no counterpart: nodes may differ in their ranks only, each with a device and "
            file.lose(one.line, one.what, f"{why}equal cores")


_NODES = ("-l select=", "-l nodes=")


def node_groups(chunks: Sequence[dict[str, str]]) -> dict[str, object]:
    """Return jobgen's values for chunks that differ in their devices; empty if there are none."""
    parts, cores, memory = [], set[float](), set[str | None]()
    for chunk in chunks:
        devices = of_chunk(chunk, DEVICES)
        others = chunk.keys() - {"", "mem", *CORES, *DEVICES, *PROCESSES}
        if not devices or others or of_chunk(chunk, PROCESSES) not in (None, devices):
            return {}
        parts.append(f"{number(chunk['']) or 1}x{devices}")
        cores.add((of_chunk(chunk, CORES) or 0) / devices)
        memory.add(chunk.get("mem"))
    each = cores.pop()
    if cores or len(memory) > 1 or each != int(each):
        return {}
    size = mebibytes(memory.pop() or "", "b")
    values = {"nodes": "+".join(parts), "cpus_per_rank": int(each), "mem": f"{size}M" if size else None}
    return {key: value for key, value in values.items() if value}


def of_chunk(chunk: Mapping[str, str], names: Sequence[str]) -> int | None:
    return next((number(chunk[name]) for name in names if name in chunk), None)


def _number(file: JobFile, key: str) -> int | None:
    """Return the number in a value such as ``a100:4``."""
    return number(str(file.values.get(key)).rpartition(":")[2])


def _devices(file: JobFile, line: JobCommandLine) -> int | None:
    return _number(file, "gpus_per_node") or line.devices


def _ranks(file: JobFile, line: JobCommandLine) -> int:
    """Return the ranks of a node: by default one for each device."""
    given = line.whole("ranks_per_node") or _number(file, "ranks_per_node")
    return given or (None if line.started else _devices(file, line)) or 1


def drop(file: JobFile, directive: str) -> None:
    """Remove a directive."""
    if others := [one for one in file.list("directive") if one != directive]:
        file.values["directive"] = others
    else:
        file.values.pop("directive", None)
