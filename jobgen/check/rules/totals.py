"""Rules about numbers of nodes and ranks: those that a launcher or a program gets against those of the job."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from itertools import pairwise

from jobgen.check.ranks.devices import count, numbers, visible
from jobgen.check.ranks.environment import RankEnvironment
from jobgen.check.ranks.launcher_config import launches
from jobgen.check.ranks.model import (
    A_NODE,
    HOSTFILES,
    RankGroup,
    beside,
    code_of_tasks,
    cores_of_option,
    cores_of_script,
    counts_all_ranks,
    ignores_tasks_of_node,
    kind_of,
    ranks,
    ranks_of_machine,
    ranks_of_node,
    size,
    trees_of_tasks,
)
from jobgen.check.rule import ERROR, NOTE, WARNING, rule
from jobgen.check.rules.rank_numbers import behind_name, settings
from jobgen.errors import counted
from jobgen.launch.launchers import DEFAULT_MPI
from jobgen.launch.wrappers import wrappers
from jobgen.script.commands import Command
from jobgen.script.launches import Launch
from jobgen.script.mpi_of_script import recognized_mpi
from jobgen.script.script import Hit, Script
from jobgen.script.syntax import LOOPS, assignments
from jobgen.values.devices import device_count
from jobgen.values.parsers import number as whole_number


@rule(
    "nodes-mismatch",
    ERROR,
    "A launcher with another number of nodes than the job",
    """The request and the launch command have different numbers of nodes. The launcher waits for nodes that
    the job does not have, or leaves some idle. (With fewer nodes it is a warning, and a note in a short trial.)""",
    fix="use the number that the scheduler sets in a variable",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=16
    #SBATCH --ntasks-per-node=1
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    srun torchrun --nnodes=32 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py
    """,
    good={
        'srun torchrun --nnodes=32 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py': 'srun torchrun --nnodes="$SLURM_NNODES" --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):0" train.py'
    },
)
def nodes_mismatch(script: Script) -> Iterator[Hit]:
    request = script.request
    if not request.nodes or not script.in_job or len(request.chunks) > 1:
        return
    started: dict[int | None, set[int | None]] = {}  # the nodes' ranks of those with this number of nodes
    for launch in launches(script):
        rank = launch.number("--node-rank", "--machine-rank")
        started.setdefault(launch.number(*launch.row.line.nodes), set()).add(rank)
    for launch in launches(script):
        count = launch.number(*launch.row.line.nodes)
        if count is None or count == request.nodes or launch.has("--standalone"):
            continue
        if 1 < count <= len(started[count] - {None}):
            continue  # all of them run on the nodes that there are
        if count > request.nodes:
            each = launch.number(*launch.row.line.local_ranks)
            has, all_ranks = request.nodes * (each or 1), count * (each or 1)
            missing = f"ranks {has} to {all_ranks - 1}" if each else "those of the others"
            waits = f": its {f'{has} ' * bool(each)}ranks wait for {missing} until the rendezvous times out"
            level, effect = None, "" if launch.row.line.reaches_nodes else waits
        elif (count > 1 or launch.row.remote_shell) and _has_all_nodes(script, launch):
            level, effect = WARNING, f": {request.nodes - count} stay idle"
        else:
            continue
        reason = f"{launch.title} gets {counted(count, 'node')}, but the job requests {request.nodes}{effect}"
        yield Hit(launch.line, reason, level=level, place=launch.place(*launch.row.line.nodes))
    yield from _on_fewer_nodes(script)


def _on_fewer_nodes(script: Script) -> Iterator[Hit]:
    """Yield the launchers that wait for more nodes than the step around them has, and an MPI that fills fewer
    nodes than the job has."""
    for one in ranks(script):
        outer, inner = one.outer, one.inner
        if outer is None or inner is None or one.command.background or one.command.node.under(*_OFTEN):
            continue
        count = inner.number(*inner.row.line.nodes)
        own = outer.row.by_scheduler and outer.has("-n", "--ntasks", "-N", "--nodes")
        if inner is not outer and own and count and one.nodes and count > one.nodes * (one.tasks or count):
            yield Hit(
                one.line,
                f"{inner.title} gets {count} nodes, but {outer.title} starts it on {one.nodes}: its ranks wait for the "
                "others until the rendezvous times out",
                f"leave the number of tasks to the directives: {outer.title} {inner.title}",
            )
        each, total, nodes = _filled(script, outer), outer.number(*outer.row.line.ranks), script.request.nodes
        used = -(-total // each) if each and total else 0
        if (
            outer.row.of_mpi
            and script.only(outer)
            and each
            and total
            and nodes
            and used + nodes // _SPARE < nodes
        ):
            reason = f"{outer.title} puts {counted(each, 'rank')} on a node: its {total} fill {used} of the {nodes} nodes of the job"
            fewer = f"request {counted(used, 'node')}"
            fix = f"{fewer}, or compute the number of ranks from the request"
            if total % nodes == 0:
                share = total // nodes
                way = (
                    f"-N {share}"
                    if outer.title == "aprun"
                    else f"--map-by ppr:{share}:node, or -ppn of other MPIs"
                )
                fix = f"write {each * nodes}, or start {counted(share, 'rank')} on each: {way}; else {fewer}"
            yield Hit(one.line, reason, fix, WARNING)


_SPARE = 20  # of so many nodes one may be there to replace another


def _filled(script: Script, outer: Launch) -> int | None:
    """Return the ranks that an MPI puts on a node before it takes the next one: those of an option, else the slots
    of a node."""
    if (each := ranks_of_node(outer)) or outer.unknown or (outer.number(*outer.row.line.ranks) or 1) < 2:
        return each
    file = outer.place(*HOSTFILES)
    own = file is not None and "PBS_NODEFILE" not in file.text
    placed = any(map(_PLACED.match, outer.options))
    placed |= outer.has("--map-by", "-map-by") and not _FILLS.fullmatch(outer.text("--map-by", "-map-by"))
    placed |= outer.has("-d", "--depth", "-depth") and not cores_of_option(outer)
    request = script.request
    slots = request.lines_per_node if request.chunks else request.ranks_per_node
    slots = (slots or 1) // (cores_of_option(outer) or 1)
    return None if own or placed or slots < 2 else slots


_PLACED = re.compile(r"--?(by|npernode|hosts?$|[HS]$|pernode|spread|ppr|perhost|rr|cyclic)")
# What an MPI is mapped by that fills one node after the other.
_FILLS = re.compile(r"(?i)((slot|core|hwthread|socket|package|numa|l[123]cache)(:(?!span)[\w=]+)*)")
_OFTEN = (*LOOPS, "function_definition", "if_statement", "case_statement")


def _has_all_nodes(script: Script, launch: Launch) -> bool:
    """Return whether a launcher is the only one of its kind, runs once, and is not kept to some of the nodes."""
    outer = launch.outer
    free = outer is None or (not outer.unknown and size(script, outer)[0] == script.request.nodes)
    around = launch.command.node.under(*LOOPS, "function_definition")
    alone = script.only(launch) and not around and not launch.command.background
    return launch.row.once_a_node and free and alone


@rule(
    "ranks-mismatch",
    WARNING,
    "A launcher with more or fewer ranks than the job's GPUs or slots",
    """The launcher starts more ranks than the job has GPUs on a node or slots in all, or leaves GPUs idle.
    Open MPI refuses more ranks than slots, other MPIs share the cores; `srun` counts the cores of the
    allocation, not its tasks. A rank without a GPU fails when it opens its device. (It is a note in a short trial.)""",
    bad="""
    #!/bin/bash
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    torchrun --standalone --nproc-per-node=8 train.py
    """,
    good={
        "torchrun --standalone --nproc-per-node=8 train.py": "torchrun --standalone --nproc-per-node=4 train.py"
    },
)
def ranks_mismatch(script: Script) -> Iterator[Hit]:
    request = script.request
    if not script.in_job or len(request.chunks) > 1:
        return
    of_node = _gpus_of_node(script)
    gpus = None if request.exclusive else of_node  # an exclusive node gives all that it has
    environment = RankEnvironment.of(script)
    for one in ranks(script):
        yield from _of_tasks(script, one, gpus, environment)
        yield from _shared_cores(script, one)
        yield from _of_numbers(script, one, gpus) if gpus else ()
        yield from _of_server(script, one, gpus) if gpus else ()
        yield from _of_workers(script, one, gpus) if _RAY.search(script.tree.text) else ()
    seen = {one.start: len(found.numbers) for one in ranks(script) if (found := visible(environment, one))}
    own_devices = (one for one in script.commands if "CUDA_VISIBLE_DEVICES=" in one.node.text)
    background = any(one.background for one in (*own_devices, *(one.command for one in ranks(script))))
    together = {one.start for group in beside(script, calls=True) for one in group}
    most = max((one.number(*one.row.line.ranks) or 1 for one in launches(script)), default=1)
    for launch in launches(script):
        each = launch.number(*launch.row.line.local_ranks) or ranks_of_machine(launch)
        has = _given_devices(launch.outer, of_node, request.nodes == 1)
        more = bool(each and has and each > has)
        # The other devices are for a process in the background.
        start = launch.chain[-1].command.node.start
        chosen = start in together or bool(each and background and seen.get(start, each + 1) <= each)
        split = _SPLITS.search(" ".join(word.text for word in launch.program))
        if (
            each
            and has
            and each != has
            and (gpus if more else script.only(launch) and not chosen and not split)
        ):
            idle = "" if more else f": {has - each} stay idle"
            idle = idle or f": the ranks from {has} on have none"
            reason = f"{launch.title} starts {counted(each, 'rank')} on a node of {counted(has, 'GPU')}{idle}"
            fix = f"write {has}, or request {counted(each, 'GPU')}"
            if ranks_of_machine(launch) is not None:
                fix = "--num_processes is the number of all ranks: the machines times the GPUs of each"
            yield Hit(launch.line, reason, fix, place=launch.place(*launch.row.line.local_ranks))
        yield from _uneven(launch, has)
        yield from _beyond_slots(script, launch, most)
        yield from _beyond_cores(script, launch)
        yield from _beyond_devices(script, launch)
    yield from _of_horovodrun(script, of_node)
    yield from _of_msrun(script, gpus)
    yield from _of_ray(script, gpus)


def _uneven(launch: Launch, has: int | None) -> Iterator[Hit]:
    """Yield accelerate with a total of ranks that its machines cannot share evenly."""
    total, machines = launch.number("--num-processes"), launch.number("--num-machines")
    if total and machines and total % machines and counts_all_ranks(launch):
        reason = f"--num_processes is the number of all ranks, and {total} is not a multiple of {counted(machines, 'machine')}"
        product = f"{machines * has}, " if has else ""
        fix = f"write {product}the machines times the GPUs of each"
        yield Hit(launch.line, reason, fix, place=launch.place("--num-processes"))


# Options with which one rank has several GPUs.
_SPLITS = re.compile(r"(?i)--model[-_]parallel\b(?![= ](?:1\b|false))|device_map")


def _of_tasks(
    script: Script, one: RankGroup, gpus: int | None, environment: RankEnvironment
) -> Iterator[Hit]:
    """Yield a program with more tasks on a node than GPUs, or with fewer if each is one rank with one of them."""
    has = _given_devices(one.outer, gpus, script.request.nodes == 1)
    kind = kind_of(script, one.outer)
    if one.tasks and has and one.tasks > has and not one.sets_ranks and environment.has_devices(one):
        starts = f"{kind} starts {one.tasks} ranks on a node of {counted(has, 'GPU')}"
        yield Hit(one.line, starts, f"write {has}, or request {one.tasks} GPUs")
    # See nodes-mismatch for the ranks of an MPI that fill a node.
    fills = _filled(script, one.outer) if one.outer is not None and one.outer.row.of_mpi else None
    fewer = one.tasks and gpus and max(one.tasks, fills or 0) < gpus
    if one.tasks and gpus and fewer and _numbers_by_task(script, one) and script.is_batch:
        starts = f"{kind} starts {counted(one.tasks, 'rank')} on a node of {counted(gpus, 'GPU')}: {gpus - one.tasks} stay idle"
        fix = f"start {gpus} ranks on each node" if script.is_pbs else f"write --ntasks-per-node={gpus}"
        ignored = one.outer is not None and ignores_tasks_of_node(script, one.outer)
        yield Hit(one.line, starts, f"{fix} in the directives" if ignored else fix)


def _shared_cores(script: Script, one: RankGroup) -> Iterator[Hit]:
    """Yield a launcher of Python with more ranks on a node than the job has cores there."""
    if one.cores == 0 and one.sets_ranks and one.inner and script.request.cpus_per_rank:
        cores = cores_of_script(script) or 1
        reason = f"{one.inner.title} starts {one.each} ranks on a node, but the job requests {counted(cores, 'core')} there: they share them"
        fix = f"request a core for each rank at least: {one.each}"
        yield Hit(one.line, reason, fix, place=one.inner.place(*one.inner.row.line.local_ranks))


def _of_numbers(script: Script, one: RankGroup, gpus: int) -> Iterator[Hit]:
    """Yield a program whose options name devices that its node of the job does not have."""
    request, has = script.request, f"the job has {counted(gpus, 'GPU')}"
    far = next((value for _, _, value in one.program.options if re.fullmatch(r"cuda:\d", value)), "")
    if far and int(far[-1]) >= gpus and script.dialect.hides_devices and not one.sets_ranks:
        sees = f"the program sees {counted(gpus, 'GPU')}, from 0"
        yield Hit(one.line, f"{far} is not there: {sees}", "write cuda:0")
    own = one.program.file and not one.sets_ranks and request.nodes in (None, 1)
    named = numbers(one.program) if own else None
    if named and max(named[1]) >= gpus and len(named[1]) > gpus:
        count = len(named[1])
        reason = f"{named[0]} has {count} devices, but {has}"
        yield Hit(one.line, reason, f"write {gpus}, or request {count} GPUs")
    option, devices = _devices(one)
    if devices and devices > gpus and devices != gpus * (request.nodes or 1):
        reason = f"{option} is {devices}, but a node of {has}"
        yield Hit(one.line, reason, f"write {gpus}, or request {devices} GPUs")


_RAY = re.compile(r"\bray\s+(start|symmetric-run)\b|\brun_cluster\.sh\b")
_SPLIT = (("tensor_parallel_size", "tp_size", "tp"), ("pipeline_parallel_size", "pp_size", "pp"))
_OWN_NODES = {
    *("nnodes", "node_rank", "distributed_executor_backend", "dist_init_addr", "data_parallel_address"),
}


def _of_server(script: Script, one: RankGroup, gpus: int) -> Iterator[Hit]:
    """Yield a server of a language model that is split over more GPUs than it can reach."""
    program, nodes = one.program, script.request.nodes or 1
    name = next((word for word in program.arguments[:4] if re.match(r"(vllm|sglang)\b", word)), "")
    sizes = [size for names in _SPLIT if (size := program.number(*names))]
    needed, options = math.prod(sizes), {name for _, name, _ in program.options}
    alone = nodes == 1 or not (_RAY.search(script.tree.text) or options & _OWN_NODES)
    has = gpus if alone else gpus * nodes
    if name and len(sizes) + alone > 1 and needed > has and (one.chain or len(sizes) > 1):
        product = " x ".join(map(str, sizes))
        product = f"{product} = {needed}" if len(sizes) > 1 else product
        where = "the job" if not alone else "its node"
        reason = f"{name} splits the model over {product} GPUs, but {where} has {has}: it waits for the others or ends"
        yield Hit(one.line, reason, f"write sizes whose product is {has} at most")


def _of_workers(script: Script, one: RankGroup, gpus: int | None) -> Iterator[Hit]:
    """Yield a program that asks Ray for other nodes, or other GPUs of each, than the job has."""
    request, program = script.request, one.program
    for name, has, unit in (
        ("trainer.nnodes", request.nodes, "node"),
        ("cluster.num_nodes", request.nodes, "node"),
        ("trainer.n_gpus_per_node", gpus, "GPU"),
        ("cluster.gpus_per_node", gpus, "GPU"),
    ):
        number = program.number(name)
        if number and has and number != has:
            of = "the job" if unit == "node" else "a node of the job"
            effect = "Ray waits for the others" if number > has else f"{has - number} stay idle"
            reason = f"{name} is {number}, but {of} has {counted(has, unit)}: {effect}"
            yield Hit(one.line, reason, f"write {has}")


def _numbers_by_task(script: Script, one: RankGroup) -> bool:
    """Return whether each task of a step that runs alone is one rank of torch, with one device."""
    code = "\n".join(tree.text for tree in trees_of_tasks(script, one))
    by_task = re.search(r"\bRANK=[\"']?\$\{?(SLURM_PROCID|OMPI_COMM_WORLD_RANK|PMI_RANK|PMIX_RANK)", code)
    of_megatron = one.program.number("tensor_model_parallel_size") and one.outer is not None
    return bool(by_task or of_megatron) and not one.sets_ranks and not one.command.background


def _beyond_slots(script: Script, launch: Launch, most: int) -> Iterator[Hit]:
    """Yield a launcher that starts more ranks than the job has slots, or whose tasks need more cores. ``most`` is the
    largest number of ranks that a launcher of the script gets."""
    total, by_scheduler = launch.number(*launch.row.line.ranks), launch.row.by_scheduler
    slots = _slots(script, launch) if not by_scheduler else _cores(script)
    whole = by_scheduler and launch.outer is None and not launch.has(*launch.row.line.ranks, *_PLACES)
    total = script.request.ranks if whole and launch.has("-c", "--cpus-per-task") else total
    exported = script.request.cpus_per_rank if "SRUN_CPUS_PER_TASK" in script.values else None
    own = (launch.number("-c", "--cpus-per-task") or exported) if by_scheduler else None
    more = launch.has("--oversubscribe", "-oversubscribe", "--overcommit", "-O")
    more |= launch.has("--ppn", "-ppn", "-perhost")  # of MPICH, Intel MPI and PALS, which count no slots
    # A job is root in a container only, whose mpirun knows nothing of PBS and counts the cores.
    more |= script.is_pbs and launch.has("--allow-run-as-root", "-allow-run-as-root")
    # Without --cpus-per-task in the directives the site may give whole nodes.
    each = own if own and script.request.cpus_per_rank else 1
    if not total or not slots or total * each <= slots or more or _counts_from_job(script, launch):
        return
    width = script.request.cpus_per_rank or 1
    fits = launch.row.of_mpi and not script.is_pbs and total <= slots * width
    mpi = recognized_mpi(script, launch.options, launch.command.node.start) if fits else None
    if mpi not in (None, DEFAULT_MPI):
        return  # it counts no slots
    by_cores = script.is_pbs and not script.request.ranks_per_node and slots != script.request.nodes
    gets = f"{total} ranks" if each == 1 else f"{total} ranks of {each} cores"
    unit = "core" if each > 1 or by_cores else "slot"
    reason = f"{launch.title} gets {gets}, but the job requests {counted(slots, unit)}"
    fix = f"request {total * each} {unit}s"
    fix += ", or use the number that the scheduler sets in a variable" * (
        slots > 1
    )  # one is often the default
    fix = f"request --cpus-per-task={each}, or leave it out here" if whole and each > 1 else fix
    if fits:
        reason += f" of {width} cores: Open MPI refuses that"
        cores = slots * width // most
        fix = fix.replace(str(total), str(most), 1) + (
            f": --ntasks={most} --cpus-per-task={cores}" * (cores > 0)
        )
    level = NOTE if fits and mpi is None else None
    yield Hit(launch.line, reason, fix, level, place=launch.place(*launch.row.line.ranks))


# Options by which a step has other tasks than the job.
_PLACES = ("-N", "--nodes", "--ntasks-per-node", "-w", "--nodelist", "-r", "--relative", "--het-group")


def _beyond_cores(script: Script, launch: Launch) -> Iterator[Hit]:
    """Yield a launcher whose ranks on a node are to have more cores than the job has there."""
    request, chunks = script.request, script.request.chunks
    each, width, cores = ranks_of_node(launch), cores_of_option(launch) or 1, cores_of_script(script)
    counts_cores = chunks[0].get("mpiprocs") if chunks else request.cpus_per_rank
    if width == 1 and chunks:
        scattered = "ncpus" in chunks[0] and "scatter" in (request.place or "")
        counts_cores = counts_cores or chunks[0].get("ppn") or scattered
    elif width == 1:
        counts_cores = request.ranks_per_node
    if launch.row.of_mpi and each and cores and counts_cores and each * width > cores:
        of_cores, fix = "", f"write {cores}, or request {each} cores"
        if width > 1:
            of_cores = f" of {width} cores"
            fix = f"write {max(cores // each, 1)} cores for each rank, or request {each * width}"
        reason = f"{launch.title} gets {each} ranks{of_cores} on a node, but the job requests {counted(cores, 'core')} there"
        place = launch.place("--map-by", "-map-by", "--depth", "-d", *A_NODE)
        yield Hit(launch.line, reason, fix, place=place)


def _counts_from_job(script: Script, launch: Launch) -> bool:
    """Return whether the number of ranks is a sum with a number of the job: somebody adds ranks on purpose."""
    texts = [launch.nodes[name].text for name in launch.row.line.ranks if name in launch.nodes]
    return any("+" in text and any(name in text for name in script.dialect.job_variables) for text in texts)


def _beyond_devices(script: Script, launch: Launch) -> Iterator[Hit]:
    """Yield a step that asks for more GPUs than the job has: Slurm creates none."""
    has, nodes = script.request.gpus_per_node, script.request.nodes or 1
    for option in ("--gpus-per-node", "--gres", "--gpus") if launch.row.by_scheduler and has else ():
        number = _number_of_devices(launch, option)
        most = (has or 0) * (nodes if option == "--gpus" else 1)
        if number and number > most:
            reason = f"{launch.title} asks for {number} GPUs{' on each node' * (option != '--gpus')}, but the job has {most}: the step is refused"
            fix = f"leave {option} out, or request as many"
            yield Hit(launch.line, reason, fix, ERROR, place=launch.place(option))


def _number_of_devices(launch: Launch, option: str) -> int | None:
    """Return the GPUs that an option of a step asks for; None without it, or if it is no plain number."""
    value = (launch.options.get(option) or "").removeprefix("gpu:" if option == "--gres" else "")
    plain = re.fullmatch(r"([\w.-]+:)?([1-9]\d{0,3})", value, re.ASCII)
    return int(plain[2]) if plain else None


def _gpus_of_node(script: Script) -> int | None:
    """Return the GPUs of a node: those of the request, or of the only task there."""
    request = script.request
    alone = request.ranks == 1 or (request.ranks_per_node == 1 and request.gpus is None)
    of_task = script.heeded.get("--gpus-per-task") if alone else None
    total = request.gpus if request.ranks == 1 else None
    return request.gpus_per_node or total or (device_count(of_task.value) if of_task is not None else None)


def _given_devices(step: Launch | None, of_node: int | None, one_node: bool) -> int | None:
    """Return the GPUs that a step has of those of a node. ``one_node``: the job has no other."""
    if step is None or not of_node or not step.row.by_scheduler:
        return of_node
    own = _number_of_devices(step, "--gpus-per-node") or _number_of_devices(step, "--gres")
    own = own or (_number_of_devices(step, "--gpus") if one_node else None)
    return min(own or of_node, of_node)


def _values(words: list[str]) -> dict[str, str]:
    """Return the values of options, as ``-np 4`` or ``--name=4``."""
    return dict(pairwise(words)) | dict(word.partition("=")[::2] for word in words if "=" in word)


def _of_horovodrun(script: Script, gpus: int | None) -> Iterator[Hit]:
    """Yield the calls of horovodrun with more ranks than the slots of its hosts, or with other ranks than the job has
    GPUs."""
    commands = list(script.own_running("horovodrun"))
    for command in commands:
        values = _values([script.constants.value(word) or "" for word in command.words])
        total = whole_number(values.get("-np") or values.get("--num-proc"), 6) or 0
        behind = (after for flag, after in pairwise(command.words) if flag.text in ("-np", "--num-proc"))
        total = total or next(filter(None, map(script.constants.count, behind)), 0)
        slots = _slots_of_hosts(script, command, values.get("-H") or values.get("--hosts") or "")
        devices = (gpus or 0) * (script.request.nodes or 1)
        if 0 < slots < total:
            reason, fix = f"but its hosts have {slots} slots: it refuses that", "write as many slots as ranks"
        elif devices and total > devices and not script.request.exclusive:
            reason = f"but the job requests {counted(devices, 'GPU')}"
            fix = f"write {devices}, or request {total} GPUs"
        elif 0 < total < (devices or slots) and len(commands) == 1 and _uses_all(script, command):
            nodes = script.request.nodes or 1
            if not devices and (nodes == 1 or slots - total < slots // nodes):
                continue  # the slots may be more than the GPUs
            has = f"the job requests {devices} GPUs" if devices else f"its hosts have {slots} slots"
            reason = f"but {has}: {(devices or slots) - total} stay idle"
            fix = (
                f"write {devices or slots}, or request {counted(total, 'GPU') if devices else 'fewer nodes'}"
            )
        else:
            continue
        yield Hit(command.line, f"horovodrun gets {counted(total, 'rank')}, {reason}", fix)


def _uses_all(script: Script, command: Command) -> bool:
    """Return whether the call of horovodrun is to use all GPUs of the job: it runs alone, on all nodes, and with a
    fixed number of ranks."""
    others = re.search(
        r"--(min|max)-np|--(min|max)-num-proc|--host-discovery|VISIBLE_DEVICES", script.tree.text
    )
    alone = not command.background and not command.node.under(*_OFTEN)
    hosts = any(re.match(r"-H$|--hosts|--?hostfile", word.text) for word in command.words)
    return alone and not others and (script.request.nodes in (None, 1) or hosts)


_HOSTS = re.compile(r"[\w.-]+:\d{1,4}(,[\w.-]+:\d{1,4})*")
_OF_HOST = re.compile(r":(\d{1,4})(?=[,\"'/)\s]|$)")


def _slots_of_hosts(script: Script, command: Command, hosts: str) -> int:
    """Return the slots of horovodrun's list of hosts, also of one with an entry for each host of the job; 0 if
    the text does not determine them."""
    if _HOSTS.fullmatch(hosts):
        return sum(map(int, _OF_HOST.findall(hosts)))
    lists = [word for flag, word in pairwise(command.words) if flag.text in ("-H", "--hosts")]
    each = set(_OF_HOST.findall(" ".join(one.text for one in script.values_in(lists[:1]))))
    repeats = "PBS_NODEFILE" in script.tree.text and not re.search(r"uniq|sort -u|seen", script.tree.text)
    return int(each.pop()) * (script.request.nodes or 0) if len(each) == 1 and not repeats else 0


def _of_msrun(script: Script, gpus: int | None) -> Iterator[Hit]:
    """Yield the calls of MindSpore's msrun with other ranks on a node than it has devices, or than all ranks."""
    for one in script.started:
        words = [one.constants.value(word) or "" for word in (one.file, *one.arguments)]
        names = ("--local_worker_num", "--worker_num")
        each, total = (whole_number(_values(words).get(name), 6) or 0 for name in names)
        nodes = script.request.nodes or 1
        if os.path.basename(words[0]) != "msrun" or not each:
            continue
        if gpus and each > gpus:
            reason = f"msrun starts {each} ranks on a node of {counted(gpus, 'device')}: the ranks from {gpus} on have none"
            yield Hit(one.line, reason, f"write --local_worker_num={gpus}")
        elif total and total != each * nodes:
            reason = f"--worker_num is {total}, but {each} ranks on each of {counted(nodes, 'node')} are {each * nodes}"
            yield Hit(one.line, reason, f"write --worker_num={each * nodes}")


def _of_ray(script: Script, gpus: int | None) -> Iterator[Hit]:
    """Yield the starts of Ray on a node with more devices than the job has there."""
    for node in script.tree.all("command"):
        match = re.search(r"\bray\s+start\b.*?--num-gpus[= ](\d{1,3})\b", node.text, re.S)
        if gpus and match and int(match[1]) > gpus:
            reason = f"ray start gets {match[1]} GPUs, but a node of the job has {gpus}: Ray starts workers on devices that are not there"
            yield Hit.at(node, reason, f"write --num-gpus={gpus}")
            return


@rule(
    "world-size",
    ERROR,
    "A world size that differs from the number of ranks",
    """Ranks wait until as many have joined as `WORLD_SIZE` says: with a larger number they wait until the time
    limit, and with a smaller one the rank is refused. `--num_processes` beside `--process_id` is that number for JAX. Lightning compares `devices` and `num_nodes` of its
    trainer with the tasks of Slurm, and ends if they differ.""",
    fix="use the number that the scheduler sets in a variable",
    bad="""
    #!/bin/bash
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=4
    #SBATCH --gpus-per-node=4
    #SBATCH --time=01:00:00
    set -euo pipefail
    export WORLD_SIZE=16
    srun bash -c 'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID; exec python3 train.py'
    """,
    good={"export WORLD_SIZE=16": "export WORLD_SIZE=$SLURM_NTASKS"},
)
def world_size(script: Script) -> Iterator[Hit]:
    if not script.in_job:
        return
    yield from _of_world(script)
    yield from _of_processes(script)
    for one in ranks(script):
        if one.sets_ranks:
            yield from _of_parallel(one)
        if one.outer is None or not one.outer.row.line.reaches_nodes or one.sets_ranks or not one.total:
            continue
        yield from _of_parallel(one)
        for name, has, starts in _trainer(one):
            if has != starts:
                reason = f"Lightning gets {name}={has}, but {one.outer.title} starts tasks for {name}={starts}: it refuses that"
                yield Hit(one.line, reason)
                break


def _of_world(script: Script) -> Iterator[Hit]:
    """Yield an exported WORLD_SIZE that is not the number of the tasks, whose code sets their RANK."""
    for code in code_of_tasks(script):
        numbered = re.search(r"\bRANK=", code.tree.text)
        if code.sets_ranks or numbered is None:
            continue
        own = [node for name, _, node in assignments(code.tree) if name == "WORLD_SIZE"]
        above, start, outer = script, 0, None
        line, total = 0, code.nodes * code.tasks if code.nodes and code.tasks else None
        if code.group is not None:
            start, line, outer, total = code.group.start, code.group.line, code.group.outer, code.group.total
        elif script.starter is not None:
            above, call = script.starter
            start, outer = call.file.start, call.outer
            line = 1 + code.tree.text.count("\n", 0, numbered.start())
        value = RankEnvironment.of(above).in_effect("WORLD_SIZE", start)
        text = None if value is None else above.constants.value(value)
        option = outer.text("--export") if outer is not None else ""
        passed = re.search(r"\bWORLD_SIZE=(\d+)(?![\w$])", option)
        text = passed[1] if passed else text
        if own:
            text, line = own[0].text.partition("=")[2].strip("\"'") if len(own) == 1 else None, own[0].line
        if text and text.isdigit() and total and int(text) != total and outer is not None:
            more = f": they wait forever for ranks {total} to {int(text) - 1}"
            more = more if int(text) > total else f": ranks {text} to {total - 1} are refused"
            yield Hit(line, f"WORLD_SIZE is {text}, but {outer.title} starts {total} ranks{more}")
            return


def _of_processes(script: Script) -> Iterator[Hit]:
    """Yield the number of processes that an option of JAX or a variable of it gets, unless it is that of the tasks."""
    for code in code_of_tasks(script):
        total = code.nodes * code.tasks if code.nodes and code.tasks else None
        total = code.group.total if code.group is not None else total
        if not total or code.sets_ranks:
            continue
        for one in settings(code.tree):
            number = whole_number(behind_name(script.constants.value(one.value) or ""), 6)
            own = one.meaning == "WORLD_SIZE" != one.name and not one.number  # else see rank-number
            if own and number and number != total:
                effect = f"ranks {number} to {total - 1} are refused"
                effect = f"they wait forever for ranks {total} to {number - 1}" if number > total else effect
                yield Hit(one.value.line, f"{one.name} is {number}, but {total} ranks start: {effect}")
                return


# Options of Megatron: megatron/training/arguments.py
_PARALLEL = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")


def _of_parallel(one: RankGroup) -> Iterator[Hit]:
    """Yield the sizes of Megatron's groups whose product does not divide the number of ranks."""
    given = {name: number for name in _PARALLEL if (number := one.program.number(name))}
    size = math.prod(given.values())
    if "tensor_model_parallel_size" in given and one.total and one.total % size:
        product = " x ".join(map(str, given.values()))
        stages = given.get(_PARALLEL[1], 1)
        others = size // stages
        fewer = min(stages, one.total // others)  # to which older versions reduce them
        reduced = fewer > 0 and one.total % (others * fewer) == 0
        effect = f", or has {fewer} stages in older versions" if reduced else ""
        reason = f"the parallel sizes of {one.program.file or 'the program'} need a multiple of {product} = {size} ranks"
        reason = f"{reason}, but {one.total} start: it refuses that{effect}"
        fix = f"write sizes whose product divides {one.total}"
        yield Hit(one.line, reason, fix, level=WARNING if reduced else None)


def _devices(one: RankGroup) -> tuple[str, int]:
    """Return what sets the number of devices that a program uses on its node, and the number; 0 if nothing does.

    A launcher gives its ranks one device each, and Lightning compares its devices with the tasks of Slurm.
    """
    program = one.program
    own = "lightning" in program.frameworks
    words = " ".join(program.arguments)
    if not program.file and one.chain:
        return "", 0  # a program of its own, whose options may mean something else
    if one.sets_ranks or (own and one.is_step) or _SUBMITS.search(words) or re.search(r"\bcpu\b", words):
        return "", 0
    if found := count(program):
        return found
    source = program.source
    if source is None or not own or re.search(r"cpu[\"']", source.text):
        return "", 0
    return "the devices of Lightning", source.trainer.get("devices", 0)


_SUBMITS = re.compile(r"(?i)submit|slurm|launch|ray\b|cluster")  # programs that start others


def _trainer(one: RankGroup) -> Iterator[tuple[str, int, int]]:
    """Yield the name of a size of Lightning's trainer, the number that it gets, and that of the tasks."""
    if "lightning" not in one.program.frameworks or not one.is_step:
        return
    source = one.program.source
    for name, tasks in (("devices", one.each), ("num_nodes", one.nodes)):
        own = source.trainer.get(name) if source is not None else None
        number = own if own is not None else one.program.number(name, f"trainer.{name}")
        if number is not None and tasks is not None and number > 0:
            yield name, number, tasks


def _cores(script: Script) -> int | None:
    """Return the cores of the tasks that the job requests; None if it has whole nodes."""
    request = script.request
    return None if request.exclusive or not request.ranks else request.ranks * (request.cpus_per_rank or 1)


def _of_image(script: Script, launch: Launch) -> bool:
    """Return whether a launcher is that of a container, which knows nothing of PBS: it counts cores."""
    words = [script.constants.value(word) for word in launch.command.words]
    of_job = any("_IMAGE=" in option.value for option in script.options_of("-v"))
    return of_job or any(one.container for one, _, _ in wrappers(words))


def _slots(script: Script, launch: Launch) -> int | None:
    """Return how many ranks a launcher may start; None if the request does not determine it."""
    request = script.request
    if not request.chunks:
        return request.ranks
    first = request.chunks[0]
    if request.nodes and request.ranks_per_node and first.get("ppn", first.get("mpiprocs")):
        return request.nodes * request.ranks_per_node
    if request.nodes and request.cpus_per_rank and "ncpus" in first:
        if recognized_mpi(script, launch.options) == DEFAULT_MPI and not _of_image(script, launch):
            return request.nodes  # without mpiprocs: one slot a chunk
        return request.nodes * request.cpus_per_rank
    return None
